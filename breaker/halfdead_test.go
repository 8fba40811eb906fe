package breaker_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhttp/weir/breaker"
)

// TestHalfDeadHosts: a host that fails a share of its calls at random serves
// the rest, or nearly so. One that shows no life is left alone.
func TestHalfDeadHosts(t *testing.T) {
	const perSecond, seconds, seeds = 100, 60, 5
	for _, x := range []struct{ fails, served, sent float64 }{
		{.3, .69, 1}, {.5, .49, 1}, {.7, .29, 1}, {.8, .17, 1}, {1, 0, .015}, // a hundredth, and what opened it
	} {
		served, sent := 0, 0
		for seed := range uint64(seeds) {
			bubble(t, func(t *testing.T) {
				_, h, rt := rig(t, breaker.Config{})
				h.set(failingAtRandom(seed, x.fails))
				var good atomic.Int64
				load(t, rt, perSecond, seconds*time.Second, func(int) {
					if code, _ := get(rt, site); code == 200 {
						good.Add(1)
					}
				})
				served += int(good.Load())
				sent += int(h.calls.Load())
			})
		}
		const all = perSecond * seconds * seeds
		got := fmt.Sprintf("%.0f %% fail: of all calls %.3f were sent and %.3f served", 100*x.fails, float64(sent)/all, float64(served)/all)
		if t.Log(got); float64(served) < x.served*all || float64(sent) > x.sent*all {
			t.Errorf("%s, want at most %.3f and at least %.3f", got, x.sent, x.served)
		}
	}
}

// failingAtRandom takes 40 ms, at half of which it is known how it ends.
func failingAtRandom(seed uint64, share float64) answer {
	random := rand.New(rand.NewPCG(seed, 5))
	var mu sync.Mutex
	return func(r *http.Request) (*http.Response, error) {
		time.Sleep(20 * time.Millisecond)
		mu.Lock()
		bad := random.Float64() < share
		mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		if bad {
			return status(503)(r)
		}
		return status(200)(r)
	}
}

// TestHalfOpenVote: one good probe outweighs six failed ones, but the first
// decides. With a FailureRate, after a host has shown life, failed probes are
// outvoted by good ones as long as they are less than that of all; if nothing
// was good lately, the first one decides.
func TestHalfOpenVote(t *testing.T) {
	half := breaker.Config{FailureRate: .5}
	for _, x := range []struct {
		name, calls string // g: good, b: bad, .: until a probe may go
		c           breaker.Config
		want        breaker.State
		reason      string
	}{
		{"good", "ggg", half, breaker.Closed, "3 good probes"},
		{"dead", "b", half, breaker.Open, "a probe failed: status 500"},
		{"alive at first", "gb", half, breaker.HalfOpen, "the open period has ended"},
		{"two of five", "gbgbg", half, breaker.Closed, "3 good probes and 2 bad"},
		{"three of five", "gbgbb", half, breaker.Open, "3 of 5 probes failed: status 500"},
		{"bad first, life in the last period", "gbbb.bg", half, breaker.HalfOpen, "the open period has ended"},
		{"five in a row", "gbbb.bb", half, breaker.Open, "2 of 2 probes failed: status 500"},
		{"two in a row of Consecutive 2", "gbb", breaker.Config{Consecutive: 2, FailureRate: .5}, breaker.Open, "2 of 3 probes failed: status 500"},
		{"one in seven", "gbbbbbbgbg", breaker.Config{}, breaker.Closed, "3 good probes and 7 bad"},
		{"one in eight", "gbbbbbbb", breaker.Config{}, breaker.Open, "7 of 8 probes failed: status 500"},
		{"bad at first", "b.gbg", breaker.Config{}, breaker.HalfOpen, "the open period has ended"},
		{"bad at first, no life", "b", breaker.Config{}, breaker.Open, "a probe failed: status 500"},
		{"no run", "gbbb.bg", breaker.Config{Consecutive: -1, MinCalls: 1}, breaker.HalfOpen, "the open period has ended"},
		{"a low FailureRate", "gb", breaker.Config{FailureRate: .25}, breaker.Open, "a probe failed: status 500"},
		{"a high one", "gbbbbgbbbbg", breaker.Config{FailureRate: .75}, breaker.Closed, "3 good probes and 8 bad"},
		{"a high one, reached", "gbbgbbb", breaker.Config{FailureRate: .6}, breaker.Open, "5 of 7 probes failed: status 500"},
		{"one probe", "g", breaker.Config{Probes: 1}, breaker.Closed, "1 good probe"},
		{"one probe, slow", "s", breaker.Config{Probes: 1, SlowCall: time.Second}, breaker.Open, "1 slow probe of 1"},
		{"one probe of three, slow", "sgg", breaker.Config{SlowCall: time.Second, SlowRate: .3}, breaker.Open, "1 slow probe of 3"},
		{"one probe of three, slower than few", "sgg", breaker.Config{SlowCall: time.Second, SlowRate: .4}, breaker.Closed, "3 good probes"},
		{"one probe, bad", "b", breaker.Config{Probes: 1, Consecutive: 100, MinCalls: 1}, breaker.Open, "a probe failed: status 500"},
	} {
		bubble(t, func(t *testing.T) {
			cs, h, rt := rig(t, x.c)
			open(t, cs, h, rt)
			for _, call := range x.calls {
				if !h.plays(t, cs, call) {
					continue
				}
				if _, err := get(rt, site); err != nil {
					t.Fatalf("%s: %v", x.name, err)
				}
			}
			want(t, cs, x.want, x.name)
			if got := cs.Stats().Circuits[0].Reason; got != x.reason {
				t.Errorf("%s: because of %q, want %q", x.name, got, x.reason)
			}
		})
	}
}

// TestProbesAreTheFirstCalls: a circuit that closes although a probe failed
// has counted its probes; one that had no bad probe has counted nothing.
func TestProbesAreTheFirstCalls(t *testing.T) {
	for _, x := range []struct {
		calls           string
		total, failures uint64
	}{{"ggg", 0, 0}, {"gggg", 0, 0}, {"gbgg", 4, 1}, {"gbgbg", 5, 2}, {"gbgbgg", 6, 2}} {
		bubble(t, func(t *testing.T) {
			cs, h, rt := rig(t, breaker.Config{MinCalls: 1})
			open(t, cs, h, rt)
			for _, call := range x.calls {
				if h.set(status(200)); call == 'b' {
					h.set(status(500))
				}
				get(rt, site)
			}
			want(t, cs, breaker.Closed, x.calls)
			if s := cs.Stats().Circuits; len(s) != 1 || uint64(s[0].Calls) != x.total || uint64(s[0].Failures) != x.failures {
				t.Errorf("%s: %+v", x.calls, s)
			}
		})
	}
}
