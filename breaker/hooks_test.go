package breaker_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
)

// TestChangesSayWhoWhatAndWhy carry who, what, why and until when, in their order.
func TestChangesSayWhoWhatAndWhy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		type key struct{}
		var saw []breaker.Change
		cs, h, rt := rig(t, breaker.Config{OnStateChange: func(c breaker.Change) { saw = append(saw, c) }})
		ctx := context.WithValue(t.Context(), key{}, "me")
		h.set(down)
		for range 5 {
			send(ctx, rt)
		}
		due(t, cs)
		send(ctx, rt)
		due(t, cs)
		h.set(status(200))
		for range 3 {
			send(ctx, rt)
		}
		for i, want := range []struct {
			from, to breaker.State
			reason   string
		}{
			{breaker.Closed, breaker.Open, "5 failures in a row without an answer"},
			{breaker.Open, breaker.HalfOpen, "the open period has ended"},
			{breaker.HalfOpen, breaker.Open, "a probe failed: no answer"},
			{breaker.Open, breaker.HalfOpen, "the open period has ended"},
			{breaker.HalfOpen, breaker.Closed, "3 good probes"},
		} {
			if i >= len(saw) {
				t.Fatalf("%d changes", len(saw))
			}
			got := saw[i]
			if got.From != want.from || got.To != want.to || got.Reason != want.reason || got.Host != "a.example" || got.Ctx.Value(key{}) != "me" {
				t.Errorf("change %d: %+v", i, got)
			}
			if (got.To == breaker.Open) != got.Until.After(got.At) {
				t.Errorf("change %d: until %v at %v", i, got.Until, got.At)
			}
		}
	})
}

// TestSetHostIsAChange: who was told that a circuit opened is told that other
// settings have closed it, and of no circuit that keeps its own.
func TestSetHostIsAChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var saw, late []breaker.Change
		var cs *breaker.Circuits
		cs, h, rt := rig(t, breaker.Config{OnStateChange: func(c breaker.Change) {
			saw = append(saw, c)
			if cs.State(c.Host) != c.To {
				t.Errorf("told %+v, while it is %v", c, cs.State(c.Host))
			}
		}})
		open(t, cs, h, rt)
		for range 5 {
			get(rt, "http://b.example/")
		}
		get(rt, "http://c.example/") // counts one failure, and stays closed
		own := breaker.Config{OnStateChange: func(c breaker.Change) { late = append(late, c) }}
		saw = nil
		for _, pattern := range []string{"a.example", "c.example"} {
			if err := cs.SetHost(pattern, own); err != nil {
				t.Fatal(err)
			}
		}
		if len(saw) != 1 || saw[0].Host != "a.example" || saw[0].From != breaker.Open || saw[0].To != breaker.Closed ||
			saw[0].Reason != "new settings" || saw[0].Ctx == nil || !saw[0].At.Equal(time.Now()) || len(late) != 0 {
			t.Errorf("told %+v and %+v", saw, late)
		}
		if cs.State("b.example") != breaker.Open {
			t.Error("a circuit that keeps its settings was closed")
		}
		get(rt, site)
		if len(saw) != 1 || len(late) != 0 {
			t.Errorf("told again: %+v and %+v", saw, late)
		}
		err := breaker.KeepSettings(cs, "b.example", own) // SetHost, and a request comes before it is done
		if get(rt, "http://b.example/"); err != nil || len(saw) != 2 || saw[1].Host != "b.example" || saw[1].To != breaker.Closed {
			t.Errorf("%v: told %+v", err, saw)
		}
	})
}

func TestTheReasonOfAnOpenCircuitIsNamed(t *testing.T) {
	for want, base := range map[string]answer{
		"20 failures in a row":                  status(500),
		"5 failures in a row without an answer": down,
	} {
		cs, h, rt := rig(t, breaker.Config{MinCalls: 1000})
		h.set(base)
		for range 20 {
			get(rt, site)
		}
		if got := cs.Stats().Circuits[0].Reason; got != want {
			t.Errorf("reason %q, want %q", got, want)
		}
	}
	cs, h, rt := rig(t, breaker.Config{MinCalls: 10, FailureRate: .5})
	for i := range 10 {
		h.set([]answer{status(500), status(200)}[i%2])
		get(rt, site)
	}
	h.set(status(500))
	get(rt, site)
	if got := cs.Stats().Circuits[0].Reason; got != "6 failures in 11 calls" {
		t.Errorf("reason %q", got)
	}
	cs, h, rt = rig(t, breaker.Config{Consecutive: 1})
	h.set(down)
	get(rt, site)
	if got := cs.Stats().Circuits[0].Reason; got != "1 failure in a row without an answer" {
		t.Errorf("reason %q", got)
	}
}

// TestHookThatEnds: a hook that panics, or ends its goroutine, spoils nothing
// but its own call.
func TestHookThatEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		told := 0
		cs, h, rt := rig(t, breaker.Config{Probes: 1, OnStateChange: func(c breaker.Change) {
			if told++; told%2 == 0 {
				panic("hook")
			}
			runtime.Goexit()
		}})
		call := func() {
			done := make(chan bool)
			go func() {
				defer close(done)
				defer func() { recover() }()
				get(rt, site)
			}()
			<-done
		}
		h.set(down)
		for range 5 {
			call()
		}
		want(t, cs, breaker.Open, "five failures")
		due(t, cs)
		h.set(status(200))
		call()
		call()
		call()
		want(t, cs, breaker.Closed, "a good probe")
		if told < 3 {
			t.Errorf("told %d times", told)
		}
	})
}

// TestHookThatEndsWhileOthersWait: the same for requests in line.
func TestHookThatEndsWhileOthersWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Probes: 1, Patience: time.Minute, OnStateChange: func(c breaker.Change) { panic("hook") }})
		meter := cs.Meter(h)
		var mu sync.Mutex
		var panics, good int
		call := func(rt http.RoundTripper) {
			code := 0
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				if recover() != nil {
					panics++
				} else if code == 200 {
					good++
				}
			}()
			code, _ = get(rt, site)
		}
		h.set(down)
		for range 5 {
			call(rt)
		}
		h.set(status(200))
		start := time.Now()
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() { call([]http.RoundTripper{rt, meter}[i%2]) })
		}
		all.Wait()
		if panics < 2 || panics > 4 || panics+good != 11 {
			t.Errorf("%d panics, %d good", panics, good)
		}
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("took %v", d)
		}
		want(t, cs, breaker.Closed, "a good probe")
	})
}

// TestHookThatCausesChanges is told of what it does to the circuit after it
// has returned, not within itself.
func TestHookThatCausesChanges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var rt http.RoundTripper
		depth, told := 0, 0
		cs := circuits(t, breaker.Config{Probes: 1, OnStateChange: func(c breaker.Change) {
			if depth++; depth > 1 {
				t.Error("nested")
			}
			told++
			if c.To == breaker.Open && told < 10 {
				time.Sleep(time.Until(c.Until))
				get(rt, site) // probes
			}
			depth--
		}})
		h := &host{answer: down}
		rt = cs.Door(cs.Meter(h))
		for range 5 {
			get(rt, site)
		}
		if told < 10 {
			t.Errorf("told %d times", told)
		}
	})
}

func TestStatsHoldOnlyCircuitsWithNews(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		if s := cs.Stats(); len(s.Circuits) != 0 || s.Kept != 0 {
			t.Errorf("at first: %+v", s)
		}
		get(rt, "http://b.example/")
		h.set(status(500))
		for range 7 {
			get(rt, "http://b.example/")
		}
		h.set(down)
		for range 8 {
			get(rt, site)
		}
		cs.Force("c.example", breaker.Open)
		s := cs.Stats()
		if len(s.Circuits) != 3 || s.Kept != 2 {
			t.Fatalf("%+v", s)
		}
		a, b, c := s.Circuits[0], s.Circuits[1], s.Circuits[2]
		if a.Host != "a.example" || a.State != breaker.Open || a.Refused != 3 || a.Trips != 1 || !a.NotBefore.After(a.Since) {
			t.Errorf("%+v", a)
		}
		if b.State != breaker.Closed || b.Calls != 7 || b.Failures != 7 || !b.NotBefore.IsZero() {
			t.Errorf("%+v", b)
		}
		if c.Host != "c.example" || !c.Forced || c.State != breaker.Open {
			t.Errorf("%+v", c)
		}
		text, err := json.Marshal(s)
		if err != nil || !strings.Contains(string(text), `"State":"open"`) {
			t.Errorf("%s, %v", text, err)
		}
		due(t, cs)
		h.set(status(200))
		get(rt, site)
		if a = cs.Stats().Circuits[0]; a.State != breaker.HalfOpen || a.Calls != 1 || a.Probes != 1 {
			t.Errorf("%+v", a)
		}
	})
}

func TestStateText(t *testing.T) {
	for s, want := range map[breaker.State]string{breaker.Closed: "closed", breaker.HalfOpen: "half-open", breaker.Open: "open", 9: "invalid"} {
		if s.String() != want {
			t.Errorf("%d is %q", s, s)
		}
	}
	for o, want := range map[breaker.Outcome]string{breaker.Default: "default", breaker.Success: "success", breaker.Failure: "failure", breaker.Ignore: "ignore", 9: "invalid"} {
		if o.String() != want {
			t.Errorf("%d is %q", o, o)
		}
	}
}

func TestHookMayCallBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var cs *breaker.Circuits
		var saw []breaker.State
		c := breaker.Config{OnStateChange: func(ch breaker.Change) {
			saw = append(saw, ch.To)
			if got := cs.State(ch.Host); got != ch.To {
				t.Errorf("told of %v, found %v", ch.To, got)
			}
			cs.Stats()
			if ch.To == breaker.Open && len(saw) == 1 {
				cs.Force("b.example", breaker.Open)
				cs.Release("b.example")
			}
		}}
		cs = circuits(t, c)
		h := new(host)
		rt := cs.Door(cs.Meter(h))
		open(t, cs, h, rt)
	})
}

// TestConcurrency hammers one host from many goroutines while it fails and
// recovers, is forced and released, and its settings change. It fails by a
// race, a deadlock, or a circuit that stays open.
func TestConcurrency(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var cs *breaker.Circuits
		hook := func(c breaker.Change) { cs.State(c.Host); cs.Stats() }
		cs = circuits(t, breaker.Config{Patience: time.Second, OnStateChange: hook})
		h := &host{answer: status(200)}
		rt := cs.Door(cs.Meter(h))
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				for n := range 200 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(10+(i*7+n*13)%3000)*time.Millisecond)
					r := httptest.NewRequest("GET", site, nil).WithContext(ctx)
					if resp, err := rt.RoundTrip(r); err == nil {
						resp.Body.Close()
					}
					cancel()
					time.Sleep(time.Duration((i*31+n*17)%20) * time.Millisecond)
				}
			})
		}
		for n := range 40 {
			time.Sleep(200 * time.Millisecond)
			switch n % 8 {
			case 0, 4:
				h.set(down)
			case 1, 5:
				h.set(func(r *http.Request) (*http.Response, error) {
					if err := testnet.Wait(r.Context(), time.Duration(n)*time.Millisecond); err != nil {
						return nil, err
					}
					return status(200)(r)
				})
			case 2:
				cs.Force("a.example", []breaker.State{breaker.Open, breaker.Closed}[n/8%2])
			case 3:
				cs.Release("a.example")
			case 6:
				cs.SetHost("a.example", breaker.Config{Patience: time.Second, MinCalls: n, OnStateChange: hook})
			case 7:
				cs.Stats()
			}
		}
		h.set(status(200))
		all.Wait()
		time.Sleep(5 * time.Minute)
		for range 3 {
			get(rt, site)
		}
		want(t, cs, breaker.Closed, "a healthy host")
		if s := cs.Stats(); len(s.Circuits) > 0 && s.Circuits[0].Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}
