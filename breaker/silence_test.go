package breaker_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
)

// TestSilenceBindsItsRoutes: a circuit that silence alone has opened refuses
// the routes that were silent, and lets others ask. What becomes of one that
// asks decides for all.
func TestSilenceBindsItsRoutes(t *testing.T) {
	for _, x := range []struct {
		name   string
		before string // silent
		other  answer // on route q, then
		want   breaker.State
		bound  string
		free   string
	}{
		{"nobody asks", "aaaaa", nil, breaker.Open, "a", "qxyz"},
		{"two routes are silent", "ababa", nil, breaker.Open, "ab", "qxyz"},
		{"an answer", "aaaaa", status(200), breaker.Closed, "", "aqxyz"},
		{"any answer", "aaaaa", status(500), breaker.Closed, "", "aqxyz"},
		{"a refusal", "aaaaa", status(429), breaker.Closed, "", "aqxyz"},
		{"silence", "aaaaa", silentOn("/q"), breaker.Open, "aq", "xyz"},
		{"a reset", "aaaaa", down, breaker.Open, "aqxyz", ""},
		{"nothing, as its caller leaves", "aaaaa", failing(context.Canceled), breaker.Open, "a", "qxyz"},
		{"too many silent routes", "abcde", nil, breaker.Open, "abcdeqxyz", ""},
		{"one too many", "abcda", silentOn("/q"), breaker.Open, "abcdqxyz", ""},
		{"more than silence, before an answer", "aarbbbbbb", nil, breaker.Open, "ab", "qxyz"},
		{"more than silence in the run", "aaaar", nil, breaker.Open, "arqxyz", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cs, h, rt := rig(t, breaker.Config{OpenFor: time.Hour, MaxOpenFor: time.Hour})
				for _, path := range x.before {
					if h.set(silentOn("/" + string(path))); path == 'r' {
						h.set(down)
					}
					asks(t, rt, string(path))
					if strings.HasSuffix(x.name, "before an answer") && path == 'r' { // the host answers once
						h.set(status(200))
						asks(t, rt, "s")
					}
				}
				want(t, cs, breaker.Open, x.before+" had no answer")
				if x.other != nil {
					h.set(x.other)
					if err := patiently(t, rt, "/q"); refused(err) {
						t.Fatal(err)
					}
				}
				want(t, cs, x.want, x.name)
				h.set(failing(context.Canceled)) // says nothing
				for i, routes := range []string{x.bound, x.free} {
					for _, r := range routes {
						if err := patiently(t, rt, "/"+string(r)); refused(err) != (i == 0) {
							t.Errorf("on route %c: %v", r, err)
						}
					}
				}
			})
		})
	}
}

// TestSilenceOfARouteIsItsOwn: silence during which the host answered on
// another route is no failure of the host; nor, for ten Windows, is the next
// of that route, until that is answered; unless the other route is silent, too.
func TestSilenceOfARouteIsItsOwn(t *testing.T) {
	const window = 30 * time.Second
	for _, x := range []struct {
		name     string
		answered time.Duration // after the silence began, on route q; its whole is 2 s
		route    string
		between  string        // another that is answered when the first silence is over
		pause    time.Duration // before the silences that follow
		later    string        // silent
		want     breaker.State
	}{
		{name: "answered at the end", answered: 1900 * time.Millisecond, route: "/q", later: "aaaaaaaaaa", want: breaker.Closed},
		{name: "answered in the middle", answered: time.Second, route: "/q", later: "aaaaaaaaaa", want: breaker.Closed},
		{name: "answered at the beginning", answered: 900 * time.Millisecond, route: "/q", later: "aaaaa", want: breaker.Open},
		{name: "answered on the same route", answered: 1900 * time.Millisecond, route: "/a", later: "aaaaa", want: breaker.Open},
		{name: "answered between two silences", answered: 100 * time.Millisecond, route: "/q", between: "/p", later: "aaaaaaaaaa", want: breaker.Closed},
		{name: "answered itself since", answered: 1900 * time.Millisecond, route: "/q", between: "/a", later: "aaaaa", want: breaker.Open},
		{name: "another route is silent since", answered: 1900 * time.Millisecond, route: "/q", later: "abbbbb", want: breaker.Open},
		{name: "the witness is silent since", answered: 1900 * time.Millisecond, route: "/q", later: "qaaaa", want: breaker.Open},
		{name: "remembered", answered: 1900 * time.Millisecond, route: "/q", pause: 2*window - 3*time.Second, later: "aaaaaaaaaa", want: breaker.Closed},
		{name: "forgotten", answered: 1900 * time.Millisecond, route: "/q", pause: 2 * window, later: "aaaaa", want: breaker.Open},
	} {
		t.Run(x.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cs, h, rt := rig(t, breaker.Config{Window: window})
				h.set(silentOn("/z"))
				asks(t, rt, "z") // now answers are counted
				h.set(func(r *http.Request) (*http.Response, error) {
					if r.Header.Get("Quick") != "" {
						return status(200)(r)
					}
					return silentOn("/a")(r)
				})
				var first sync.WaitGroup
				first.Go(func() { asks(t, rt, "a") })
				time.Sleep(x.answered)
				r := httptest.NewRequest("GET", "http://a.example"+x.route, nil)
				r.Header.Set("Quick", "1")
				if _, err := rt.RoundTrip(r); err != nil {
					t.Fatal(err)
				}
				first.Wait()
				if x.between != "" {
					time.Sleep(time.Second)
					h.set(status(200))
					asks(t, rt, x.between[1:])
				}
				h.set(silentOn("/a", "/b", "/q"))
				time.Sleep(x.pause)
				asks(t, rt, x.later)
				want(t, cs, x.want, x.name)
			})
		})
	}
}

// TestSilenceBesideAnswers: a route of which some calls are answered and some
// are not is overloaded and not dead. Its silence counts, but five in a row are
// none if one was answered while they waited.
func TestSilenceBesideAnswers(t *testing.T) {
	for answered, state := range map[time.Duration]breaker.State{1500 * time.Millisecond: breaker.Closed, 500 * time.Millisecond: breaker.Open} {
		bubble(t, func(t *testing.T) {
			cs, h, rt := rig(t, breaker.Config{})
			h.set(silentOn("/z", "/a"))
			asks(t, rt, "z") // now answers are counted
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() { asks(t, rt, "a") })
			}
			time.Sleep(answered)
			h.set(status(200))
			asks(t, rt, "a")
			all.Wait()
			want(t, cs, state, "answered after "+answered.String())
			if s := cs.Stats().Circuits[0]; state == breaker.Closed && s.Failures != 11 {
				t.Errorf("%d of 11 silences count", s.Failures)
			}
		})
	}
}

// TestTooManySilentRoutesExcuseNone: beyond four silent routes, an answer on
// another excuses none of them, and a probe's silence opens the circuit for all
// again.
func TestTooManySilentRoutesExcuseNone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Consecutive: -1})
		h.set(silentOn("/a", "/b", "/c", "/d", "/z"))
		asks(t, rt, "z") // now answers are counted
		var all sync.WaitGroup
		for _, r := range "abcda" {
			all.Go(func() { asks(t, rt, string(r)) })
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(1900 * time.Millisecond)
		asks(t, rt, "q")
		all.Wait()
		if s := cs.Stats().Circuits[0]; s.Failures != 3 {
			t.Errorf("%d silences count, want the first, and two since there are too many", s.Failures)
		}
	})
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		h.set(silentOn("/a", "/b", "/c", "/d", "/e"))
		asks(t, rt, "abcdae") // e may ask
		due(t, cs)
		asks(t, rt, "a")
		want(t, cs, breaker.Open, "a silent probe")
		if err := patiently(t, rt, "/q"); !refused(err) {
			t.Errorf("a sixth route may ask: %v", err)
		}
	})
}

// TestAskingIsNoProbe: what becomes of one that is not bound is no vote of the
// half-open circuit.
func TestAskingIsNoProbe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{OpenFor: 10 * time.Second})
		h.set(silentOn("/a"))
		asks(t, rt, "aaaaa")
		due(t, cs)
		gate := make(chan answer)
		h.set(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/a" {
				return (<-gate)(r)
			}
			return silentOn("/q")(r)
		})
		go get(rt, site+"a")
		synctest.Wait()
		asks(t, rt, "q")
		want(t, cs, breaker.HalfOpen, "the probe is away, another route was silent")
		gate <- down
	})
}

// TestSilenceIsRemembered: what is known of silent routes is kept for two Windows,
// though the table is full and others come.
func TestSilenceIsRemembered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Window: time.Minute})
		tableOf(rt).Resize(10)
		h.set(silentOn("/a"))
		asks(t, rt, "a")
		strangers := func(name string) (kept bool) {
			for i := range 1000 {
				get(rt, "http://"+name+strconv.Itoa(i)+".example/")
			}
			return slices.ContainsFunc(cs.Stats().Circuits, func(c breaker.CircuitStats) bool { return c.Host == "a.example" })
		}
		if time.Sleep(2*time.Minute - time.Second); !strangers("h") {
			t.Error("forgotten")
		}
		if time.Sleep(time.Second); strangers("i") {
			t.Error("kept for ever")
		}
	})
}

// TestSilenceOfThePastBindsNobody: a route that was silent long ago, or was
// answered since, may ask when another one's silence opens the circuit.
func TestSilenceOfThePastBindsNobody(t *testing.T) {
	for name, x := range map[string]struct {
		pause    time.Duration
		answered bool
		bound    bool
	}{
		"lately":         {pause: time.Second, bound: true},
		"answered since": {pause: time.Second, answered: true},
		"long ago":       {pause: time.Hour},
	} {
		bubble(t, func(t *testing.T) {
			cs, h, rt := rig(t, breaker.Config{OpenFor: time.Hour, MaxOpenFor: time.Hour})
			h.set(silentOn("/q"))
			asks(t, rt, "q")
			time.Sleep(x.pause)
			if h.set(status(200)); x.answered {
				asks(t, rt, "q")
				time.Sleep(time.Second)
			}
			h.set(silentOn("/a"))
			asks(t, rt, "aaaaa")
			want(t, cs, breaker.Open, name)
			if err := patiently(t, rt, "/q"); refused(err) != x.bound {
				t.Errorf("silent %s: %v", name, err)
			}
		})
	}
}

// TestSilenceIsBelievedAgain: what an answer on another route proved about a
// route holds for ten Windows, if that is silent all the time. Then its silence
// counts, and binds it alone.
func TestSilenceIsBelievedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		h.set(silentOn("/a"))
		asks(t, rt, "a") // counted
		done := make(chan bool)
		go func() { asks(t, rt, "a"); close(done) }()
		time.Sleep(1500 * time.Millisecond)
		if err := patiently(t, rt, "/q"); err != nil {
			t.Fatal(err)
		}
		answered := time.Now()
		<-done
		for time.Since(answered) < 10*breaker.DefaultWindow {
			asks(t, rt, "a")
			if s := cs.State("a.example"); s != breaker.Closed {
				t.Fatalf("%v after %v", s, time.Since(answered))
			}
		}
		asks(t, rt, "aaaaa")
		want(t, cs, breaker.Open, "five more")
		if err := patiently(t, rt, "/q"); err != nil {
			t.Error(err)
		}
		want(t, cs, breaker.Closed, "another route was answered")
		if got := cs.Stats().Circuits[0].Reason; got != "another route was answered" {
			t.Error(got)
		}
	})
}

// TestSilenceOfOneShard: another shard's answers prove nothing about it.
func TestSilenceOfOneShard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Shard: firstSegment})
		h.set(silentOn("/bad/x"))
		for range 5 {
			done := make(chan bool)
			go func() { patiently(t, rt, "/bad/x"); close(done) }()
			time.Sleep(1900 * time.Millisecond)
			if err := patiently(t, rt, "/good/x"); err != nil {
				t.Fatal(err)
			}
			<-done
		}
		want(t, cs, breaker.Open, "one shard is")
		if err := patiently(t, rt, "/bad/x"); !refused(err) {
			t.Error(err)
		}
		if err := patiently(t, rt, "/good/x"); err != nil {
			t.Error(err)
		}
	})
}

// TestSilentProbesBindTheirRoute: a host comes back from an outage, and its
// first probes are long polls. Their silence binds them; others ask, and an
// answer ends it all.
func TestSilentProbesBindTheirRoute(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		open(t, cs, h, rt)
		h.set(silentOn("/a"))
		for range 10 {
			asks(t, rt, "a")
			time.Sleep(500 * time.Millisecond)
		}
		if cs.State("a.example") == breaker.Closed {
			t.Fatal("closed by probes without an answer")
		}
		if err := patiently(t, rt, "/q"); err != nil {
			t.Error(err)
		}
		want(t, cs, breaker.Closed, "another route was answered")
	})
}

// TestManyRoutesTakeNoMemory: however many routes are silent, a circuit keeps no
// more than it was made with room for. It tells none of them apart then, and binds
// all.
func TestManyRoutesTakeNoMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const many = 1000
		cs, h, rt := rig(t, breaker.Config{Consecutive: -1, MinCalls: many, OpenFor: time.Hour, MaxOpenFor: time.Hour})
		h.set(takes(time.Hour))
		for i := range many {
			go patiently(t, rt, "/"+strings.Repeat("x", i))
		}
		time.Sleep(3 * time.Second)
		want(t, cs, breaker.Open, "a thousand silences")
		h.set(failing(context.Canceled))
		for _, path := range []string{"/", "/xxx", "/" + strings.Repeat("x", many-1), "/q"} {
			if err := patiently(t, rt, path); !refused(err) {
				t.Errorf("a route of %d letters may ask: %v", len(path)-1, err)
			}
		}
	})
}
