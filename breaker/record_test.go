package breaker_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
)

func TestFailuresLeaveTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Window: 10 * time.Second})
		h.set(status(500))
		for range 10 {
			get(rt, site)
		}
		if got := cs.Stats().Circuits[0].Failures; got != 10 {
			t.Errorf("%d failures, want 10", got)
		}
		time.Sleep(20 * time.Second)
		if got := cs.Stats().Circuits[0].Failures; got != 0 {
			t.Errorf("%d failures after two windows, want 0", got)
		}
	})
}

func TestEachHostHasItsOwnCircuit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		open(t, cs, h, rt)
		h.set(status(200))
		for _, url := range []string{"http://b.example/", "http://a.example:8080/", "https://sub.a.example/"} {
			if code, err := get(rt, url); code != 200 {
				t.Errorf("%s: %v", url, err)
			}
		}
	})
}

func TestIdleCircuitsMakeRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs := circuits(t, breaker.Config{})
		h := &host{answer: down}
		m := cs.Meter(h)
		tableOf(m).Resize(100)
		rt := cs.Door(m)
		for round := range 3 {
			for i := range 1000 {
				get(rt, "http://h"+string(rune('a'+round))+strconv.Itoa(i)+".example/")
			}
			if n := cs.Stats().Kept; n > 100 {
				t.Fatalf("%d records", n)
			}
			time.Sleep(time.Minute)
		}
		get(rt, "http://last.example/")
		if !slices.ContainsFunc(cs.Stats().Circuits, func(c breaker.CircuitStats) bool { return c.Host == "last.example" }) {
			t.Error("the last host has no circuit: those that are idle did not make room")
		}
	})
}

// TestOpenCircuitOutlivesStrangers fills the table while one circuit is open.
func TestOpenCircuitOutlivesStrangers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs := circuits(t, breaker.Config{OpenFor: time.Hour, MaxOpenFor: time.Hour})
		h := &host{answer: down}
		m := cs.Meter(h)
		tableOf(m).Resize(10)
		rt := cs.Door(m)
		for range 5 {
			get(rt, site)
		}
		h.set(status(200))
		for i := range 1000 {
			get(rt, "http://h"+strconv.Itoa(i)+".example/")
		}
		time.Sleep(40 * time.Minute)
		for i := range 1000 {
			get(rt, "http://i"+strconv.Itoa(i)+".example/")
		}
		want(t, cs, breaker.Open, "after 2000 other hosts")
	})
}

// TestSettingsOfOneHostLeaveOthersBe: settings of one host leave the others' circuits be.
func TestSettingsOfOneHostLeaveOthersBe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		open(t, cs, h, rt)
		if err := cs.SetHost("*.other.example", breaker.Config{MinCalls: 3}); err != nil {
			t.Fatal(err)
		}
		want(t, cs, breaker.Open, "another host's settings")
		cs.SetHost("a.example", breaker.Config{MinCalls: 3, FailureRate: .5})
		cs.SetHost("b.example", breaker.Config{MinCalls: 3})
		want(t, cs, breaker.Closed, "its own settings are new")
		h.set(status(500))
		for range 3 {
			get(rt, site)
		}
		want(t, cs, breaker.Open, "its own settings")
	})
}

// TestAttemptUnderOldSettingsDoesNotCount: an attempt under other settings neither counts nor
// brings those settings back.
func TestAttemptUnderOldSettingsDoesNotCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Consecutive: 1})
		gate := make(chan bool)
		h.set(func(r *http.Request) (*http.Response, error) { <-gate; return down(r) })
		for range 3 {
			go get(rt, site)
		}
		synctest.Wait()
		cs.SetHost("a.example", breaker.Config{Consecutive: 2})
		h.set(down)
		get(rt, site)
		close(gate)
		synctest.Wait()
		if s := cs.Stats().Circuits; len(s) != 1 || s[0].Failures != 1 {
			t.Errorf("%+v", s)
		}
		get(rt, site)
		want(t, cs, breaker.Open, "two failures under the new settings")
	})
}

// TestAnAttemptCountsOnce: an attempt counts once.
func TestAnAttemptCountsOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Consecutive: -1, MinCalls: 10})
		h.set(status(500))
		for i := range 9 {
			resp, _ := rt.RoundTrip(httptest.NewRequest("GET", site, nil))
			resp.Body.Close()
			resp.Body.Close()
			if got := cs.Stats().Circuits[0].Failures; got != i+1 {
				t.Fatalf("%d failures after %d", got, i+1)
			}
		}
		want(t, cs, breaker.Closed, "nine failures")
	})
}
