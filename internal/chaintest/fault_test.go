package chaintest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// A fault is a host that fails in some way, and the calls to it. Everything follows
// from its seed.
type fault struct {
	seed     uint64
	kind     string        // coin, stall, sharded, poison, dead
	p        float64       // how likely an attempt fails, or a call goes to the bad shard
	how      string        // it fails: 500, 502, 503, reset, hang
	after    int           // Retry-After, in seconds
	slow     time.Duration // what a failure takes longer
	trip     time.Duration
	every    time.Duration // stall: one each, of for
	stands   time.Duration
	dies     time.Duration // dead: when
	known    time.Duration // dead: when it is to be known
	quick    bool          // failures come at once
	hangs    bool          // stall: what comes is never answered
	pattern  string
	rate     float64 // calls a second
	burst    int
	deadline time.Duration
	method   string
	lasts    time.Duration
}

func (f *fault) String() string {
	s := fmt.Sprintf("%d: %s", f.seed, f.kind)
	switch f.kind {
	case "stall":
		s += fmt.Sprintf(" %v each %v, hangs %v", f.stands, f.every, f.hangs)
	default:
		s += fmt.Sprintf(" %.2f by %s", f.p, f.how)
		if f.after > 0 {
			s += fmt.Sprintf(", Retry-After %d", f.after)
		}
		if f.quick {
			s += ", at once"
		}
		if f.slow > 0 {
			s += fmt.Sprintf(", %v later", f.slow)
		}
	}
	return s + fmt.Sprintf("; %s %.1f/s (%d), deadline %v, %s, answers in %v", f.pattern, f.rate, f.burst, f.deadline, f.method, f.trip)
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func newFault(seed uint64) *fault {
	r := rand.New(rand.NewPCG(seed, 91))
	f := &fault{seed: seed, method: "GET"}
	f.kind = pick(r, "coin", "coin", "stall", "stall", "sharded", "poison")
	f.trip = time.Duration(5+r.IntN(200)) * time.Millisecond
	f.deadline = pick(r, 5*time.Second, 10*time.Second, 30*time.Second, time.Minute)
	f.pattern = pick(r, "steady", "steady", "bursts", "bursts", "two", "one")
	switch f.pattern {
	case "steady":
		f.rate = pick(r, 2., 10, 30, 100)
	case "bursts":
		f.burst = pick(r, 10, 50, 200, 400)
		f.rate = float64(f.burst) / pick(r, 2., 15, 60, 300)
	case "two":
	case "one":
		f.rate = 1
	}
	if r.IntN(4) == 0 {
		f.method = "POST"
	}
	switch f.kind {
	case "coin":
		f.p = .05 + .75*r.Float64()
		f.how = pick(r, "500", "500", "502", "503", "reset")
		if f.how != "reset" && f.how != "503" && r.IntN(2) == 0 {
			f.after = 1 + r.IntN(10)
		}
		if r.IntN(3) == 0 {
			f.slow = time.Duration(1+r.IntN(3000)) * time.Millisecond
		}
	case "stall":
		f.every = pick(r, 20*time.Second, time.Minute, 2*time.Minute)
		f.stands = time.Duration(float64(f.every) * (.05 + .12*r.Float64()))
		f.hangs = r.IntN(3) == 0
	case "sharded":
		f.p = pick(r, .05, .1, .2)
		f.how = pick(r, "500", "reset", "hang")
	case "poison":
		f.p = .05 + .35*r.Float64()
		f.how = pick(r, "500", "reset", "502")
		if r.IntN(3) == 0 {
			f.slow = time.Duration(1+r.IntN(3000)) * time.Millisecond
		}
	}
	f.quick = f.slow == 0 && r.IntN(2) == 0
	f.lasts = 6 * time.Minute
	if f.rate > 20 {
		f.lasts = 2 * time.Minute
	}
	return f
}

// tolls is what came of the calls. late is what a dead host got after that was to be known.
type tolls struct{ calls, served, late int }

// run calls the host through what wrap makes of it.
func (f *fault) run(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) (n tolls) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		r := rand.New(rand.NewPCG(f.seed, 92))
		start, poison := time.Now(), rand.New(rand.NewPCG(f.seed, 93))
		rt := wrap(testnet.Func(func(q *http.Request) (*http.Response, error) {
			at := time.Since(start)
			mu.Lock()
			took := time.Duration(float64(f.trip) * (.75 + .5*r.Float64()))
			bad := false
			switch f.kind {
			case "poison": // some requests always fail
				bad = q.Header.Get("X-Poison") != ""
			case "coin":
				bad = r.Float64() < f.p
			case "dead":
				if bad = at >= f.dies; at >= f.known {
					n.late++
				}
			case "sharded": // dead from the second minute on, for a minute
				bad = r.Float64() < f.p && at%(2*time.Minute) > time.Minute
			case "stall":
				if in := at % f.every; in > f.every-f.stands {
					if took += f.every - in; f.hangs {
						took = time.Hour
					}
				}
			}
			mu.Unlock()
			if bad {
				if f.quick {
					took = time.Millisecond
				}
				if took += f.slow; f.how == "hang" {
					took = time.Hour
				}
			}
			if err := testnet.Wait(q.Context(), took); err != nil {
				return nil, err
			}
			if !bad {
				return stub(q)
			}
			if f.how == "reset" {
				return nil, errors.New("connection reset")
			}
			status, _ := strconv.Atoi(f.how)
			h := http.Header{}
			if f.after > 0 {
				h.Set("Retry-After", strconv.Itoa(f.after))
			}
			return testnet.Answer(q, status, h, nil), nil
		}))
		var wg sync.WaitGroup
		call := func() {
			ctx, cancel := context.WithTimeout(t.Context(), f.deadline)
			defer cancel()
			q := get(t, "http://h/v1").WithContext(ctx)
			q.Method = f.method
			mu.Lock()
			if f.kind == "poison" && poison.Float64() < f.p {
				q.Header.Set("X-Poison", "1")
			}
			mu.Unlock()
			resp, err := rt.RoundTrip(q)
			mu.Lock()
			defer mu.Unlock()
			n.calls++
			if err == nil && resp.StatusCode == 200 {
				n.served++
			}
		}
		switch f.pattern {
		case "two":
			for range 2 {
				wg.Go(func() {
					for time.Since(start) < f.lasts {
						call()
						time.Sleep(100 * time.Millisecond)
					}
				})
			}
		case "bursts":
			for time.Since(start) < f.lasts {
				for range f.burst {
					wg.Go(call)
				}
				time.Sleep(time.Duration(float64(f.burst) / f.rate * 1e9))
			}
		default:
			for time.Since(start) < f.lasts {
				wg.Go(call)
				mu.Lock()
				next := time.Duration(r.ExpFloat64() / f.rate * 1e9)
				mu.Unlock()
				time.Sleep(next)
			}
		}
		wg.Wait()
	})
	return n
}

func (f *fault) weir(t *testing.T, c weir.Config) tolls {
	return f.run(t, func(base http.RoundTripper) http.RoundTripper { return must(weir.New(base, c))(t) })
}

// TestFaultsCostNoCalls: whatever kind of host fails, and however it is called, a circuit
// costs few of the calls that are served without one.
func TestFaultsCostNoCalls(t *testing.T) {
	hosts, poor := map[string]int{}, map[string]int{}
	for seed := range uint64(testnet.Drawn(40, 12)) {
		f := newFault(5001 + seed)
		off := weir.Config{}
		off.Breaker.Disable = true
		with, without := f.weir(t, weir.Config{}), f.weir(t, off)
		hosts[f.kind]++
		if float64(with.served)/float64(with.calls) < .95*float64(without.served)/float64(without.calls) {
			poor[f.kind]++
			t.Logf("served %d of %d, without a circuit %d of %d: %v", with.served, with.calls, without.served, without.calls, f)
		}
	}
	t.Logf("%v of %v", poor, hosts)
	for kind, n := range hosts { // those that a coin decides may meet with bad luck
		testnet.Judge(t, poor[kind] <= 1+n/8, "%d of %d hosts of kind %s served less than .95 of what they serve without a circuit, want at most %d", poor[kind], n, kind, 1+n/8)
	}
}

// TestADeadHostGetsAHundredth: however a host is dead, at most one in a hundred of its calls
// reaches it after the first second.
func TestADeadHostGetsAHundredth(t *testing.T) {
	for _, how := range []string{"500", "502", "reset"} {
		f := &fault{seed: 5, kind: "dead", how: how, method: "GET", pattern: "steady", rate: 100, trip: 50 * time.Millisecond, deadline: 10 * time.Second, dies: 10 * time.Second, known: 11 * time.Second, lasts: time.Minute}
		if n := f.weir(t, weir.Config{}); n.late > n.calls/100 {
			t.Errorf("dead by %s: %d of %d calls reached the host after the first second, want at most one in a hundred", how, n.late, n.calls)
		}
	}
}

// bursts calls f with each of several failures, as quick as answers, quicker and slower, by
// many calls at once every 15 s.
func (f fault) bursts(each func(f *fault)) {
	f.pattern, f.method, f.trip, f.deadline = "bursts", "GET", 100*time.Millisecond, 30*time.Second
	for _, f.how = range []string{"500", "reset"} {
		for _, f.after = range []int{0, 5} {
			for _, f.burst = range []int{20, 200} {
				for _, f.slow = range []time.Duration{0, 500 * time.Millisecond} {
					for _, f.quick = range []bool{false, true} {
						if f.rate = float64(f.burst) / 15; f.how == "500" || f.after == 0 {
							each(&f)
						}
					}
				}
			}
		}
	}
}

// TestBurstsCostNoCalls: of many calls at once as many are served as without a circuit, though
// half of the attempts fail at random. A circuit opens by bad luck in one of some thousand
// bursts, and costs that one a tenth.
func TestBurstsCostNoCalls(t *testing.T) {
	off := weir.Config{}
	off.Breaker.Disable = true
	for _, p := range []float64{.1, .3, .5} {
		var all, allWithout, calls float64
		fault{seed: 7, kind: "coin", p: p, lasts: 40 * time.Second}.bursts(func(f *fault) {
			with, without := f.weir(t, weir.Config{}), f.weir(t, off)
			all, allWithout, calls = all+float64(with.served), allWithout+float64(without.served), calls+float64(with.calls)
			if chance := math.Sqrt(float64(with.calls)); float64(with.served) < .85*float64(without.served)-chance {
				t.Errorf("served %d of %d, without a circuit %d: %v", with.served, with.calls, without.served, f)
			}
		})
		if all < .98*allWithout-math.Sqrt(calls) {
			t.Errorf("%v fail: served %v of %v, without a circuit %v", p, all, calls, allWithout)
		}
	}
}

// TestBurstsFindAHostDead: the first burst that a dead host gets opens its circuit. Of the
// following it gets one call in a hundred, and one a minute if they are few.
func TestBurstsFindAHostDead(t *testing.T) {
	const dies, known, lasts = 10 * time.Second, 25 * time.Second, 2 * time.Minute
	fault{seed: 7, kind: "dead", dies: dies, known: known, lasts: lasts}.bursts(func(f *fault) {
		n := f.weir(t, weir.Config{})
		if most := int(f.rate*(lasts-known).Seconds())/100 + 2; n.late > most {
			t.Errorf("%d of %d calls were sent, want %d at most: %v", n.late, n.calls, most, f)
		}
	})
}
