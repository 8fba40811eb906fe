package throttle_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle"
)

// found is a rate that was found: ten in 20 s, in a bucket of one. It binds all requests,
// or those of the given kinds.
func found(routes ...string) throttle.KnownLimit {
	return throttle.KnownLimit{Kind: throttle.LearnedRate, Unit: requests, Limit: 10, Per: 20 * sec, Left: 1, Routes: routes}
}

// fast is a rate that holds up nobody here.
func fast(routes ...string) throttle.KnownLimit {
	return throttle.KnownLimit{Kind: throttle.LearnedRate, Unit: requests, Limit: 1000, Per: sec, Left: 1000, Routes: routes}
}

// For how long requests wait for what was learned, and why. Those behind others are told
// what those take. Whoever waits for a place that nobody can know the end of is told
// nothing.
func TestWaitsForARateThatWasFound(t *testing.T) {
	first := speech{after: 10 * time.Millisecond}
	const rate = "looks like 0.5/s, bucket of 1, found by its refusals"
	const apart = rate + ", for GET /x only"
	expect := func(first time.Duration, why string) []throttle.Wait {
		all := []throttle.Wait{{Expect: first, Why: why}}
		for i := range 2 {
			all = append(all, throttle.Wait{Expect: first + time.Duration(i+1)*2*sec, Why: why})
		}
		return all
	}
	for name, test := range map[string]struct {
		c      throttle.Config
		known  []throttle.KnownLimit
		first  speech
		calls  int
		want   []throttle.Wait // Expect and the beginning of Why, of those that wait
		others bool            // requests of another kind go at once
	}{
		"nothing learned":       {throttle.Config{}, nil, first, 3, nil, true},
		"a rate":                {throttle.Config{}, []throttle.KnownLimit{found()}, first, 3, expect(2*sec, rate), false},
		"a rate of its kind":    {throttle.Config{}, []throttle.KnownLimit{found("GET /x")}, first, 3, expect(2*sec, apart), true},
		"a longer pause":        {throttle.Config{}, []throttle.KnownLimit{found()}, refusal(9*sec, headers.Limit{}), 3, expect(9*sec, "paused until "), true},
		"a shorter pause":       {throttle.Config{}, []throttle.KnownLimit{found()}, refusal(sec, headers.Limit{}), 3, expect(sec, "paused until "), false},
		"only pauses count":     {throttle.Config{DisableLearning: true}, []throttle.KnownLimit{found()}, refusal(sec, headers.Limit{}), 3, []throttle.Wait{{Expect: sec}, {Expect: sec}, {Expect: sec}}, false},
		"more than go at first": {throttle.Config{}, nil, first, 6, []throttle.Wait{{Why: "at most 4 at a time"}, {Why: "at most 4 at a time"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []throttle.Wait
				test.c.Learned = knowing(test.known...)
				test.c.MaxWait = 10 * time.Minute
				test.c.OnWait = func(w throttle.Wait) {
					if !w.Over {
						got = append(got, w)
					}
				}
				tr := telling(t, test.c, test.first, speech{after: sec / 10})
				mustGet(t, tr, "http://a/x")
				got = nil
				for range test.calls {
					go get(t, t.Context(), tr, "http://a/x")
					synctest.Wait()
				}
				same := slices.EqualFunc(got, test.want, func(a, b throttle.Wait) bool {
					return (a.Expect-b.Expect).Abs() < 50*time.Millisecond && strings.HasPrefix(a.Why, b.Why)
				})
				if !same {
					t.Errorf("got %+v\nwant %+v", got, test.want)
				}
				start := time.Now()
				get(t, t.Context(), tr, "http://a/y")
				if took := time.Since(start); (took <= sec/10) != test.others {
					t.Errorf("a request of another kind took %v", took)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// A refusal for requests at a time says nothing of the rate: that of its kind is
// forgotten, if it has one of its own, and else that of all requests.
func TestARefusalOfOneTooManyForgetsTheRateOfItsOwn(t *testing.T) {
	own, all := found("GET /x"), found()
	own.Limit, own.Per, own.Left, all.Limit, all.Per, all.Left = 10, sec, 3, 20, sec, 3
	tooMany := speech{status: 429, Signal: headers.Signal{Throttled: true, Kind: headers.Concurrency}}
	for path, want := range map[string]float64{"x": 20, "y": 10} {
		synctest.Test(t, func(t *testing.T) {
			tr := telling(t, throttle.Config{Learned: knowing(own, all)}, speech{}, speech{}, speech{after: time.Minute}, tooMany)
			mustGet(t, tr, "http://a/x")
			mustGet(t, tr, "http://a/y")
			go get(t, t.Context(), tr, "http://a/"+path)
			synctest.Wait()
			mustGet(t, tr, "http://a/"+path)
			var left []float64
			for _, l := range tr.Learned().Hosts[0].Limits {
				if l.Kind == throttle.LearnedRate {
					left = append(left, l.Limit)
				}
			}
			if !slices.Equal(left, []float64{want}) {
				t.Errorf("after a refusal of /%s, the rates %v are known, want %v", path, left, want)
			}
			time.Sleep(time.Minute)
		})
	}
}
