package breaker

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/notsent"
)

// Each test here is a mistake that some other breaker makes.

const site = "http://a.example/"

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// open makes the circuit of site open, and due for a probe.
func open(t *testing.T, cs *Circuits, h *host, rt http.RoundTripper) {
	t.Helper()
	h.set(down)
	for range 100 {
		if cs.State("a.example") == Open {
			break
		}
		get(rt, site)
	}
	due(t, cs)
}

// due sleeps until the open period has ended.
func due(t *testing.T, cs *Circuits) {
	t.Helper()
	for _, c := range cs.Stats().Circuits {
		if c.Host == "a.example" && c.State != Closed {
			time.Sleep(time.Until(c.NotBefore))
			return
		}
	}
	t.Fatal("the circuit is not open")
}

func rig(t *testing.T, c Config) (*Circuits, *host, http.RoundTripper) {
	cs := circuits(t, c)
	h := &host{answer: status(200)}
	return cs, h, cs.Door(cs.Meter(h))
}

func want(t *testing.T, cs *Circuits, s State, when string) {
	t.Helper()
	if got := cs.State("a.example"); got != s {
		t.Fatalf("%s: circuit is %v, want %v", when, got, s)
	}
}

func TestPeerServerErrorIsSuccess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		h.set(status(500))
		for range 20 {
			get(rt, site)
		}
		want(t, cs, Open, "20 times 500")
	})
}

func TestPeerOneFailureOpens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		for _, a := range []answer{status(500), down} {
			h.set(a)
			for range 4 {
				get(rt, site)
			}
			want(t, cs, Closed, "four failures")
			h.set(status(200))
			get(rt, site)
		}
	})
}

func TestPeerThrottledAnswersOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		for _, a := range []answer{status(429), status(408), answerWith(503, "Retry-After", "1")} {
			h.set(a)
			for range 1000 {
				get(rt, site)
			}
			want(t, cs, Closed, "a thousand throttled answers")
		}
	})
}

func TestPeerCancellationOpens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		h.set(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			rt.RoundTrip(httptest.NewRequest("GET", site, nil).WithContext(ctx))
		}
		want(t, cs, Closed, "a hundred cancelled calls")
	})
}

// TestPeerLateResultsVote sends five calls before the outage that end well
// during half-open, and fifty that end badly after it has closed.
func TestPeerLateResultsVote(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		gate := make(chan answer)
		h.set(func(r *http.Request) (*http.Response, error) { return (<-gate)(r) })
		for range 55 {
			go get(rt, site)
		}
		synctest.Wait()
		open(t, cs, h, rt)
		h.set(status(200))
		get(rt, site)
		want(t, cs, HalfOpen, "one probe")
		for range 5 {
			gate <- status(200)
		}
		synctest.Wait()
		want(t, cs, HalfOpen, "five late successes")
		get(rt, site)
		get(rt, site)
		want(t, cs, Closed, "three probes")
		for range 50 {
			gate <- down
		}
		synctest.Wait()
		want(t, cs, Closed, "fifty late failures")
	})
}

func TestPeerCancelledProbeCloses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{Probes: 1})
		open(t, cs, h, rt)
		h.set(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		for range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			rt.RoundTrip(httptest.NewRequest("GET", site, nil).WithContext(ctx))
			want(t, cs, HalfOpen, "a cancelled probe")
		}
		h.set(status(200))
		get(rt, site)
		want(t, cs, Closed, "a good probe after cancelled ones")
	})
}

func TestPeerPanickingProbeWedges(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("base") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cs, h, rt := rig(t, Config{})
				open(t, cs, h, rt)
				for range 10 {
					h.set(func(r *http.Request) (*http.Response, error) { end(); return nil, nil })
					done := make(chan bool)
					go func() {
						defer close(done)
						defer func() { recover() }()
						get(rt, site)
					}()
					<-done
					want(t, cs, HalfOpen, "after "+name)
				}
				h.set(status(200))
				for range 3 {
					if _, err := get(rt, site); err != nil {
						t.Fatal(err)
					}
				}
				want(t, cs, Closed, "good probes")
			})
		})
	}
}

// TestPeerHungProbeWedges has a probe that never comes back.
func TestPeerHungProbeWedges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		open(t, cs, h, rt)
		gate := make(chan answer)
		h.set(func(r *http.Request) (*http.Response, error) { return (<-gate)(r) })
		for range 10 { // more than Probes: lost ones use up nothing
			go get(rt, site)
			synctest.Wait()
			if _, err := get(rt, site); notsent.Refused(err) != notsent.Door {
				t.Fatalf("beside a probe: %v", err)
			}
			time.Sleep(15 * time.Second)
		}
		h.set(status(200))
		for range 3 {
			if _, err := get(rt, site); err != nil {
				t.Fatal(err)
			}
		}
		want(t, cs, Closed, "good probes beside lost ones")
		for range 10 {
			gate <- down
		}
		synctest.Wait()
		want(t, cs, Closed, "lost probes came back")
	})
}

// TestPeerProbeOfAnotherTimeHoldsThePlace: a lost probe comes back and closes
// the circuit while another is out; when it opens again that one is history.
func TestPeerProbeOfAnotherTimeHoldsThePlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{Probes: 1})
		open(t, cs, h, rt)
		first, second := make(chan bool), make(chan bool)
		h.set(func(r *http.Request) (*http.Response, error) { <-first; return status(200)(r) })
		go get(rt, site)
		time.Sleep(15 * time.Second)
		h.set(func(r *http.Request) (*http.Response, error) { <-second; return status(200)(r) })
		go get(rt, site)
		synctest.Wait()
		close(first)
		synctest.Wait()
		want(t, cs, Closed, "the lost probe was good")
		open(t, cs, h, rt)
		h.set(status(200))
		if code, err := get(rt, site); code != 200 {
			t.Errorf("a new probe: %v", err)
		}
		close(second)
	})
}

// TestPeerSlowProbeNeverCounts has probes that take longer than their lease:
// their results count all the same.
func TestPeerSlowProbeNeverCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{Window: 10 * time.Second})
		open(t, cs, h, rt)
		h.set(func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Minute)
			return status(200)(r)
		})
		for range 3 {
			get(rt, site)
		}
		want(t, cs, Closed, "three slow probes")
	})
}

func TestPeerHalfOpenLetsManyIn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		open(t, cs, h, rt)
		now, most := 0, 0
		mu := make(chan bool, 1)
		h.set(func(r *http.Request) (*http.Response, error) {
			mu <- true
			now++
			most = max(most, now)
			<-mu
			time.Sleep(time.Millisecond)
			mu <- true
			now--
			<-mu
			return answerWith(503, "Retry-After", "0")(r) // never closes
		})
		before := h.calls.Load()
		done := make(chan bool)
		for i := range 500 {
			go func() {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond)
				get(rt, site)
				done <- true
			}()
		}
		for range 500 {
			<-done
		}
		if most != 1 || h.calls.Load() == before {
			t.Errorf("%d probes at a time, %d in all", most, h.calls.Load()-before)
		}
	})
}

// TestPeerSlowFailuresAreLost has calls that outlast a window of 10 s, which
// weir.New would not allow: they count nevertheless.
func TestPeerSlowFailuresAreLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{Window: 10 * time.Second})
		h.set(func(r *http.Request) (*http.Response, error) {
			time.Sleep(30 * time.Second)
			return nil, errReset
		})
		for range 100 {
			go get(rt, site)
			time.Sleep(time.Second)
		}
		if n := cs.Stats().Circuits[0].Refused; n < 30 {
			t.Errorf("%d refused of 100", n)
		}
		time.Sleep(time.Minute)
	})
}

// TestPeerConsecutiveDecays has one failure every 4 s in a window of 10 s.
func TestPeerConsecutiveDecays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{Window: 10 * time.Second})
		h.set(down)
		for range 5 {
			want(t, cs, Closed, "fewer than five")
			get(rt, site)
			time.Sleep(4 * time.Second)
		}
		want(t, cs, Open, "five in a row, 4 s apart")
	})
}

func TestPeerHookDeadlocks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var cs *Circuits
		var saw []State
		c := Config{OnStateChange: func(ch Change) {
			saw = append(saw, ch.To)
			if got := cs.State(ch.Host); got != ch.To {
				t.Errorf("told of %v, found %v", ch.To, got)
			}
			cs.Stats()
			if ch.To == Open && len(saw) == 1 {
				cs.Force("b.example", Open)
				cs.Release("b.example")
			}
		}}
		cs = circuits(t, c)
		h := new(host)
		rt := cs.Door(cs.Meter(h))
		open(t, cs, h, rt)
	})
}

func TestPeerStaleCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{Window: 10 * time.Second})
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

// TestPeerRefusalIsRetried: a refusal says of itself that it is one, also
// through the wrapping of the layer that made the trip.
func TestPeerRefusalIsRetried(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		h.set(down)
		for range 5 {
			get(rt, site)
		}
		_, err := get(rt, site)
		if notsent.Refused(err) != notsent.Door || !errors.Is(err, notsent.Err) {
			t.Errorf("the Door's refusal: %#v", err)
		}
		_, err = get(cs.Meter(h), site)
		if notsent.Refused(err) != notsent.Meter || !errors.Is(err, notsent.Err) {
			t.Errorf("the Meter's refusal: %#v", err)
		}
	})
}

func TestPeerOneCircuitForAllHosts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		open(t, cs, h, rt)
		h.set(status(200))
		for _, url := range []string{"http://b.example/", "http://a.example:8080/", "https://sub.a.example/"} {
			if code, err := get(rt, url); code != 200 {
				t.Errorf("%s: %v", url, err)
			}
		}
	})
}

func TestPeerNeverEvicts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs := circuits(t, Config{})
		h := &host{answer: down}
		m := cs.Meter(h).(*meter)
		m.below.Hosts.Resize(100)
		rt := cs.Door(m)
		for round := range 3 {
			for i := range 1000 {
				get(rt, "http://h"+string(rune('a'+round))+strconv.Itoa(i)+".example/")
			}
			if n := cs.Stats().Hosts; n > 100 {
				t.Fatalf("%d records", n)
			}
			time.Sleep(time.Minute)
		}
		if code, _ := get(rt, "http://hc999.example/"); code != 0 || len(cs.Stats().Circuits) == 0 {
			t.Error("the last host has no circuit")
		}
	})
}

// TestPeerForgetsOpenCircuit fills the table while one circuit is open.
func TestPeerForgetsOpenCircuit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs := circuits(t, Config{OpenFor: time.Hour, MaxOpenFor: time.Hour})
		h := &host{answer: down}
		m := cs.Meter(h).(*meter)
		m.below.Hosts.Resize(10)
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
		want(t, cs, Open, "after 2000 other hosts")
	})
}

// TestPeerLockstep: circuits that open together do not probe together.
func TestPeerLockstep(t *testing.T) {
	seen := make(map[time.Duration]bool)
	for range 100 {
		d := jitter(time.Second, 0, time.Minute)
		if d < 800*time.Millisecond || d > 1200*time.Millisecond {
			t.Fatalf("%v", d)
		}
		seen[d] = true
		if d = jitter(time.Minute, 0, time.Minute); d < 48*time.Second || d > time.Minute {
			t.Fatalf("at the longest: %v", d)
		}
		if d = jitter(time.Second, 10*time.Second, time.Minute); d < 10*time.Second || d > 12*time.Second {
			t.Fatalf("with Retry-After: %v", d)
		}
		if d = jitter(time.Second, 1<<62, time.Minute); d != time.Minute {
			t.Fatalf("with a huge Retry-After: %v", d)
		}
	}
	if len(seen) < 90 {
		t.Errorf("%d different periods of 100", len(seen))
	}
}

func TestPeerIgnoresRetryAfter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		h.set(answerWith(500, "Retry-After", "20"))
		for range 20 {
			get(rt, site)
		}
		_, err := get(rt, site)
		var e *Error
		if !errors.As(err, &e) || e.RetryAfter < 20*time.Second || e.RetryAfter > 24*time.Second {
			t.Errorf("opened by Retry-After 20: %v", err)
		}
		due(t, cs)
		h.set(answerWith(503, "Retry-After", "30"))
		get(rt, site)
		want(t, cs, HalfOpen, "a probe was throttled")
		if _, err = get(rt, site); !errors.As(err, &e) || e.RetryAfter != 30*time.Second || e.State != HalfOpen {
			t.Errorf("probe answered Retry-After 30: %v", err)
		}
		h.set(answerWith(503, "Retry-After", "86400"))
		time.Sleep(30 * time.Second)
		get(rt, site)
		if _, err = get(rt, site); !errors.As(err, &e) || e.RetryAfter != time.Minute {
			t.Errorf("a day: %v", err)
		}
	})
}

// TestPeerReloadForgets: settings of one host leave the others' circuits be.
func TestPeerReloadForgets(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		open(t, cs, h, rt)
		if err := cs.SetHost("*.other.example", Config{MinCalls: 3}); err != nil {
			t.Fatal(err)
		}
		want(t, cs, Open, "another host's settings")
		cs.SetHost("a.example", Config{MinCalls: 3})
		cs.SetHost("b.example", Config{MinCalls: 3})
		want(t, cs, Closed, "its own settings are new")
		h.set(status(500))
		for range 3 {
			get(rt, site)
		}
		want(t, cs, Open, "its own settings")
	})
}

// TestPeerReloadMixes: an attempt under other settings neither counts nor
// brings those settings back.
func TestPeerReloadMixes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{Consecutive: 1})
		gate := make(chan bool)
		h.set(func(r *http.Request) (*http.Response, error) { <-gate; return down(r) })
		for range 3 {
			go get(rt, site)
		}
		synctest.Wait()
		cs.SetHost("a.example", Config{Consecutive: 2})
		h.set(down)
		get(rt, site)
		close(gate)
		synctest.Wait()
		if s := cs.Stats().Circuits; len(s) != 1 || s[0].Failures != 1 {
			t.Errorf("%+v", s)
		}
		get(rt, site)
		want(t, cs, Open, "two failures under the new settings")
	})
}

// TestPeerDoubleReport: an attempt counts once.
func TestPeerDoubleReport(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{Consecutive: -1, MinCalls: 10})
		h.set(status(500))
		for i := range 9 {
			resp, _ := rt.RoundTrip(httptest.NewRequest("GET", site, nil))
			resp.Body.Close()
			resp.Body.Close()
			if got := cs.Stats().Circuits[0].Failures; got != i+1 {
				t.Fatalf("%d failures after %d", got, i+1)
			}
		}
		want(t, cs, Closed, "nine failures")
	})
}
