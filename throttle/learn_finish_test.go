package throttle_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/throttle"
)

// What a request without an answer takes of a limit that the server states: what it costs
// in the limit's unit, unless it was not sent. That is so of one that draws on the limit,
// and of those that were under way when the limit was heard of first.
func TestUnansweredRequests(t *testing.T) {
	tokens := func(n int64) throttle.Cost { return throttle.Cost{"tokens": n} }
	for _, test := range []struct {
		unit string
		cost throttle.Cost
		each float64 // request takes
	}{
		{"", nil, 1}, {requests, nil, 1}, {"tokens", nil, 0}, {"tokens", tokens(2), 2}, {"", tokens(2), 1},
		{"", throttle.Cost{requests: 3}, 3}, {requests, throttle.Cost{requests: 0}, 0},
	} {
		for end, taken := range map[string]float64{"not sent": 0, "cancelled": 1, "failed": 1} {
			for _, before := range []bool{true, false} { // they are sent before the limit is known
				synctest.Test(t, func(t *testing.T) {
					var n atomic.Int64
					ctx, cancel := context.WithCancel(throttle.WithCost(t.Context(), test.cost))
					limit := left(100, time.Hour)
					limit.Unit, limit.Quota = test.unit, known(100.)
					c := throttle.Config{Classify: func(*http.Response, headers.Signal) headers.Signal { return stating(limit).Signal }}
					tr := newTransport(t, metered{testnet.Func(func(r *http.Request) (*http.Response, error) {
						first := n.Add(1) == 1
						switch err := testnet.Wait(r.Context(), sec); {
						case first:
							return testnet.Answer(r, 200, nil, nil), nil
						case err != nil:
							return nil, err
						}
						if err := testnet.Wait(r.Context(), sec); err != nil {
							return nil, err
						}
						if end == "not sent" {
							return nil, meterRefusal{errors.New("open")}
						}
						return nil, errors.New("broken")
					})}, c)
					go get(t, throttle.WithCost(t.Context(), test.cost), tr, "http://h/x")
					synctest.Wait()
					if !before {
						time.Sleep(sec)
						synctest.Wait()
					}
					for range 2 {
						go get(t, ctx, tr, "http://h/x")
					}
					time.Sleep(sec)
					synctest.Wait()
					if got, want := statsOf(t, tr).Learned[0].Left, 100-2*test.each; got != want {
						t.Errorf("%q of %v, before %t: %v left while two are under way, want %v", test.unit, test.cost, before, got, want)
					}
					if end == "cancelled" {
						cancel()
					}
					time.Sleep(sec)
					synctest.Wait()
					if got, want := statsOf(t, tr).Learned[0].Left, 100-2*test.each*taken; got != want {
						t.Errorf("%q of %v, %s, before %t: %v left, want %v", test.unit, test.cost, end, before, got, want)
					}
					cancel()
				})
			}
		}
	}
}

// When a pause is over, one request asks whether it is. The others go when that is
// answered well. If it brings no answer, the next one asks alone.
func TestOneAsksWhetherAPauseIsOver(t *testing.T) {
	// If the limit has a name, or its kind of request has one of its own, that alone is paused.
	for _, named := range []string{"", "a name", "its own"} {
		for end, last := range map[string]time.Duration{"good": 2500 * time.Millisecond, "cancelled": 3 * sec, "failed": 3 * sec, "not sent": 3 * sec} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				b := newBase(nil)
				b.Answer = func(r *http.Request) (*http.Response, error) {
					switch n := len(b.Times()); {
					case n <= settledIn:
					case n == settledIn+1:
						h := http.Header{"Retry-After": {"2"}}
						if named == "a name" {
							h = http.Header{"Ratelimit": {`"a";r=0;t=2`}, "Ratelimit-Policy": {`"a";q=9;w=60`}, "Retry-After": {"2"}}
						}
						return testnet.Answer(r, 429, h, nil), nil
					default:
						if n == settledIn+2 && end == "cancelled" {
							time.AfterFunc(500*time.Millisecond, cancel)
							<-r.Context().Done()
							return nil, r.Context().Err()
						}
						time.Sleep(sec / 2)
						switch {
						case n == settledIn+2 && end == "failed":
							return nil, errors.New("broken")
						case n == settledIn+2 && end == "not sent":
							return nil, meterRefusal{errors.New("open")}
						}
					}
					return testnet.Answer(r, 200, nil, nil), nil
				}
				var c throttle.Config
				if named == "its own" {
					c.Learned = knowing(fast("GET /x"))
				}
				tr := newTransport(t, metered{b}, c)
				throttle.Jitter(tr, func() float64 { return 0 })
				for range settledIn + 1 {
					mustGet(t, tr, "http://a/x")
				}
				b.Start = time.Now()
				go get(t, ctx, tr, "http://a/x")
				synctest.Wait() // it is the first in the queue
				for range 2 {
					go get(t, t.Context(), tr, "http://a/x")
				}
				time.Sleep(time.Minute)
				times := b.Times()[settledIn+1:]
				for i := range times {
					times[i] = times[i].Truncate(sec / 10) // a limit that is found takes some milliseconds
				}
				sameTimes(t, times, 2*sec, 2500*time.Millisecond, last)
			})
		}
	}
}

// A refusal for requests at a time says nothing of the rate: what was found of that is
// forgotten.
func TestARefusalOfOneTooManyIsOfNoRate(t *testing.T) {
	for kind, kept := range map[headers.Kind]bool{headers.Concurrency: false, headers.Quota: true} {
		synctest.Test(t, func(t *testing.T) {
			c := throttle.Config{Learned: knowing(throttle.KnownLimit{Kind: throttle.LearnedRate, Unit: requests, Limit: 10, Per: sec, Left: 3})}
			tr := telling(t, c, speech{after: time.Minute}, speech{status: 429, Signal: headers.Signal{Throttled: true, Kind: kind, RetryAfter: known(sec)}})
			go get(t, t.Context(), tr, "http://a/x")
			synctest.Wait()
			mustGet(t, tr, "http://a/x")
			if found := slices.ContainsFunc(statsOf(t, tr).Learned, func(l throttle.LearnedLimit) bool { return l.Kind == throttle.LearnedRate }); found != kept {
				t.Errorf("%v: a rate is believed: %t", kind, found)
			}
			time.Sleep(time.Minute)
		})
	}
}

// While one asks whether a pause is over, of all requests or of its kind, the end of
// another request, which was sent before the pause, is no answer to that.
func TestTheEndOfAnotherIsNoAnswer(t *testing.T) {
	for _, rate := range []throttle.KnownLimit{fast(), fast("GET /x")} {
		synctest.Test(t, func(t *testing.T) {
			b := newBase(nil)
			b.Answer = func(r *http.Request) (*http.Response, error) {
				switch len(b.Times()) {
				case settledIn + 1:
					time.Sleep(2200 * time.Millisecond)
				case settledIn + 2:
					trip.From(r.Context()).Probe = true // it says nothing of a rate
					return testnet.Answer(r, 503, http.Header{"Retry-After": {"2"}}, nil), nil
				case settledIn + 3:
					time.Sleep(sec / 2)
				}
				return testnet.Answer(r, 200, nil, nil), nil
			}
			tr := newTransport(t, b, throttle.Config{Learned: knowing(rate)})
			throttle.Jitter(tr, func() float64 { return 0 })
			for range settledIn {
				mustGet(t, tr, "http://a/x")
			}
			go get(t, t.Context(), tr, "http://a/x")
			synctest.Wait()
			mustGet(t, tr, "http://a/x")
			b.Start = time.Now()
			go get(t, t.Context(), tr, "http://a/x") // it asks
			synctest.Wait()
			mustGet(t, tr, "http://a/x")
			sameTimes(t, b.Times()[settledIn+2:], 2*sec, 2500*time.Millisecond)
		})
	}
}
