package chaintest

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
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

// TestAnOutageOf503IsNoLimit: a server that worked for some time, longer than it takes to reach a
// limit, and then says only 503 for a while is broken and not a limiter. It is left alone, and
// used again soon after it is back. TestAHostThatIsBackIsNotOverrun has those that fail sooner.
func TestAnOutageOf503IsNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const down, up = 6 * time.Second, 9500 * time.Millisecond
		start := time.Now()
		var sent, good atomic.Int64
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			time.Sleep(5 * time.Millisecond)
			at := time.Since(start)
			if at >= down && at < up {
				sent.Add(1)
				return testnet.Answer(r, 503, nil, nil), nil
			}
			return stub(r)
		}), weir.Config{}))(t)
		var wg sync.WaitGroup
		for time.Since(start) < 12*time.Second {
			wg.Go(func() {
				begun := time.Since(start)
				resp, err := rt.RoundTrip(get(t, "http://h/"))
				if err != nil {
					return
				}
				resp.Body.Close()
				if resp.StatusCode == 200 && begun >= up+time.Second && time.Since(start) < begun+500*time.Millisecond {
					good.Add(1)
				}
			})
			time.Sleep(5 * time.Millisecond)
		}
		wg.Wait()
		if n := sent.Load(); n > 100 {
			t.Errorf("%d attempts while down, want at most a tenth of 700", n)
		}
		if n := good.Load(); n < 270 { // of 300 in the last one and a half seconds
			t.Errorf("%d calls served promptly from a second after the server is back, want 300", n)
		}
	})
}

const slowDown = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`

// TestSlowDownIsNoOutage: a 503 that says in its body alone that it refuses for
// quota (S3) opens no circuit, unless nobody may read bodies; another does.
func TestSlowDownIsNoOutage(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		peek       int64
		opens      bool
	}{
		{"says so", slowDown, 0, false},
		{"says nothing", "<html><h1>503 Service Unavailable</h1></html>", 0, true},
		{"says so to nobody", slowDown, -1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var opened atomic.Int64
				var last atomic.Value
				last.Store("")
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					time.Sleep(10 * time.Millisecond)
					return testnet.Answer(r, 503, http.Header{"Content-Type": {"application/xml"}}, testnet.NewBody(tt.body)), nil
				}), weir.Config{
					Throttle: throttle.Config{PeekBody: tt.peek, MaxWait: 30 * time.Second},
					Breaker: breaker.Config{OnStateChange: func(c breaker.Change) {
						if c.To == breaker.Open {
							opened.Add(1)
						}
					}},
				}))(t)
				var wg sync.WaitGroup
				for range 40 {
					wg.Go(func() {
						resp, err := rt.RoundTrip(get(t, "http://h/"))
						if err != nil {
							return
						}
						b, err := io.ReadAll(resp.Body)
						if err != nil {
							t.Error(err)
						}
						last.Store(string(b))
						resp.Body.Close()
					})
				}
				wg.Wait()
				if got := opened.Load() > 0; got != tt.opens {
					t.Errorf("the circuit opened %d times; should it open: %t", opened.Load(), tt.opens)
				}
				if last.Load() != tt.body {
					t.Errorf("the caller got body %q, want %q", last.Load(), tt.body)
				}
			})
		})
	}
}

// failing is a host that answers in some 40 ms, and with the given status when bad
// says so, at a time since its beginning.
func failing(status int, seed uint64, sent *atomic.Int64, bad func(r *rand.Rand, at time.Duration) bool) http.RoundTripper {
	var mu sync.Mutex
	random, begin := rand.New(rand.NewPCG(seed, uint64(status))), time.Now()
	return testnet.Func(func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		broken, took := bad(random, time.Since(begin)), 30*time.Millisecond+time.Duration(random.Int64N(int64(20*time.Millisecond)))
		mu.Unlock()
		sent.Add(1)
		if err := testnet.Wait(r.Context(), took); err != nil {
			return nil, err
		}
		if broken {
			return testnet.Answer(r, status, nil, http.NoBody), nil
		}
		return stub(r)
	})
}

// steady makes perSecond calls a second, and reports for each when it began and
// whether it was served.
func steady(t *testing.T, rt http.RoundTripper, perSecond int, during time.Duration, each func(at time.Duration, ok bool)) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for at := time.Duration(0); at < during; at += time.Second / time.Duration(perSecond) {
		wg.Go(func() {
			resp, err := rt.RoundTrip(get(t, "http://h/v1"))
			mu.Lock()
			defer mu.Unlock()
			each(at, err == nil && resp.StatusCode == 200)
		})
		time.Sleep(time.Second / time.Duration(perSecond))
	}
	wg.Wait()
}

// TestChanceIsServed: of calls to a host that fails four attempts of five at random
// most are served that three attempts can serve, whatever it says when it fails. Of hosts that
// do so with 503s, from the first of all calls on, one of sixteen is taken to be down or for a limiter
// for so long that less is served, and some that are taken for a limiter are asked a little more often.
// So the middle one of nine is judged.
func TestChanceIsServed(t *testing.T) {
	for _, status := range []int{500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			var shares, attempts []float64
			for seed := range uint64(9) {
				synctest.Test(t, func(t *testing.T) {
					served, sent := chanceServed(t, status, seed)
					shares, attempts = append(shares, served), append(attempts, sent)
				})
			}
			if slices.Sort(shares); shares[4] < .65 { // .95 over many seeds
				t.Errorf("%.2f of the calls were served that three attempts can serve, want .65 of most hosts", shares)
			}
			if slices.Sort(attempts); attempts[4] > 2.49 || attempts[8] > 2.6 { // three attempts are 2.44
				t.Errorf("%.2f attempts per call, want 2.49 at most hosts, and 2.6 at all", attempts)
			}
		})
	}
}

// chanceServed is which part of the calls is served that three attempts can serve, and how many attempts
// a call takes.
func chanceServed(t *testing.T, status int, seed uint64) (part, attempts float64) {
	const p = .8
	var sent atomic.Int64
	rt := must(weir.New(failing(status, seed, &sent, func(r *rand.Rand, _ time.Duration) bool { return r.Float64() < p }), weir.Config{}))(t)
	calls, served := 0., 0.
	steady(t, rt, 100, 40*time.Second, func(_ time.Duration, ok bool) {
		if calls++; ok {
			served++
		}
	})
	return served / calls / (1 - math.Pow(p, 3)), float64(sent.Load()) / calls
}

// TestShortOutageIsNoLimit: a host that answers 503 to everything for 3 s is left
// alone after the first second, and is found to be back as soon as its calls allow.
func TestShortOutageIsNoLimit(t *testing.T) {
	for perSecond, back := range map[int]time.Duration{20: 5 * time.Second, 200: time.Second} {
		t.Run(fmt.Sprint(perSecond, " a second"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const down, up = 10 * time.Second, 13 * time.Second
				var sent, late atomic.Int64
				rt := must(weir.New(failing(503, 9, &sent, func(_ *rand.Rand, at time.Duration) bool {
					if at > down+time.Second && at < up {
						late.Add(1)
					}
					return at >= down && at < up
				}), weir.Config{}))(t)
				last := time.Duration(0)
				steady(t, rt, perSecond, 30*time.Second, func(at time.Duration, ok bool) {
					if !ok {
						last = max(last, at)
					}
				})
				if late.Load() > int64(2*perSecond/100) {
					t.Errorf("%d attempts after the first second, want 1 %% of %d at most", late.Load(), 2*perSecond)
				}
				if last-up > back {
					t.Errorf("calls failed until %v after the outage, want %v at most", last-up, back)
				}
			})
		})
	}
}

// TestASecondOutageOpensTheCircuitAsSoon: a host that says only 503 while it is down, and a few times
// by chance otherwise, is no limiter in its second outage either: the circuit opens within seconds.
func TestASecondOutageOpensTheCircuitAsSoon(t *testing.T) {
	const begins = time.Minute
	for _, chance := range []float64{0, .05} {
		for _, down := range []time.Duration{6 * time.Second, 30 * time.Second} {
			for _, up := range []time.Duration{30 * time.Second, 3 * time.Minute} {
				for _, rate := range []float64{10, 100} {
					synctest.Test(t, func(t *testing.T) {
						dice := rand.New(rand.NewPCG(uint64(rate), uint64(up)))
						start := time.Now()
						again := begins + down + up
						var mu sync.Mutex
						opened := time.Duration(0)
						rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
							time.Sleep(20 * time.Millisecond)
							mu.Lock()
							defer mu.Unlock()
							at := time.Since(start)
							if at >= begins && at < begins+down || at >= again || dice.Float64() < chance {
								return testnet.Answer(r, 503, nil, nil), nil
							}
							return stub(r)
						}), weir.Config{Breaker: breaker.Config{OnStateChange: func(c breaker.Change) {
							mu.Lock()
							defer mu.Unlock()
							if at := time.Since(start); c.To == breaker.Open && at >= again && opened == 0 {
								opened = at - again
							}
						}}}))(t)
						var calls sync.WaitGroup
						for time.Since(start) < again+6*time.Second {
							calls.Go(func() {
								if resp, err := rt.RoundTrip(get(t, "http://h/")); err == nil {
									resp.Body.Close()
								}
							})
							mu.Lock()
							gap := time.Duration(dice.ExpFloat64() / rate * float64(time.Second))
							mu.Unlock()
							time.Sleep(gap)
						}
						calls.Wait()
						if opened == 0 || opened > 5*time.Second {
							t.Errorf("fails %v, down %v, up %v, %v/s: opened after %v", chance, down, up, rate, opened)
						}
					})
				}
			}
		}
	}
}
