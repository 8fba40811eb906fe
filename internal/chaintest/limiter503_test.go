package chaintest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// limitReq is nginx's limit_req with nodelay, which says 503 and no more than header.
func limitReq(rate, burst float64, trip time.Duration, header http.Header) testnet.Func {
	var mu sync.Mutex
	excess, last := 0.0, time.Time{}
	return func(r *http.Request) (*http.Response, error) {
		time.Sleep(trip / 2)
		defer time.Sleep(trip / 2)
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		e := max(0, excess-now.Sub(last).Seconds()*rate+1)
		if last.IsZero() {
			e = 0
		}
		if e > burst {
			return testnet.Answer(r, 503, header.Clone(), nil), nil
		}
		excess, last = e, now
		return testnet.Answer(r, 200, nil, nil), nil
	}
}

// TestALimiterThatSaysOnly503LosesNoCall: nginx's limit_req refuses with a 503 that says
// no more. It opens no circuit, and no call is lost.
func TestALimiterThatSaysOnly503LosesNoCall(t *testing.T) {
	for _, tt := range []struct {
		rate, burst float64
		trip        time.Duration
		callers     int
	}{
		{10, 20, 40 * time.Millisecond, 20}, {10, 20, 5 * time.Millisecond, 4}, {50, 100, 20 * time.Millisecond, 50},
		{100, 20, 10 * time.Millisecond, 30}, {5, 10, 100 * time.Millisecond, 10}, {20, 5, 30 * time.Millisecond, 8},
	} {
		t.Run(fmt.Sprintf("%v/s of %v, %v away, %d callers", tt.rate, tt.burst, tt.trip, tt.callers), func(t *testing.T) {
			const runs = 5
			losing := 0
			for range runs {
				synctest.Test(t, func(t *testing.T) {
					opened := atomic.Int64{}
					rt := must(weir.New(limitReq(tt.rate, tt.burst, tt.trip, nil), weir.Config{Breaker: breaker.Config{OnStateChange: func(c breaker.Change) {
						if c.To == breaker.Open {
							opened.Add(1)
						}
					}}}))(t)
					start := time.Now()
					lost := lostOf(t, rt, int(20*tt.rate), tt.callers)
					if t.Logf("%v, %d lost", time.Since(start), lost); lost > 0 {
						losing++
					}
					if opened.Load() > 0 {
						t.Errorf("the circuit opened %d times, want never", opened.Load())
					}
				})
			}
			if losing > 1 { // eight callers of 20/s of 5 are refused as if by chance in one run of 75
				t.Errorf("calls were lost in %d of %d runs, want one at most", losing, runs)
			}
		})
	}
}

// TestASlowLimiterIsNotTakenForChance: of a limiter whose answers are few, most of them
// refusals, hardly more calls are lost than the few that come first and do not wait.
func TestASlowLimiterIsNotTakenForChance(t *testing.T) {
	const runs, calls = 40, 40
	lost := 0
	for seed := range uint64(runs) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			dice := rand.New(rand.NewPCG(seed, 5))
			way := func() { // each way takes as long as chance has it
				mu.Lock()
				d := 10*time.Millisecond + time.Duration(dice.Int64N(int64(20*time.Millisecond)))
				mu.Unlock()
				time.Sleep(d)
			}
			server := limitReq(.2, 0, 0, nil)
			rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
				way()
				defer way()
				return server(r)
			}), weir.Config{Throttle: throttle.Config{MaxWait: 10 * time.Minute}}))(t)
			lost += lostOf(t, rt, calls, 5)
		})
	}
	if t.Logf("%d of %d lost", lost, runs*calls); lost > 3*runs {
		t.Errorf("%d of %d lost in %d runs, want at most three a run", lost, runs*calls, runs)
	}
}

// TestALimitIsNotThatOfAQuietPast: a client that had little to ask for two minutes, or met
// a host that was down at first, and now asks for more than a limiter's rate, is soon
// served at that rate.
func TestALimitIsNotThatOfAQuietPast(t *testing.T) {
	for _, tt := range []struct {
		name        string
		rate, burst float64       // the limiter's
		calls       int           // a second, when they are many
		busy        time.Duration // when calls become many; before, there is one each ten seconds
		down        time.Duration // until when the host serves nobody
		from, until time.Duration // when served calls are counted
	}{
		{"called seldom for two minutes", 10, 20, 12, 2 * time.Minute, 0, 3 * time.Minute, 4 * time.Minute},
		{"down for the first 20 s", 5, 5, 6, 0, 20 * time.Second, time.Minute, 2 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, start := limitReq(tt.rate, tt.burst, 20*time.Millisecond, nil), time.Now()
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					if time.Since(start) < tt.down {
						return testnet.Answer(r, 503, nil, nil), nil
					}
					return server(r)
				}), weir.Config{Throttle: throttle.Config{MaxWait: 5 * time.Second}}))(t)
				var good atomic.Int64
				var wg sync.WaitGroup
				for time.Since(start) < tt.until {
					wg.Go(func() {
						resp, err := rt.RoundTrip(get(t, "http://h/"))
						if err != nil {
							return
						}
						resp.Body.Close()
						if at := time.Since(start); resp.StatusCode == 200 && at >= tt.from && at < tt.until {
							good.Add(1)
						}
					})
					every := time.Second / time.Duration(tt.calls)
					if time.Since(start) < tt.busy {
						every = 10 * time.Second
					}
					time.Sleep(every)
				}
				wg.Wait()
				could := tt.rate * (tt.until - tt.from).Seconds()
				t.Logf("%d of %v served in a minute", good.Load(), could)
				if float64(good.Load()) < could/2 {
					t.Errorf("%d of %v served in a minute, want half of them", good.Load(), could)
				}
			})
		})
	}
}

// windowOf lets n through in each window that a request begins, and says 503 to others.
func windowOf(n int, per, trip time.Duration) testnet.Func {
	var mu sync.Mutex
	var ends time.Time
	used := 0
	return func(r *http.Request) (*http.Response, error) {
		time.Sleep(trip / 2)
		defer time.Sleep(trip / 2)
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); !now.Before(ends) {
			ends, used = now.Add(per), 0
		}
		if used++; used > n {
			return testnet.Answer(r, 503, nil, nil), nil
		}
		return testnet.Answer(r, 200, nil, nil), nil
	}
}

// TestAWindowThatSaysOnly503LosesNobody: a limiter that shuts out everybody for seconds
// is no outage, if it does so as soon as it is called: its windows are waited out. How
// soon these are found depends on chance: in 1.1 to 2 times the time that they take.
func TestAWindowThatSaysOnly503LosesNobody(t *testing.T) {
	for _, tt := range []struct {
		n         int
		per, trip time.Duration
		callers   int
	}{
		{20, 2 * time.Second, 20 * time.Millisecond, 8}, {60, 10 * time.Second, 50 * time.Millisecond, 20},
		{100, 5 * time.Second, 5 * time.Millisecond, 30}, {150, 10 * time.Second, 16 * time.Millisecond, 4},
	} {
		t.Run(fmt.Sprintf("%d per %v, %v away, %d callers", tt.n, tt.per, tt.trip, tt.callers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := must(weir.New(windowOf(tt.n, tt.per, tt.trip), weir.Config{}))(t)
				start := time.Now()
				lost := lostOf(t, rt, 4*tt.n, tt.callers)
				t.Log(time.Since(start))
				if took := time.Since(start); lost > 0 || took > 3*3*tt.per {
					t.Errorf("%d of %d calls lost, in %v; want none, in %v at most", lost, 4*tt.n, took, 3*3*tt.per)
				}
			})
		})
	}
}

// TestALimiterThatSays503AndAWaitIsFound: its limit is learned as that of one which says
// 429.
func TestALimiterThatSays503AndAWaitIsFound(t *testing.T) {
	for _, tt := range []struct{ rate, burst float64 }{{10, 20}, {5, 10}, {50, 5}} {
		synctest.Test(t, func(t *testing.T) {
			var sent atomic.Int64
			server := limitReq(tt.rate, tt.burst, 20*time.Millisecond, http.Header{"Retry-After": {"1"}})
			rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
				sent.Add(1)
				return server(r)
			}), weir.Config{}))(t)
			start, calls := time.Now(), int(40*tt.rate)
			lost := lostOf(t, rt, calls, 20)
			refused, took := int(sent.Load())-calls+lost, time.Since(start)
			t.Logf("%v/s: %d of %d refused, %d lost, in %v", tt.rate, refused, calls, lost, took)
			if lost > 0 || refused > calls/10 || took > time.Minute {
				t.Errorf("%v/s: %d of %d refused, %d lost, in %v; want a tenth, none, in 40 s", tt.rate, refused, calls, lost, took)
			}
		})
	}
}

// TestAnOverloadIsNoLimit: a host that has served many, then says 503 at random and when
// to come back, is called as often as before once it serves again. By chance an overload looks like a
// limit that has to end: that may happen in one of three runs.
func TestAnOverloadIsNoLimit(t *testing.T) {
	for _, tt := range []struct {
		share float64
		long  time.Duration
		wait  string
	}{{1, 2 * time.Second, "5"}, {.5, 2 * time.Minute, "1"}, {.2, 2 * time.Minute, "5"}} {
		const runs = 3
		var served [runs]int64
		well := 0
		for seed := range served {
			synctest.Test(t, func(t *testing.T) {
				served[seed] = servedAfterOverload(t, tt.share, tt.long, tt.wait, uint64(seed))
			})
			if served[seed] >= 900 {
				well++
			}
		}
		if well < runs-1 {
			t.Errorf("%v of all calls failed for %v: %v of 1000 were served from 10 to 15 s after that, want 900 or more in two of three runs", tt.share, tt.long, served)
		}
	}
}

// servedAfterOverload is how many calls of 1000 a host serves from 10 to 15 s after an overload in which
// it refused that share of the calls.
func servedAfterOverload(t *testing.T, share float64, long time.Duration, wait string, seed uint64) int64 {
	const begins = 10 * time.Second
	ends := begins + long
	dice, start := rand.New(rand.NewPCG(1+seed, 2)), time.Now()
	var mu sync.Mutex
	var good atomic.Int64
	rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
		time.Sleep(20 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		if at := time.Since(start); at > begins && at < ends && dice.Float64() < share {
			return testnet.Answer(r, 503, http.Header{"Retry-After": {wait}}, nil), nil
		}
		return stub(r)
	}), weir.Config{}))(t)
	var wg sync.WaitGroup
	for time.Since(start) < ends+20*time.Second {
		wg.Go(func() {
			resp, err := rt.RoundTrip(get(t, "http://h/"))
			if err != nil {
				return
			}
			resp.Body.Close()
			if after := time.Since(start) - ends; resp.StatusCode == 200 && after > 10*time.Second && after < 15*time.Second {
				good.Add(1)
			}
		})
		time.Sleep(5 * time.Millisecond)
	}
	wg.Wait()
	return good.Load()
}

// TestAHostThatGoesDownIsLeftAloneSoon: 503s that might be a limiter's are an outage
// when a host has served nobody for a second, or has been asked in vain some times.
func TestAHostThatGoesDownIsLeftAloneSoon(t *testing.T) {
	for _, tt := range []struct {
		every, open time.Duration
		sent        int64
	}{{5 * time.Millisecond, 250 * time.Millisecond, 80}, {50 * time.Millisecond, time.Second, 40}, {200 * time.Millisecond, 3 * time.Second, 40}} {
		synctest.Test(t, func(t *testing.T) {
			const down = 10 * time.Second
			start := time.Now()
			var sent, opened atomic.Int64
			rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
				time.Sleep(5 * time.Millisecond)
				if time.Since(start) < down {
					return stub(r)
				}
				sent.Add(1)
				return testnet.Answer(r, 503, nil, nil), nil
			}), weir.Config{Breaker: breaker.Config{OnStateChange: func(c breaker.Change) {
				if c.To == breaker.Open {
					opened.CompareAndSwap(0, int64(time.Since(start)-down))
				}
			}}}))(t)
			var wg sync.WaitGroup
			for time.Since(start) < down+20*time.Second {
				wg.Go(func() {
					if resp, err := rt.RoundTrip(get(t, "http://h/")); err == nil {
						resp.Body.Close()
					}
				})
				time.Sleep(tt.every)
			}
			wg.Wait()
			after := time.Duration(opened.Load())
			t.Logf("a call every %v: open after %v, %d sent in 20 s", tt.every, after, sent.Load())
			if after == 0 || after > tt.open || sent.Load() > tt.sent {
				t.Errorf("a call every %v: open after %v, %d sent in 20 s, want at most %v and %d", tt.every, after, sent.Load(), tt.open, tt.sent)
			}
		})
	}
}

// TestAFlakyHostIsNotTakenForALimiter: a host that says 503 at random is served as
// soon as before, and is asked no more often than repeats need, in the mean of four.
func TestAFlakyHostIsNotTakenForALimiter(t *testing.T) {
	const hosts, calls = 4, 3000
	for _, tt := range []struct {
		p        float64
		good     int64 // of calls
		mean     time.Duration
		attempts float64 // per call
	}{
		{.01, 2999, 11 * time.Millisecond, 1.02}, {.05, 2999, 14 * time.Millisecond, 1.07}, {.1, 2995, 20 * time.Millisecond, 1.15},
		{.3, 2850, time.Second, 1.5}, {.5, 2500, time.Second, 2},
	} {
		var sent, good, took atomic.Int64
		for seed := range uint64(hosts) {
			synctest.Test(t, func(t *testing.T) {
				dice := rand.New(rand.NewPCG(seed, 5))
				var mu sync.Mutex
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					time.Sleep(10 * time.Millisecond)
					sent.Add(1)
					mu.Lock()
					defer mu.Unlock()
					if dice.Float64() < tt.p {
						return testnet.Answer(r, 503, nil, nil), nil
					}
					return stub(r)
				}), weir.Config{}))(t)
				var wg sync.WaitGroup
				for range calls {
					wg.Go(func() {
						start := time.Now()
						resp, err := rt.RoundTrip(get(t, "http://h/"))
						if err == nil {
							resp.Body.Close()
							if resp.StatusCode == 200 {
								good.Add(1)
								took.Add(int64(time.Since(start)))
							}
						}
					})
					time.Sleep(20 * time.Millisecond)
				}
				wg.Wait()
			})
		}
		mean, attempts := time.Duration(took.Load()/max(1, good.Load())), float64(sent.Load())/(hosts*calls)
		t.Logf("%v fails: %d of %d served, in %v on average, %.2f attempts per call", tt.p, good.Load(), hosts*calls, mean, attempts)
		if good.Load() < hosts*tt.good || mean > tt.mean || attempts > tt.attempts {
			t.Errorf("%v fails: want %d served, in %v, %.2f attempts", tt.p, hosts*tt.good, tt.mean, tt.attempts)
		}
	}
}

// heldBody is read for a while, in which its request keeps a place at the server.
type heldBody struct {
	takes time.Duration
	leave func()
}

func (b *heldBody) Read([]byte) (int, error) {
	time.Sleep(b.takes)
	return 0, io.EOF
}

func (b *heldBody) Close() error {
	b.leave()
	return nil
}

// limitConn is nginx's limit_conn with its default status: at most so many requests at
// a time, until their bodies are sent, which takes two seconds. Answers come in any order.
func limitConn(limit int64) testnet.Func {
	var busy atomic.Int64
	return func(r *http.Request) (*http.Response, error) {
		time.Sleep(200*time.Microsecond + rand.N(600*time.Microsecond))
		if busy.Add(1) > limit {
			busy.Add(-1)
			return testnet.Answer(r, 503, nil, nil), nil
		}
		time.Sleep(rand.N(10 * time.Millisecond))
		resp := testnet.Answer(r, 200, nil, nil)
		resp.Body = &heldBody{2 * time.Second, sync.OnceFunc(func() { busy.Add(-1) })}
		return resp, nil
	}
}

// TestALimitAtATimeThatSaysOnly503LosesHardlyACall: the host answers a few and refuses all
// others at once, until the bodies of these few have been read. With a limit of two, most
// calls were lost in one of 240 runs: so few answers may be an outage's last.
func TestALimitAtATimeThatSaysOnly503LosesHardlyACall(t *testing.T) {
	const jobs, callers = 60, 20
	for _, limit := range []int64{3, 5, 10} {
		t.Run(strconv.FormatInt(limit, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := must(weir.New(limitConn(limit), weir.Config{}))(t)
				start := time.Now()
				lost := lostOf(t, rt, jobs, callers)
				if took, ideal := time.Since(start), 2*time.Second*jobs/time.Duration(limit); lost > 1 || took > 3*ideal {
					t.Errorf("%d of %d calls lost, want 1 at most; %v, want %v", lost, jobs, took, 3*ideal)
				}
			})
		})
	}
}

// TestAModerateOverloadOfALimiterThatSaysOnly503LosesNoCall: nginx's limit_req with its
// default status loses no call of programs that ask for 1.1 to 3 times its rate.
func TestAModerateOverloadOfALimiterThatSaysOnly503LosesNoCall(t *testing.T) {
	const runs = 4
	for _, tt := range []struct {
		rate, burst, load float64 // a second, and times the rate
		callers           int
		trip              time.Duration
	}{
		{50, 50, 1.5, 8, 10 * time.Millisecond}, {50, 50, 3, 8, 10 * time.Millisecond}, {50, 50, 1.5, 4, 10 * time.Millisecond},
		{10, 10, 1.1, 8, 50 * time.Millisecond}, {10, 10, 1.5, 8, 50 * time.Millisecond}, {10, 10, 3, 4, 10 * time.Millisecond},
		{30, 0, 1.5, 6, 20 * time.Millisecond}, {120, 40, 2, 16, 5 * time.Millisecond}, {2, 2, 1.5, 3, 50 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%v/s of %v, %v times as many calls from %d, %v away", tt.rate, tt.burst, tt.load, tt.callers, tt.trip), func(t *testing.T) {
			lost, n := 0, int(15*tt.rate)
			for seed := range uint64(runs) {
				synctest.Test(t, func(t *testing.T) {
					dice := rand.New(rand.NewPCG(seed, 5))
					var mu sync.Mutex
					exp := func() float64 {
						mu.Lock()
						defer mu.Unlock()
						return dice.ExpFloat64()
					}
					way := func() { time.Sleep(time.Duration(float64(tt.trip) / 2 * (.7 + .3*exp()))) }
					server := limitReq(tt.rate, tt.burst, 0, nil)
					rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
						way()
						defer way()
						return server(r)
					}), weir.Config{}))(t)
					calls := make(chan struct{})
					var wg sync.WaitGroup
					var bad atomic.Int64
					for range tt.callers {
						wg.Go(func() {
							for range calls {
								resp, err := rt.RoundTrip(get(t, "http://h/"))
								if err != nil || resp.StatusCode != 200 {
									bad.Add(1)
								}
								if err == nil {
									resp.Body.Close()
								}
							}
						})
					}
					start, at := time.Now(), 0.0
					for range n {
						at += exp() / (tt.load * tt.rate)
						time.Sleep(time.Until(start.Add(time.Duration(at * 1e9))))
						calls <- struct{}{}
					}
					close(calls)
					wg.Wait()
					lost += int(bad.Load())
				})
			}
			if t.Logf("%d of %d lost", lost, runs*n); lost > 0 {
				t.Errorf("%d of %d lost, want none", lost, runs*n)
			}
		})
	}
}
