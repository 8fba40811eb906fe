package chaintest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// slots is a server that works on limit requests at a time and refuses others at once.
type slots struct {
	limit   int
	work    func() time.Duration
	trip    time.Duration // to the server and back
	status  int           // of a refusal
	hint    string        // its Retry-After; "": none
	mu      sync.Mutex
	busy    int
	served  int
	refused int
}

func (s *slots) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := testnet.Wait(r.Context(), s.trip/2); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.busy >= s.limit {
		s.refused++
		s.mu.Unlock()
		h := http.Header{}
		if s.hint != "" {
			h.Set("Retry-After", s.hint)
		}
		return s.back(r, s.status, h)
	}
	s.busy++
	work := s.work()
	s.mu.Unlock()
	err := testnet.Wait(r.Context(), work)
	s.mu.Lock()
	s.busy--
	s.served++
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return s.back(r, http.StatusOK, nil)
}

func (s *slots) back(r *http.Request, status int, h http.Header) (*http.Response, error) {
	if err := testnet.Wait(r.Context(), s.trip/2); err != nil {
		return nil, err
	}
	return testnet.Answer(r, status, h, nil), nil
}

// drawSlots draws a server, how long it takes, and how many callers it has.
func drawSlots(seed uint64) (s *slots, mean time.Duration, callers int, words string) {
	dice := rand.New(rand.NewPCG(seed, 31))
	s = &slots{limit: 1 + dice.IntN(20), status: 429}
	mean = time.Duration(30+dice.IntN(770)) * time.Millisecond
	s.trip = time.Duration(dice.IntN(2)*dice.IntN(60)) * time.Millisecond
	callers = s.limit * (2 + dice.IntN(5))
	if dice.IntN(2) == 0 {
		s.hint = "1"
		s.status = []int{429, 503}[dice.IntN(2)]
	}
	spread := dice.IntN(3)
	s.work = func() time.Duration {
		return time.Duration(float64(mean) * []float64{1, .5 + dice.Float64(), dice.ExpFloat64()}[spread])
	}
	return s, mean, callers, fmt.Sprintf("%d at a time, %d callers, work %v (%s), trip %v, status %d, Retry-After %q",
		s.limit, callers, mean, []string{"always", "half to half more", "exponential"}[spread], s.trip, s.status, s.hint)
}

// TestALimitOnRequestsAtATimeIsUsed: a server that works on so many requests at a time,
// and does not say so, has as many under way after a minute, refuses few, and no call fails.
func TestALimitOnRequestsAtATimeIsUsed(t *testing.T) {
	draws := testnet.Drawn(100, 50)
	var used, refusals float64
	low := 0
	for seed := range uint64(draws) {
		synctest.Test(t, func(t *testing.T) {
			s, mean, callers, words := drawSlots(seed)
			served, refused := s.last(t, callers, time.Minute, 2*time.Minute)
			part := served * (mean + s.trip).Seconds() / float64(60*s.limit)
			if used, refusals = used+part, refusals+refused/served; part < .6 {
				low++
				t.Logf("%.2f of what there is was served, %.3f refusals a success: %s", part, refused/served, words)
			}
		})
	}
	used, refusals = used/float64(draws), refusals/float64(draws)
	t.Logf("%.3f used, %.4f refusals a success", used, refusals)
	// 1.00, .005 and two; where each under way was as likely to be at the server: .95, .007 and six
	testnet.Judge(t, used >= .96 && refusals <= .02 && low <= draws/20, "%.3f of the limits was used with %.4f refusals a success, and %d of %d servers were hardly used; want .96 or more, .02 and a twentieth or fewer", used, refusals, low, draws)
}

// last is how many of so many callers' requests are served and refused between from and to.
func (s *slots) last(t *testing.T, callers int, from, to time.Duration) (served, refused float64) {
	rt := must(weir.New(s, weir.Config{}))(t)
	start := time.Now()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for time.Since(start) < to {
				resp, err := testnet.Get(t, t.Context(), rt, "http://h/x")
				if err != nil {
					t.Error(err)
					return
				}
				if resp.Body.Close(); resp.StatusCode != http.StatusOK {
					t.Errorf("a caller got status %d, want 200", resp.StatusCode)
					return
				}
			}
		})
	}
	time.Sleep(from)
	s.mu.Lock()
	was, waste := s.served, s.refused
	s.mu.Unlock()
	wg.Wait()
	return float64(s.served - was), float64(s.refused - waste)
}

// TestARaisedLimitOnRequestsAtATimeIsUsed: when a server that does not say so works on
// several times as many requests at a time, most of that is used some minutes later, and few are
// refused until then.
func TestARaisedLimitOnRequestsAtATimeIsUsed(t *testing.T) {
	draws := float64(testnet.Drawn(40, 10))
	var used, refusals float64
	for seed := range uint64(draws) {
		synctest.Test(t, func(t *testing.T) {
			s, mean, callers, words := drawSlots(seed)
			was, rise := s.limit, 2+int(seed%7)
			time.AfterFunc(time.Minute, func() {
				s.mu.Lock()
				s.limit *= rise
				s.mu.Unlock()
			})
			served, refused := s.last(t, callers*rise, 3*time.Minute, 4*time.Minute)
			part := served * (mean + s.trip).Seconds() / float64(60*was*rise)
			used, refusals = used+part, refusals+refused/served
			t.Logf("%.2f of what there is was served, %.3f refusals a success: %d times the %s", part, refused/served, rise, words)
		})
	}
	t.Logf("%.3f used, %.4f refusals a success", used/draws, refusals/draws)
	testnet.Judge(t, used >= .75*draws && refusals <= .03*draws, "%.3f of the raised limits was used with %.4f refusals a success; want .75 or more, and .03 or fewer", used/draws, refusals/draws)
}

// TestANamedLimitOnRequestsAtATimeIsFoundAtOnce: a server that says of a refusal that too many
// requests are under way, and of good answers how many a minute are left (Xero), refuses hardly
// more than came together at first.
func TestANamedLimitOnRequestsAtATimeIsFoundAtOnce(t *testing.T) {
	const calls = 200
	for _, callers := range []int{10, 40} {
		for _, limit := range []int{3, 5, 8} {
			synctest.Test(t, func(t *testing.T) {
				dice := rand.New(rand.NewPCG(uint64(callers), uint64(limit)))
				s := &slots{limit: limit, status: 429, trip: 80 * time.Millisecond, work: func() time.Duration {
					return time.Duration(200+dice.IntN(400)) * time.Millisecond
				}}
				left := 3000
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					resp, err := s.RoundTrip(r)
					if err != nil {
						return nil, err
					}
					s.mu.Lock()
					defer s.mu.Unlock()
					if resp.StatusCode == 429 {
						resp.Header.Set("X-Rate-Limit-Problem", "concurrent")
					} else {
						left--
						resp.Header.Set("X-MinLimit-Remaining", fmt.Sprint(left))
					}
					return resp, nil
				}), weir.Config{}))(t)
				lost := lostOf(t, rt, calls, callers)
				t.Logf("%d callers of %d at a time: %d of %d calls lost, %d refused", callers, limit, lost, calls, s.refused)
				if lost > 0 || s.refused > 2*callers+20 {
					t.Errorf("%d callers of %d at a time: %d of %d calls lost, %d refused; want none, and at most %d", callers, limit, lost, calls, s.refused, 2*callers+20)
				}
			})
		}
	}
}

// TestALimitAtATimeWhoseRefusalsAskForLongIsMetOnce: GitHub serves a hundred requests at a time.
// Its refusals ask for a minute, and say that much is left of a quota. After the minute no more
// are sent at a time than were served before, so hardly any is refused again, which would have to
// wait for longer than MaxWait.
func TestALimitAtATimeWhoseRefusalsAskForLongIsMetOnce(t *testing.T) {
	const calls, callers = 600, 150
	draws := testnet.Drawn(12, 6)
	var lost, again int
	for seed := range uint64(draws) {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 12))
			mean := time.Duration(30+dice.IntN(270)) * time.Millisecond
			s := &slots{limit: 60 + 10*dice.IntN(5), status: 403, hint: "60", trip: time.Duration(2+dice.IntN(60)) * time.Millisecond}
			s.work = func() time.Duration { return time.Duration(float64(mean) * (.7 + .3*dice.ExpFloat64())) }
			resets := strconv.FormatInt(time.Now().Add(47*time.Minute).Unix(), 10)
			rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
				resp, err := s.RoundTrip(r)
				if err == nil {
					s.mu.Lock()
					resp.Header.Set("X-RateLimit-Remaining", strconv.Itoa(4900-s.served))
					s.mu.Unlock()
					resp.Header.Set("X-RateLimit-Limit", "5000")
					resp.Header.Set("X-RateLimit-Reset", resets)
				}
				return resp, err
			}), weir.Config{}))(t)
			var next, bad atomic.Int64
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for i := next.Add(1); i <= calls; i = next.Add(1) {
						path := [...]string{"/repos/o/r/issues", "/repos/o/r/pulls", "/users/u"}[i%3]
						if status, _ := visit(t, rt, path); status != 200 {
							bad.Add(1)
						}
					}
				})
			}
			time.AfterFunc(30*time.Second, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				again -= s.refused
			})
			wg.Wait()
			lost, again = lost+int(bad.Load()), again+s.refused
			t.Logf("%d at a time, %v away, each of some %v: %d lost, %d refused", s.limit, s.trip, mean, bad.Load(), s.refused)
		})
	}
	t.Logf("%d lost, %d refused after the first minute", lost, again)
	// 0 to 28 and none; 559 to 753 and 569 to 973 if as many are sent as wait while no limit is trusted
	testnet.Judge(t, lost <= draws*calls/50 && again <= 5*draws, "%d of %d calls were lost, %d requests were refused after the first minute, want one in 50, and 5 a run at most", lost, draws*calls, again)
}
