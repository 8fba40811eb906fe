package throttle_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// Twenty callers work side by side. When it becomes certain that nobody can go
// before his time is up, all who wait are refused at that moment.
func TestWhatIsCertainRefusesThoseWhoWait(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer func(n int, h http.Header) (status int) // the n-th, from 1
		goes   int                                     // requests that are sent; zero: not looked at
		why    string
	}{
		{"30 left for 40 minutes", func(n int, h http.Header) int {
			h.Set("X-RateLimit-Limit", "5000")
			h.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, 31-n)))
			h.Set("X-RateLimit-Reset", "2400")
			return 200
		}, 31, "stated by X-RateLimit"},
		{"a pause of an hour", func(n int, h http.Header) int {
			if n < 10 {
				return 200
			}
			h.Set("Retry-After", "3600")
			return 429
		}, 0, "said by Retry-After"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, over, gone := 0, time.Time{}, time.Time{} // when the last request was sent, and the last one refused
				var mu sync.Mutex
				b := newBase(func(r *http.Request) (*http.Response, error) {
					mu.Lock()
					n++
					h := http.Header{}
					status := test.answer(n, h)
					over = time.Now()
					mu.Unlock()
					if err := testnet.Wait(r.Context(), sec); err != nil {
						return nil, err
					}
					return testnet.Answer(r, status, h, nil), nil
				})
				tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("5/s")})
				var wg sync.WaitGroup
				for range 20 {
					wg.Go(func() {
						for {
							resp, err := get(t, t.Context(), tr, "http://h/")
							if err != nil {
								mu.Lock()
								defer mu.Unlock()
								var e *throttle.Error
								if !errors.As(err, &e) || e.RetryAfter < 4*time.Minute || !strings.Contains(e.Error(), test.why) {
									t.Errorf("got %v, want a refusal that says how long and why", err)
								}
								gone = time.Now()
								return
							}
							if resp.StatusCode != 200 {
								return
							}
						}
					})
				}
				wg.Wait()
				if late := gone.Sub(over); late > sec {
					t.Errorf("refused %v after the last request was sent, want as soon as it is answered", late)
				}
				if test.goes > 0 && n != test.goes {
					t.Errorf("%d were sent, want %d", n, test.goes)
				}
			})
		})
	}
}

// refusing refuses whatever comes before it opens, for good reason or none.
func refusing(open time.Duration, retryAfter string) func(r *http.Request) (*http.Response, error) {
	start := time.Now()
	return func(r *http.Request) (*http.Response, error) {
		if time.Since(start) >= open {
			return testnet.Answer(r, 200, nil, nil), nil
		}
		h := http.Header{}
		if retryAfter != "" {
			h.Set("Retry-After", retryAfter)
		}
		return testnet.Answer(r, 429, h, nil), nil
	}
}

// Of a wait that is made of what is certain and of a guess, only what is certain
// refuses. Resume shows that those are still there who were not refused.
func TestOnlyTheCertainPartOfAWaitRefuses(t *testing.T) {
	for _, test := range []struct {
		name, budget, hint string
		asks               time.Duration // for so long somebody asks, who is refused
		deadline           time.Duration // of the one who comes then, in a pause
		refused            time.Duration // the wait in the error; zero: waits
	}{
		{"a guessed pause", "unlimited", "", time.Minute, 3 * sec, 0},
		{"a guessed pause over a budget with room", "10/s", "", time.Minute, 3 * sec, 0},
		{"a guessed pause over a shaped budget", "6/m burst 6", "", time.Minute, 3 * sec, 0},
		{"a guessed pause over a spent budget", "1/h", "", 0, 3 * sec, time.Hour},
		{"a stated pause", "unlimited", "20", 0, 3 * sec, 20 * sec},
		{"a stated pause over a budget with room", "10/s", "20", 0, 3 * sec, 20 * sec},
		{"a stated pause that proved too short", "unlimited", "1", time.Minute, 5 * sec, 0},
		{"a stated pause that proved too short, for the impatient", "unlimited", "8", 2 * time.Minute, 2 * sec, 8 * sec},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newTransport(t, newBase(refusing(5*time.Minute, test.hint)), throttle.Config{Default: throttle.MustParseBudget(test.budget), MaxWait: time.Hour})
				start := time.Now()
				for mustGet(t, tr, "http://h/"); time.Since(start) < test.asks; mustGet(t, tr, "http://h/") {
				}
				start = time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
				defer cancel()
				ended := make(chan error, 1)
				go func() {
					_, err := get(t, ctx, tr, "http://h/")
					ended <- err
				}()
				synctest.Wait()
				select {
				case err := <-ended:
					var e *throttle.Error
					if test.refused == 0 || !errors.As(err, &e) || e.RetryAfter < test.refused-sec || e.RetryAfter > test.refused+sec || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("got %v at once, want a wait of %v to refuse, zero none", err, test.refused)
					}
					return
				default:
				}
				if test.refused > 0 {
					t.Errorf("waits, want a refusal because of %v", test.refused)
				}
				time.Sleep(sec)
				tr.Resume("h")
				if err := <-ended; err != nil || time.Since(start) > sec+sec/2 {
					t.Errorf("after Resume: %v after %v", err, time.Since(start))
				}
			})
		})
	}
}

// Requests under way may be counted already in what the server last said is left.
// So it is not certain that nothing is left for others, who wait for their answers.
func TestWhatIsUnderWayMayBeCountedAlready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		left := 6
		b := newBase(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			status, h := 200, http.Header{}
			if left--; left < 0 {
				status, left = 429, 0
			}
			h.Set("X-RateLimit-Limit", "100")
			h.Set("X-RateLimit-Remaining", strconv.Itoa(left))
			h.Set("X-RateLimit-Reset", "1000")
			mu.Unlock()
			if r.URL.RawQuery == "slow" { // counted at once, answered late
				if err := testnet.Wait(r.Context(), 10*sec); err != nil {
					return nil, err
				}
			}
			return testnet.Answer(r, status, h, nil), nil
		})
		tr := newTransport(t, b, throttle.Config{})
		mustGet(t, tr, "http://h/")
		var wg sync.WaitGroup
		call := func(url string) {
			wg.Go(func() {
				if resp, err := get(t, t.Context(), tr, url); err != nil || resp.StatusCode != 200 {
					t.Errorf("%s: %v, %v", url, resp, err)
				}
			})
		}
		call("http://h/?slow")
		call("http://h/?slow")
		time.Sleep(sec)
		mustGet(t, tr, "http://h/") // 2 left
		call("http://h/")
		call("http://h/")
		wg.Wait()
	})
}

// unhurried answers after 100 ms.
type unhurried struct{}

func (unhurried) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(100 * time.Millisecond)
	return testnet.Answer(r, 200, nil, http.NoBody), nil
}

// What cannot be served in time is refused at once, not when its time is up:
// the estimate knows that units count until Per after their answers.
func TestOverloadIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, unhurried{}, throttle.Config{Default: throttle.MustParseBudget("100/s burst 1")})
		rnd := rand.New(rand.NewPCG(1, 1))
		var mu sync.Mutex
		var good, refused, late int
		var wg sync.WaitGroup
		for range 150 * 30 {
			time.Sleep(time.Duration(rnd.ExpFloat64() * float64(time.Second) / 150))
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				begin := time.Now()
				resp, err := get(t, ctx, tr, "http://a/")
				mu.Lock()
				defer mu.Unlock()
				var e *throttle.Error
				switch {
				case errors.As(err, &e) && time.Since(begin) > time.Millisecond:
					late++
				case errors.As(err, &e):
					refused++
				case err != nil:
					t.Error(err)
				default:
					good++
					resp.Body.Close()
				}
			})
		}
		wg.Wait()
		if late > (refused+late)/100 || refused < 1000 || good < 2700 {
			t.Errorf("%d served, %d refused at once, %d after a wait; want at least 2700, 1000, and no more than a hundredth", good, refused, late)
		}
	})
}

// One of every eight grants is a lower class's: it is not refused for a wait
// behind all of a higher one.
func TestLowerClassesAreNotRefusedTheirShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "10/s bucket 1")
		burst(t, l, 1)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := l.Take(t.Context(), "k", nil); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		for i := range 3 {
			wg.Go(func() {
				want := time.Duration(i+1) * share * time.Second / 10
				ctx, cancel := context.WithTimeout(throttle.WithPriority(t.Context(), -1-i), want+time.Millisecond)
				defer cancel()
				if _, err := l.Take(ctx, "k", nil); err != nil || time.Since(start) != want {
					t.Errorf("the lower class got %v after %v, want its turn after %v", err, time.Since(start), want)
				}
			})
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(throttle.WithPriority(t.Context(), -1), 2*time.Second)
		defer cancel()
		if _, err := l.Take(ctx, "k", nil); err == nil || time.Since(start) > 0 {
			t.Errorf("one too many got %v after %v, want a refusal at once", err, time.Since(start))
		}
		wg.Wait()
	})
}
