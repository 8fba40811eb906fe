package chaintest

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/throttle"
)

// poison refuses every request to /refused and serves all others.
func poison(r *http.Request, _ time.Duration) bool { return r.URL.Path != "/v1/refused" }

// A few requests are refused whatever their rate, as those for a locked object
// are or those that are too large. They wait alone: after the first pause the
// others go as if they were not there.
func TestWhatIsAlwaysRefusedWaitsAlone(t *testing.T) {
	for _, test := range []struct {
		name, method, hint string
		n                  int           // requests that are refused
		at                 time.Duration // when they are sent
		pausesOnly         bool
	}{
		{"a POST", "POST", "", 1, 30 * time.Second, false},
		{"a POST, with a hint of 1 s", "POST", "1", 1, 30 * time.Second, false},
		{"a POST, with a hint of 5 s", "POST", "5", 1, 30 * time.Second, false},
		{"a GET like the others", "GET", "", 1, 30 * time.Second, false},
		{"a GET like the others, with a hint", "GET", "1", 1, 30 * time.Second, false},
		{"the first request of all", "POST", "1", 1, 0, false},
		{"five POSTs", "POST", "", 5, 30 * time.Second, false},
		{"five POSTs, with a hint", "POST", "1", 5, 30 * time.Second, false},
		{"a POST, where nothing else is learned", "POST", "1", 1, 30 * time.Second, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &limited{start: time.Now(), way: 20 * time.Millisecond, allow: poison}
				if test.hint != "" {
					s.header = http.Header{"Retry-After": {test.hint}}
				}
				rt := must(weir.New(s, weir.Config{Throttle: throttle.Config{DisableLearning: test.pausesOnly}}))(t)
				var wg sync.WaitGroup
				for range test.n {
					wg.Go(func() {
						time.Sleep(test.at)
						r := get(t, "http://h/v1/refused")
						if r.Method = test.method; test.method == "POST" {
							r = must(http.NewRequestWithContext(t.Context(), "POST", "http://h/v1/refused", strings.NewReader("large")))(t)
						}
						resp, err := rt.RoundTrip(r)
						if err != nil || resp.StatusCode != 429 {
							t.Errorf("what is refused got %v, %v, want its 429", resp, err)
						}
						if got := time.Since(s.start) - test.at; got < 60*time.Second {
							t.Errorf("what is refused was given up after %v, want 60s or more", got)
						}
					})
				}
				type call struct{ at, took time.Duration }
				var mu sync.Mutex
				var calls []call
				lost := 0
				for i := range 1200 {
					wg.Go(func() {
						time.Sleep(time.Duration(i) * 100 * time.Millisecond)
						at := time.Since(s.start)
						resp, err := rt.RoundTrip(get(t, "http://h/v1/served"))
						mu.Lock()
						defer mu.Unlock()
						if err != nil || resp.StatusCode != 200 {
							lost++
						}
						calls = append(calls, call{at, time.Since(s.start) - at})
					})
				}
				wg.Wait()
				over := test.at + 3*time.Second // the first pause is, and those it held up are through
				if test.hint == "5" {
					over += 5 * time.Second
				}
				late := 0
				for _, c := range calls {
					if c.at > over && c.took > time.Second {
						late++
					}
				}
				slices.SortFunc(calls, func(a, b call) int { return int(b.took - a.took) })
				if lost > 0 || late > 0 {
					t.Errorf("%d of 1200 were lost and %d were more than 1 s late, want none", lost, late)
				}
			})
		})
	}
}

// A request that is refused again while others are served waits alone, also if it is its
// caller who repeats it: all calls to its URL wait then, and no others.
func TestWhatItsCallerRepeatsWaitsAlone(t *testing.T) {
	for _, test := range []struct {
		name, method, bad, hint string
		each                    int           // so many URLs are called in turn, of which one is refused; zero: a caller of its own calls that
		again, deadline         time.Duration // of calls to the URL that is refused
	}{
		{"repeated at once", "GET", "/v1/refused", "", 0, 10 * time.Millisecond, 10 * time.Second},
		{"repeated at once, with a hint", "GET", "/v1/refused", "1", 0, 10 * time.Millisecond, 10 * time.Second},
		{"repeated at once, with a hint of 5 s", "GET", "/v1/refused", "5", 0, 10 * time.Millisecond, 10 * time.Second},
		{"every second, with a hint of 5 s", "GET", "/v1/refused", "5", 0, time.Second, 10 * time.Second},
		{"every 30 s, with a hint", "GET", "/v1/refused", "1", 0, 30 * time.Second, 10 * time.Second},
		{"another kind, every second", "GET", "/refused", "5", 0, time.Second, 10 * time.Second},
		{"a POST, every second", "POST", "/v1/refused", "5", 0, time.Second, 10 * time.Second},
		{"repeated at once, with a hint that is longer than its deadline", "GET", "/v1/refused", "5", 0, 10 * time.Millisecond, 2 * time.Second},
		{"one URL of 20", "GET", "/v1/7", "", 20, 0, 10 * time.Second},
		{"one URL of 20, with a hint", "GET", "/v1/7", "1", 20, 0, 10 * time.Second},
		{"one URL of 20, with a hint of 5 s", "GET", "/v1/7", "5", 20, 0, 10 * time.Second},
		{"one query of 20", "GET", "/v1?id=7", "1", 20, 0, 10 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const begins = 30 * time.Second
				s := &limited{start: time.Now(), way: 20 * time.Millisecond,
					allow: func(r *http.Request, now time.Duration) bool { return r.URL.RequestURI() != test.bad || now < begins }}
				over := begins + 3*time.Second // the first pause is, and those it held up are through
				if test.hint != "" {
					s.header = http.Header{"Retry-After": {test.hint}}
					over += must(time.ParseDuration(test.hint + "s"))(t)
				}
				rt := must(weir.New(s, weir.Config{}))(t)
				call := func(method, path string, deadline time.Duration) bool {
					ctx, cancel := context.WithTimeout(t.Context(), deadline)
					defer cancel()
					r := get(t, "http://h"+path).WithContext(ctx)
					r.Method = method
					resp, err := rt.RoundTrip(r)
					return err == nil && resp.StatusCode == 200
				}
				var wg sync.WaitGroup
				if test.each == 0 {
					wg.Go(func() {
						for time.Sleep(begins); time.Since(s.start) < 120*time.Second; time.Sleep(test.again) {
							call(test.method, test.bad, test.deadline)
						}
					})
				}
				var lost, late atomic.Int64
				for i := range 1200 {
					wg.Go(func() {
						time.Sleep(time.Duration(i) * 100 * time.Millisecond)
						path := "/v1/served"
						if test.each > 0 {
							path = strings.Replace(test.bad, "7", strconv.Itoa(i%test.each), 1)
						}
						at := time.Since(s.start)
						ok := call("GET", path, 10*time.Second)
						if path == test.bad {
							return
						}
						if !ok {
							lost.Add(1)
						}
						if at > over && time.Since(s.start)-at > time.Second {
							late.Add(1)
						}
					})
				}
				wg.Wait()
				if lost.Load() > 0 || late.Load() > 0 {
					t.Errorf("of 1200 others %d were lost and %d were more than 1 s late, want none", lost.Load(), late.Load())
				}
			})
		})
	}
}

// leakyBucket lets rate requests a second pass, and burst at once.
func leakyBucket(rate, burst float64) func(*http.Request, time.Duration) bool {
	tokens, last := burst, time.Duration(0)
	return func(_ *http.Request, now time.Duration) bool {
		tokens = min(burst, tokens+(now-last).Seconds()*rate)
		if last = now; tokens < 1 {
			return false
		}
		tokens--
		return true
	}
}

// A limit that refuses one request after the other is everybody's, also if the
// same are refused again while others are served: its rate is found with as few
// refusals as if each were counted.
func TestALimitOfAllIsNobodysOwn(t *testing.T) {
	closed := func(n int, until time.Duration) func(*http.Request, time.Duration) bool {
		serve := leakyBucket(50, 50)
		return func(r *http.Request, now time.Duration) bool { return (n == 0 || now >= until) && serve(r, now) }
	}
	for _, test := range []struct {
		name          string
		allow         func(*http.Request, time.Duration) bool
		hint          string
		workers, jobs int
		refused       int           // at most
		took          time.Duration // at most
	}{
		{"ten a second", leakyBucket(10, 10), "", 64, 600, 25, 75 * time.Second},
		{"ten a second, with a hint", leakyBucket(10, 10), "1", 64, 600, 30, 65 * time.Second},
		{"one a second", leakyBucket(1, 1), "", 16, 60, 24, 100 * time.Second},
		{"nothing for half a minute", closed(1, 30*time.Second), "", 20, 400, 50, 50 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &limited{start: time.Now(), way: 20 * time.Millisecond, allow: test.allow}
				if test.hint != "" {
					s.header = http.Header{"Retry-After": {test.hint}}
				}
				rt := must(weir.New(s, weir.Config{Throttle: throttle.Config{MaxWait: 10 * time.Minute}}))(t)
				var left atomic.Int64
				left.Store(int64(test.jobs))
				var wg sync.WaitGroup
				for range test.workers {
					wg.Go(func() {
						for left.Add(-1) >= 0 {
							if resp, err := rt.RoundTrip(get(t, "http://h/")); err != nil || resp.StatusCode != 200 {
								t.Errorf("a caller of a limit of all got %v, %v; want status 200", resp, err)
							}
						}
					})
				}
				wg.Wait()
				took := time.Since(s.start)
				t.Logf("took %v, refused %d", took, s.refused)
				if s.refused > test.refused || took > test.took {
					t.Errorf("%d refused in %v, want at most %d in %v", s.refused, took, test.refused, test.took)
				}
			})
		})
	}
}

// Resume ends the wait of a request that waits alone, too.
func TestResumeEndsTheWaitOfOneAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := false
		s := &limited{start: time.Now(), way: 20 * time.Millisecond, header: http.Header{"Retry-After": {"10"}},
			allow: func(r *http.Request, _ time.Duration) bool { return open || poison(r, 0) }}
		rt := must(weir.New(s, weir.Config{}))(t)
		ended := make(chan time.Duration, 1)
		go func() {
			resp, err := rt.RoundTrip(get(t, "http://h/v1/refused"))
			if err != nil || resp.StatusCode != 200 {
				t.Errorf("%v, %v", resp, err)
			}
			ended <- time.Since(s.start)
		}()
		for time.Since(s.start) < 30*time.Second {
			time.Sleep(100 * time.Millisecond)
			if _, err := rt.RoundTrip(get(t, "http://h/v1/served")); err != nil {
				t.Error(err)
			}
		}
		s.mu.Lock()
		open = true
		s.mu.Unlock()
		at := time.Since(s.start)
		rt.Throttle().Resume("h")
		if took := <-ended - at; took > 50*time.Millisecond {
			t.Errorf("served %v after Resume, want at once", took)
		}
	})
}

// A request that was refused and waits does not hide that the server asked
// everybody to pause.
func TestThePauseOfAllShowsWhileTheRefusedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &limited{start: time.Now(), way: 20 * time.Millisecond, header: http.Header{"Retry-After": {"30"}},
			allow: func(_ *http.Request, at time.Duration) bool { return at > 30*time.Second }}
		rt := must(weir.New(s, weir.Config{}))(t)
		ended := make(chan error, 1)
		go func() {
			_, err := rt.RoundTrip(get(t, "http://h/v1"))
			ended <- err
		}()
		time.Sleep(time.Second)
		h := rt.Stats().Throttle.Hosts[0]
		if h.State != throttle.StatePaused || h.Routes[0].State != throttle.StatePaused || h.Queue != 1 {
			t.Errorf("host %s, route %s, %d waiting; want paused, with one that waits", h.State, h.Routes[0].State, h.Queue)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Who is refused again and again without a word about when to come back asks ever more
// seldom: it can only guess that the time is not yet.
func TestWhatIsAlwaysRefusedAsksEverMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		s := &limited{start: time.Now(), way: 20 * time.Millisecond, allow: func(r *http.Request, d time.Duration) bool {
			if !poison(r, d) {
				asked.Add(1)
			}
			return poison(r, d)
		}}
		rt := must(weir.New(s, weir.Config{}))(t)
		var wg sync.WaitGroup
		for i := range 700 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				if resp, err := rt.RoundTrip(get(t, "http://h/v1/served")); err == nil {
					resp.Body.Close()
				}
			})
		}
		time.Sleep(5 * time.Second)
		if resp, err := rt.RoundTrip(get(t, "http://h/v1/refused")); err == nil {
			resp.Body.Close()
		}
		wg.Wait()
		if n := asked.Load(); n > 16 { // .5, 1, 2, 4, 8, then 12 s
			t.Errorf("asked %d times within 75 s, want at most 16", n)
		}
	})
}

// If one URL is refused for long, one request to another URL of its kind asks whether that is
// for all: of 24 other calls none waits, whether the refusal comes first or later. A host that
// refuses all of them is asked once.
func TestALongHintOfOneURLHoldsUpNoOther(t *testing.T) {
	for _, test := range []struct {
		name   string
		before int // calls to others
		all    bool
		sent   int // of 24 others
	}{
		{"the first call of all", 0, false, 24},
		{"later", 10, false, 24},
		{"for all", 10, true, 4}, // so many are asked for before all wait
	} {
		for _, hint := range []string{"30", "86400"} {
			synctest.Test(t, func(t *testing.T) {
				shut := false
				s := &limited{start: time.Now(), way: 20 * time.Millisecond, header: http.Header{"Retry-After": {hint}},
					allow: func(r *http.Request, _ time.Duration) bool { return r.URL.Path != "/items/0" && !shut }}
				rt := must(weir.New(s, weir.Config{}))(t)
				call := func(i int) (ok bool) {
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					resp, err := rt.RoundTrip(get(t, "http://h/items/"+strconv.Itoa(i)).WithContext(ctx))
					return err == nil && resp.StatusCode == 200
				}
				for i := range test.before {
					call(i + 1)
				}
				shut = test.all
				call(0)
				refused, served := s.refused, 0
				start := time.Now()
				for i := range 24 {
					if call(i + 100) {
						served++
					}
				}
				if test.all {
					if sent := s.refused - refused; sent != test.sent {
						t.Errorf("%s, %s s: %d others were sent, want %d", test.name, hint, sent, test.sent)
					}
				} else if took := time.Since(start); served != test.sent || took > 24*50*time.Millisecond {
					t.Errorf("%s, %s s: %d of 24 others were served in %v, want %d in 1.2s", test.name, hint, served, took, test.sent)
				}
			})
		}
	}
}
