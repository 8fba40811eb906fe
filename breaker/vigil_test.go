package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
)

// forever is longer than anybody waits.
const forever = time.Hour

// wire is a Wire over a host that answers after as long as it says of a path at an
// instant, counted from its making. It notes when it was asked.
type wire struct {
	clocked
	begin time.Time
	takes func(path string, at time.Duration) time.Duration
	mu    sync.Mutex
	asked []time.Duration
}

func wired(f func(path string, at time.Duration) time.Duration) *wire {
	w := &wire{begin: time.Now(), takes: f}
	w.Func = w.answer
	return w
}

func (w *wire) answer(r *http.Request) (*http.Response, error) {
	at := time.Since(w.begin)
	w.mu.Lock()
	w.asked = append(w.asked, at)
	w.mu.Unlock()
	return takes(w.takes(r.URL.Path, at))(r)
}

// between is how often the host was asked from one instant to another.
func (w *wire) between(from, to time.Duration) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.asked {
		if at >= from && at < to {
			n++
		}
	}
	return n
}

// send1 sends a request that has so much time; 0: all.
func send1(t *testing.T, rt http.RoundTripper, path string, limit time.Duration) error {
	ctx := t.Context()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	resp, err := rt.RoundTrip(httptest.NewRequest("GET", site[:len(site)-1]+path, nil).WithContext(ctx))
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// A host that swallows all requests gets no more than one in a hundred from one
// second on, though nobody's time has run out yet. Nobody is refused before his
// time ends or that of five others has.
func TestABlackHoleIsLeftAloneWithinASecond(t *testing.T) {
	for _, perSecond := range []int{20, 200} {
		t.Run(fmt.Sprint(perSecond), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				const dies, lasts, limit = 5 * time.Second, 20 * time.Second, 10 * time.Second
				w := wired(func(_ string, at time.Duration) time.Duration {
					if at >= dies && at < dies+lasts {
						return forever
					}
					return 40 * time.Millisecond
				})
				cs := circuits(t, breaker.Config{})
				rt := cs.Door(cs.Meter(w))
				var back atomic.Int64
				back.Store(int64(forever))
				load(t, rt, perSecond, dies+lasts+10*time.Second, func(int) {
					begin := time.Since(w.begin)
					err := send1(t, rt, "/", limit)
					took := time.Since(w.begin) - begin
					switch {
					case err == nil && begin >= dies+lasts:
						for old := back.Load(); int64(begin) < old && !back.CompareAndSwap(old, int64(begin)); old = back.Load() {
						}
					case err != nil && begin >= dies && begin < dies+limit && begin+took < dies+limit:
						t.Errorf("refused after %v at %v: %v", took, begin, err)
					case err != nil && begin < dies:
						t.Errorf("lost at %v: %v", begin, err)
					}
				})
				arrivals := perSecond * int((lasts-time.Second)/time.Second)
				if n := w.between(dies+time.Second, dies+lasts); n > arrivals/100+1 {
					t.Errorf("%d of %d calls after the first second", n, arrivals)
				}
				if late := time.Duration(back.Load()) - dies - lasts; late > time.Duration(130/perSecond+1)*time.Second {
					t.Errorf("back after %v", late)
				}
			})
		})
	}
}

// Whoever is only slow is not kept from its work: nobody is refused, and nobody
// waits longer than until the host's first answer.
func TestASuspicionRefutedCostsNobodyHisCall(t *testing.T) {
	for _, takes := range []time.Duration{3 * time.Second, 20 * time.Second} {
		bubble(t, func(t *testing.T) {
			const slows = 5 * time.Second
			w := wired(func(_ string, at time.Duration) time.Duration {
				if at >= slows {
					return takes
				}
				return 40 * time.Millisecond
			})
			changes := 0
			cs := circuits(t, breaker.Config{OnStateChange: func(breaker.Change) { changes++ }})
			rt := cs.Door(cs.Meter(w))
			load(t, rt, 100, time.Minute, func(int) {
				begin := time.Now()
				if err := send1(t, rt, "/", 0); err != nil || time.Since(begin) > 2*takes {
					t.Errorf("%v after %v", err, time.Since(begin))
				}
			})
			if changes > 3 { // open, half-open, closed
				t.Errorf("%d changes", changes)
			}
			if n := w.between(slows+takes, slows+takes+100*time.Millisecond); n < 90*int(min(takes, breaker.DefaultWindow/2)/time.Second-1) {
				t.Errorf("%d went at the first answer", n)
			}
		})
	}
}

// Hosts and routes that are slow as they usually are, callers one after the other,
// few calls, and whoever was never answered are not suspected.
func TestWhoIsNotSuspected(t *testing.T) {
	quick := func(string, time.Duration) time.Duration { return 20 * time.Millisecond }
	from := func(at time.Duration, f func(path string) time.Duration) func(string, time.Duration) time.Duration {
		return func(path string, since time.Duration) time.Duration {
			if since < at {
				return 20 * time.Millisecond
			}
			return f(path)
		}
	}
	slow := func(d time.Duration) func(string) time.Duration { return func(string) time.Duration { return d } }
	for name, x := range map[string]struct {
		config    breaker.Config
		takes     func(path string, at time.Duration) time.Duration
		perSecond int
		paths     string // in turns, after five seconds; before: all of /a
		limit     time.Duration
		suspected bool
	}{
		"well":                {breaker.Config{}, quick, 100, "a", 0, false},
		"black hole":          {breaker.Config{}, from(5*time.Second, slow(forever)), 100, "a", 2 * time.Second, true},
		"a call every 300 ms": {breaker.Config{}, from(5*time.Second, slow(20*time.Second)), 3, "a", 0, false},
		"a pause shorter than that": {breaker.Config{}, func(_ string, at time.Duration) time.Duration {
			return max(20*time.Millisecond, 5400*time.Millisecond-at)
		}, 100, "a", 0, false},
		"a route that never answered": {breaker.Config{}, from(5*time.Second, slow(20*time.Second)), 50, "b", 0, false},
		"another route is answered": {breaker.Config{}, from(5*time.Second, func(p string) time.Duration {
			return map[string]time.Duration{"/a": 8 * time.Second, "/b": 20 * time.Millisecond}[p]
		}), 50, "aaaab", 0, false},
		"a host that never answered":   {breaker.Config{}, func(string, time.Duration) time.Duration { return 20 * time.Second }, 50, "a", 0, false},
		"three times as slow as usual": {breaker.Config{}, from(5*time.Second, slow(450*time.Millisecond)), 50, "a", 0, false},
		"Disable":                      {breaker.Config{Disable: true}, from(5*time.Second, slow(forever)), 100, "a", 2 * time.Second, false},
		"never wait":                   {breaker.Config{Patience: 1}, from(5*time.Second, slow(forever)), 100, "a", 2 * time.Second, false},
		"the classic rule":             {breaker.Config{FailureRate: .5}, from(5*time.Second, slow(forever)), 100, "a", 2 * time.Second, false},
		"first attempts pass":          {breaker.Config{RetriesOnly: true}, from(5*time.Second, slow(forever)), 100, "a", 2 * time.Second, false},
		"shards":                       {breaker.Config{Shard: firstSegment}, from(5*time.Second, slow(forever)), 100, "a", 2 * time.Second, false},
		"more failures are allowed":    {breaker.Config{Consecutive: 50}, from(5*time.Second, slow(forever)), 100, "a", 2 * time.Second, false},
		"callers who leave sooner":     {breaker.Config{}, from(5*time.Second, slow(forever)), 100, "a", 400 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := wired(x.takes)
				cs := circuits(t, x.config)
				rt := cs.Door(cs.Meter(w))
				go load(t, rt, x.perSecond, 6500*time.Millisecond, func(i int) {
					path := "a"
					if time.Since(w.begin) >= 5*time.Second {
						path = x.paths[i%len(x.paths):][:1]
					}
					_ = send1(t, rt, "/"+path, x.limit)
				})
				time.Sleep(6500 * time.Millisecond)
				if got := cs.State("a.example") != breaker.Closed; got != x.suspected {
					t.Errorf("suspected: %v, want %v", got, x.suspected)
				}
			})
		})
	}
}

// One caller after the other, and a batch that takes as long as batches lately
// did, are never held, however long they take.
func TestBatchesAreNotSuspected(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := wired(func(path string, at time.Duration) time.Duration {
			return map[string]time.Duration{"/batch": 5*time.Second + at/10, "/a": 20 * time.Millisecond}[path]
		})
		changes := 0
		cs := circuits(t, breaker.Config{OnStateChange: func(breaker.Change) { changes++ }})
		rt := cs.Door(cs.Meter(w))
		for range 100 {
			_ = send1(t, rt, "/a", 0)
		}
		_ = send1(t, rt, "/batch", 0)
		for range 3 {
			load(t, rt, 20, 10*time.Second, func(int) { _ = send1(t, rt, "/batch", 0) })
			time.Sleep(time.Minute)
		}
		w.takes = func(string, time.Duration) time.Duration { return 25 * time.Second }
		for range 5 {
			_ = send1(t, rt, "/a", 0)
		}
		if changes != 0 {
			t.Errorf("%d changes", changes)
		}
	})
}

// What is suspected because of one route binds that one: the others ask, and the
// answer to one of them lets all pass. If several are due, all wait.
func TestSuspicionBindsTheRoutesThatAreDue(t *testing.T) {
	for paths, free := range map[string]bool{"a": true, "aab": false} {
		bubble(t, func(t *testing.T) {
			w := wired(func(path string, at time.Duration) time.Duration {
				if at >= 5*time.Second && path != "/q" {
					return forever
				}
				return 20 * time.Millisecond
			})
			cs := circuits(t, breaker.Config{})
			rt := cs.Door(cs.Meter(w))
			go load(t, rt, 100, 6*time.Second, func(i int) { _ = send1(t, rt, "/"+paths[i%len(paths):][:1], 0) })
			_ = send1(t, rt, "/q", 0)
			time.Sleep(6 * time.Second)
			want(t, cs, breaker.Open, paths+" are not answered")
			if err := send1(t, rt, "/q", 100*time.Millisecond); err == nil != free {
				t.Errorf("%s: another route: %v", paths, err)
			}
			if free {
				want(t, cs, breaker.Closed, "another was answered")
			}
		})
	}
}

// From the fifth failure on a suspicion is an outage: newcomers are refused at
// once, and if there is a Fallback so are those who wait.
func TestASuspicionConfirmed(t *testing.T) {
	for _, fallback := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			w := wired(func(_ string, at time.Duration) time.Duration {
				if at >= 5*time.Second {
					return forever
				}
				return 20 * time.Millisecond
			})
			var c breaker.Config
			if fallback {
				c.Fallback = func(r *http.Request, err error) (*http.Response, error) { return status(203)(r) }
			}
			cs := circuits(t, c)
			rt := cs.Door(cs.Meter(w))
			go load(t, rt, 100, 5900*time.Millisecond, func(int) { _ = send1(t, rt, "/", 2*time.Second) })
			time.Sleep(6 * time.Second)
			want(t, cs, breaker.Open, "nobody was answered")
			begin := time.Now()
			err := send1(t, rt, "/", 3*time.Second)
			if took := time.Since(begin); fallback != (err == nil) || fallback && took > 1100*time.Millisecond || !fallback && took < 2900*time.Millisecond {
				t.Errorf("one that waited: %v after %v", err, took)
			}
			if !fallback && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("one that waited: %v", err)
			}
			begin = time.Now()
			if err := send1(t, rt, "/", time.Second); time.Since(begin) > 0 || !fallback && !refused(err) {
				t.Errorf("a newcomer: %v after %v", err, time.Since(begin))
			}
			if text := cs.Stats().Circuits[0].Reason; !strings.Contains(text, "failed: deadline") && !strings.Contains(text, "without an answer") {
				t.Errorf("because of %q", text)
			}
		})
	}
}

// hush is a host that answers each route after a time of its own, until it falls
// silent.
type hush struct {
	t     *testing.T
	cs    *breaker.Circuits
	meter http.RoundTripper
	takes map[string]time.Duration
	code  int
	still bool
}

func newHush(t *testing.T) *hush {
	h := &hush{t: t, cs: circuits(t, breaker.Config{}), takes: make(map[string]time.Duration), code: 200}
	h.meter = h.cs.Meter(&clocked{func(r *http.Request) (*http.Response, error) {
		if h.still {
			return takes(forever)(r)
		}
		if err := testnet.Wait(r.Context(), h.takes[r.URL.Path]); err != nil {
			return nil, err
		}
		return status(h.code)(r)
	}})
	h.answers("/", 0)
	h.answers("/", 0) // from the second answer on times are known
	return h
}

// answers has the host answer a request after took, and a second go by.
func (h *hush) answers(path string, took time.Duration) {
	h.t.Helper()
	h.takes[path], h.still = took, false
	if err := send1(h.t, h.meter, path, 0); err != nil {
		h.t.Fatal(err)
	}
	h.still = true
	time.Sleep(time.Second)
}

// ask sends n requests, which are not answered, and returns what ends the last.
func (h *hush) ask(path string, n int) (leave func()) {
	for range n {
		var ctx context.Context
		ctx, leave = context.WithCancel(h.t.Context())
		r := httptest.NewRequest("GET", site[:len(site)-1]+path, nil).WithContext(ctx)
		r.Body = nil
		go h.meter.RoundTrip(r)
		synctest.Wait()
	}
	return leave
}

// suspected reports whether one who comes now finds the host suspected.
func (h *hush) suspected() bool {
	h.ask("/asking", 1)
	return h.cs.State("a.example") != breaker.Closed
}

// due checks that a crowd on a route is due after d and not before.
func (h *hush) due(path string, d time.Duration) {
	h.t.Helper()
	h.ask(path, 5)
	if time.Sleep(d - 1); h.suspected() {
		h.t.Errorf("%.8s: due before %v", path, d)
	}
	if time.Sleep(1); !h.suspected() {
		h.t.Errorf("%.8s: not due after %v", path, d)
	}
}

// What is kept of a host's times is bounded, and routes beyond are one: it takes as
// long as the slowest of them. A slow answer counts for ten minutes.
func TestPacesAreBounded(t *testing.T) {
	name := func(i int) string { return "/" + strings.Repeat("x", i+1) }
	for i, want := range map[int]time.Duration{3: 500 * time.Millisecond, 50: 4 * 990 * time.Millisecond, 200: 4 * 990 * time.Millisecond} {
		bubble(t, func(t *testing.T) {
			h := newHush(t)
			for i := range 100 {
				h.answers(name(i), time.Duration(i)*10*time.Millisecond)
			}
			h.due(name(i), want)
		})
	}
	for more, want := range []time.Duration{4 * time.Second, 500 * time.Millisecond} {
		bubble(t, func(t *testing.T) {
			h := newHush(t)
			h.answers("/a", time.Second)
			time.Sleep(10*time.Minute - time.Second - time.Millisecond + time.Duration(more))
			h.answers("/a", time.Millisecond)
			h.due("/a", want)
		})
	}
}

// Those under way that count are those due first, each until it ends, or somebody
// is answered.
func TestThoseDueFirstCount(t *testing.T) {
	const due = 500 * time.Millisecond
	for name, x := range map[string]struct {
		ask       func(h *hush)
		after     time.Duration
		suspected bool
	}{
		"quick, not due":   {func(h *hush) { h.ask("/quick", 5) }, due - 1, false},
		"quick, due":       {func(h *hush) { h.ask("/quick", 5) }, due, true},
		"four":             {func(h *hush) { h.ask("/quick", 4) }, forever, false},
		"of unknown route": {func(h *hush) { h.ask("/unknown", 5) }, forever, false},
		"slow, not due":    {func(h *hush) { h.ask("/slow", 5) }, 4*time.Minute - 1, false},
		"slow, due":        {func(h *hush) { h.ask("/slow", 5) }, 4 * time.Minute, true},
		"slow and quick":   {func(h *hush) { h.ask("/slow", 5); h.ask("/quick", 5) }, due, true},
		"slow and quick, a slow one leaves": {func(h *hush) {
			leave := h.ask("/slow", 5)
			h.ask("/quick", 5)
			leave()
		}, due, true},
		"slow and quick, a quick one leaves": {func(h *hush) { h.ask("/slow", 5); h.ask("/quick", 5)() }, due, false},
		"all left": {func(h *hush) {
			h.ask("/quick", 1)()
			if synctest.Wait(); breaker.IsWatched(h.cs, "a.example") {
				h.t.Error("still watched")
			}
		}, forever, false},
		"one left, another came": {func(h *hush) {
			h.ask("/quick", 5)()
			synctest.Wait()
			h.ask("/quick", 1)
		}, due, true},
		"a slow one left, five quick": {func(h *hush) {
			leave := h.ask("/slow", 1)
			h.ask("/quick", 4)
			leave()
			synctest.Wait()
			h.ask("/quick", 1)
		}, due, true},
		"five more after an answer": {func(h *hush) {
			h.ask("/quick", 5)
			h.answers("/", 0)
			h.ask("/quick", 5)
		}, due, true},
		"in a second":           {func(h *hush) { h.ask("/quick", 4); time.Sleep(time.Second); h.ask("/quick", 1) }, due, true},
		"in more than a second": {func(h *hush) { h.ask("/quick", 4); time.Sleep(time.Second + 1); h.ask("/quick", 1) }, forever, false},
		"after a slow answer that was bad": {func(h *hush) {
			h.code = 500
			h.answers("/quick", time.Minute)
			h.ask("/quick", 5)
		}, due, true},
		"somebody is answered": {func(h *hush) {
			h.ask("/quick", 5)
			if h.answers("/", 0); breaker.IsWatched(h.cs, "a.example") {
				h.t.Error("still watched")
			}
		}, forever, false},
		"somebody is answered badly": {func(h *hush) {
			h.ask("/quick", 5)
			h.code = 500
			h.answers("/", 0)
		}, forever, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				h := newHush(t)
				h.answers("/quick", time.Millisecond)
				h.answers("/slow", time.Minute)
				x.ask(h)
				synctest.Wait()
				if time.Sleep(min(x.after, forever-time.Minute)); h.suspected() != x.suspected {
					t.Errorf("suspected: %v, want %v", !x.suspected, x.suspected)
				}
			})
		})
	}
}

// Many at once, some of whom leave, while the host stops and goes on: nothing is
// left behind, and all is as before afterwards.
func TestSuspicionUnderLoad(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := wired(func(_ string, at time.Duration) time.Duration {
			if at%(4*time.Second) >= 2*time.Second {
				return 2500 * time.Millisecond
			}
			return 20 * time.Millisecond
		})
		cs := circuits(t, breaker.Config{OnStateChange: func(c breaker.Change) { _ = c.Reason }})
		rt := cs.Door(cs.Meter(w))
		load(t, rt, 64*4, 20*time.Second, func(i int) {
			_ = send1(t, rt, "/"+string(rune('a'+i%3)), time.Duration(i%7)*time.Second/2)
		})
		w.takes = func(string, time.Duration) time.Duration { return 20 * time.Millisecond }
		time.Sleep(2 * time.Minute)
		for range 10 {
			_ = send1(t, rt, "/a", 2*time.Second)
			time.Sleep(30 * time.Second)
		}
		want(t, cs, breaker.Closed, "the host is well")
		if breaker.IsWatched(cs, "a.example") {
			t.Error("somebody is still awaited")
		}
		w.takes = func(string, time.Duration) time.Duration { return forever }
		for range 5 {
			go send1(t, rt, "/a", 0)
		}
		time.Sleep(10 * time.Second) // four times as long as it lately took
		want(t, cs, breaker.Closed, "nobody asks")
		go send1(t, rt, "/a", 0)
		synctest.Wait()
		want(t, cs, breaker.Open, "the host has fallen silent")
	})
}

// A hedge, and one whose body is still being sent, say nothing of the host's
// silence.
func TestWhoIsNotAwaited(t *testing.T) {
	for name, x := range map[string]struct {
		send      func(r *http.Request, t *trip.Trip) *http.Request
		suspected bool
	}{
		"a request": {func(r *http.Request, _ *trip.Trip) *http.Request { return r }, true},
		"a hedge":   {func(r *http.Request, t *trip.Trip) *http.Request { t.Hedge = true; return r }, false},
		"an upload": {func(r *http.Request, _ *trip.Trip) *http.Request { r.Body = testnet.NewBody("x"); return r }, false},
		"a body in memory": {func(r *http.Request, _ *trip.Trip) *http.Request {
			r.Body = httptest.NewRequest("POST", site, strings.NewReader("x")).Body
			return r
		}, true},
	} {
		bubble(t, func(t *testing.T) {
			h := newHush(t)
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					r, tr, _ := trip.Begin(httptest.NewRequest("GET", site, nil).WithContext(ctx), trip.Throttle, trip.Below(h.meter).Hosts)
					defer tr.End(nil)
					r.Body = nil
					h.meter.RoundTrip(x.send(r, tr))
				})
			}
			time.Sleep(500 * time.Millisecond)
			if got := h.suspected(); got != x.suspected {
				t.Errorf("%s: suspected: %v, want %v", name, got, x.suspected)
			}
			cancel()
			all.Wait()
		})
	}
}
