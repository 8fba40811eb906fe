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
