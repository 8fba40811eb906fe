package breaker_test

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/notsent"
)

func TestAForcedStateHoldsUntilRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var saw []breaker.Change
		cs, h, rt := rig(t, breaker.Config{OnStateChange: func(c breaker.Change) { saw = append(saw, c) }})
		cs.Force("A.Example.", breaker.Open) // before any request, as anybody writes it
		want(t, cs, breaker.Open, "forced")
		_, err := get(rt, site)
		var e *breaker.Error
		if !errors.As(err, &e) || e.State != breaker.Open || e.RetryAfter != 0 || h.calls.Load() != 0 {
			t.Errorf("forced open: %v", err)
		}
		if _, err = get(cs.Meter(h), site); notsent.Refused(err) != notsent.Meter {
			t.Errorf("forced open, at the Meter: %v", err)
		}
		time.Sleep(time.Hour)
		want(t, cs, breaker.Open, "an hour later")
		st := cs.Stats().Circuits
		if len(st) != 1 || !st[0].Forced || st[0].Refused != 2 || st[0].Trips != 0 || st[0].Reason != "forced open by hand" || time.Since(st[0].Since) != time.Hour {
			t.Errorf("held open: %+v", st)
		}
		cs.Force("a.example", breaker.Closed)
		if st := cs.Stats().Circuits; len(st) != 1 || st[0].Refused != 0 || st[0].Reason != "forced closed by hand" {
			t.Errorf("held closed: %+v", st)
		}
		h.set(down)
		for range 100 {
			get(rt, site)
		}
		want(t, cs, breaker.Closed, "a hundred failures while held")
		cs.Release("a.example")
		want(t, cs, breaker.Closed, "released")
		for range 4 {
			get(rt, site)
		}
		want(t, cs, breaker.Closed, "four failures after release")
		get(rt, site)
		want(t, cs, breaker.Open, "five")
		cs.Force("a.example", breaker.Closed)
		cs.Release("a.example")
		want(t, cs, breaker.Closed, "nothing is left of the time before Force")
		for _, s := range []breaker.State{breaker.HalfOpen, breaker.Open + 1} {
			if err := cs.Force("a.example", s); err == nil || !strings.Contains(err.Error(), "breaker: Force a.example: a circuit can be forced open or closed, not") {
				t.Errorf("Force %v: %v", s, err)
			}
		}
		want(t, cs, breaker.Closed, "half-open cannot be held")
		cs.Release("never.seen")
		var got []breaker.State
		for _, c := range saw {
			got = append(got, c.To)
			if c.Ctx == nil || c.Reason == "" || c.At.IsZero() || c.Host != "a.example" {
				t.Errorf("change without context, reason, time or host: %+v", c)
			}
		}
		if len(got) != 4 || got[0] != breaker.Open || got[1] != breaker.Closed || got[2] != breaker.Open || got[3] != breaker.Closed {
			t.Errorf("told of %v", got)
		}
	})
}

// TestForceIgnoresAttemptsUnderWay: what was sent before does not count
// after, whether there was a circuit then or not.
func TestForceIgnoresAttemptsUnderWay(t *testing.T) {
	for _, known := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			opened := 0
			cs, h, rt := rig(t, breaker.Config{OnStateChange: func(breaker.Change) { opened++ }})
			if known {
				h.set(status(500))
				get(rt, site)
			}
			gate := make(chan bool)
			h.set(func(r *http.Request) (*http.Response, error) { <-gate; return down(r) })
			for range 50 {
				go get(rt, site)
			}
			synctest.Wait()
			cs.Force("a.example", breaker.Closed)
			close(gate)
			synctest.Wait()
			if opened != 0 {
				t.Errorf("%d changes while held", opened)
			}
			cs.Release("a.example")
			want(t, cs, breaker.Closed, "released")
		})
	}
}

// TestForceWakesTheLine: those who wait are refused, or released.
func TestForceWakesTheLine(t *testing.T) {
	for _, s := range []breaker.State{breaker.Open, breaker.Closed} {
		bubble(t, func(t *testing.T) {
			cs, h, rt := rig(t, breaker.Config{Patience: time.Minute, OpenFor: 10 * time.Second})
			h.set(down)
			for range 5 {
				get(rt, site)
			}
			h.set(status(200))
			codes := make(chan int, 10)
			for range 10 {
				go func() { code, _ := get(rt, site); codes <- code }()
			}
			synctest.Wait()
			start := time.Now()
			cs.Force("a.example", s)
			for range 10 {
				if code := <-codes; (code == 200) != (s == breaker.Closed) {
					t.Errorf("forced %v: status %d", s, code)
				}
			}
			if d := time.Since(start); d != 0 {
				t.Errorf("woken after %v", d)
			}
		})
	}
}

// TestForceOutlivesEviction: the operator's word does not go with the record.
func TestForceOutlivesEviction(t *testing.T) {
	cs := circuits(t, breaker.Config{})
	h := &host{answer: status(200)}
	m := cs.Meter(h)
	tableOf(m).Resize(10)
	rt := cs.Door(m)
	cs.Force("a.example", breaker.Open)
	for i := range 1000 {
		get(rt, "http://h"+strconv.Itoa(i)+".example/")
	}
	want(t, cs, breaker.Open, "after a thousand other hosts")
	if _, err := get(rt, site); err == nil {
		t.Error("passed")
	}
}

// TestForceIsBounded: hosts beyond the bound are ignored, those within stay.
func TestForceIsBounded(t *testing.T) {
	const maxForced = 100000
	cs := circuits(t, breaker.Config{})
	for i := range maxForced + 5 {
		cs.Force(strconv.Itoa(i)+".example", breaker.Open)
	}
	if n := len(cs.Stats().Circuits); n != maxForced {
		t.Errorf("%d held", n)
	}
	if cs.State("0.example") != breaker.Open || cs.State(strconv.Itoa(maxForced)+".example") != breaker.Closed {
		t.Error("the bound pushed out an older one")
	}
	cs.Force("0.example", breaker.Closed) // not a new one
	want := breaker.Closed
	if got := cs.State("0.example"); got != want {
		t.Errorf("%v", got)
	}
}

func TestForceKnowsPorts(t *testing.T) {
	for _, test := range []struct{ forced, url string }{
		{"b.example", "https://b.example:443/"},
		{"b.example:443", "https://b.example/"},
		{"b.example:80", "http://b.example/"},
		{"b.example:443", "http://b.example:443/"},
		{"b.example:8080", "http://B.example.:8080/"},
		{"[::1]:8080", "http://[::1]:8080/"},
		{"https://B.example/v1?q", "https://b.example/"},
	} {
		cs, _, rt := rig(t, breaker.Config{Disable: true}) // the switch works all the same
		cs.Force(test.forced, breaker.Open)
		if _, err := get(rt, test.url); err == nil {
			t.Errorf("%s: %s passed", test.forced, test.url)
		}
		if _, err := get(rt, "http://b.example:9/"); err != nil {
			t.Errorf("%s: another port: %v", test.forced, err)
		}
		cs.Release(test.forced)
		if _, err := get(rt, test.url); err != nil {
			t.Errorf("released: %v", err)
		}
	}
}

func TestADisabledCircuitNeverOpens(t *testing.T) {
	cs, h, rt := rig(t, breaker.Config{Disable: true})
	h.set(down)
	for range 100 {
		get(rt, site)
	}
	want(t, cs, breaker.Closed, "disabled")
	if n := h.calls.Load(); n != 100 {
		t.Errorf("%d calls", n)
	}
}
