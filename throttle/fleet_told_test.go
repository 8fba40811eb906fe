package throttle_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/store"
)

// keysAsked are the keys of the last booking.
func keysAsked(s *farstore.Store) (keys []string) {
	asked := s.Asked()
	for _, d := range asked[len(asked)-1].Draws {
		keys = append(keys, d.Key)
	}
	return keys
}

// A request draws on its host always, on the routes it matches if they have
// budgets, and on each pool once.
func TestFleetKeysOfARequest(t *testing.T) {
	pooled := func(b, name string) throttle.Budget {
		x := throttle.MustParseBudget(b)
		x.Pool = name
		return x
	}
	for name, test := range map[string]struct {
		other, host, route throttle.Budget
		want               []string
	}{
		"nothing":             {throttle.Budget{}, throttle.Budget{}, throttle.Budget{}, []string{"h"}},
		"a default":           {throttle.MustParseBudget("9/s"), throttle.Budget{}, throttle.Budget{InFlight: 3}, []string{"h", "h GET h/x"}},
		"a route":             {throttle.MustParseBudget("9/s"), throttle.Budget{}, throttle.MustParseBudget("5/s"), []string{"h", "h GET h/x"}},
		"a pool":              {throttle.MustParseBudget("9/s"), pooled("5/s", "p"), throttle.Budget{}, []string{"h", "pool p"}},
		"a route's pool":      {throttle.MustParseBudget("9/s"), throttle.Budget{}, pooled("5/s", "p"), []string{"h", "pool p"}},
		"one pool":            {throttle.Budget{}, pooled("5/s", "p"), pooled("5/s", "p"), []string{"h", "pool p"}},
		"two pools":           {throttle.Budget{}, pooled("5/s", "p"), pooled("6/s", "q"), []string{"h", "pool p", "pool q"}},
		"a pool and a route":  {throttle.Budget{}, pooled("5/s", "p"), throttle.MustParseBudget("5/s"), []string{"h", "pool p", "h GET h/x"}},
		"a pool without rate": {throttle.Budget{}, throttle.Budget{InFlight: 2, Pool: "p"}, throttle.Budget{InFlight: 3, Pool: "q"}, []string{"h", "pool p", "pool q"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := farstore.New(0)
			c := throttle.Config{Default: test.other, Budgets: make(map[string]throttle.Budget)}
			if test.host.String() != (throttle.Budget{}).String() {
				c.Budgets["h"] = test.host
			}
			if test.route.String() != (throttle.Budget{}).String() {
				c.Budgets["GET h/x"] = test.route
			}
			tr := sharedTransports(t, s, c, 1, newBase(nil))[0]
			if err := visit(t, tr, "http://h/x"); err != nil {
				t.Error(name, err)
			}
			if got := keysAsked(s); !slices.Equal(got, test.want) {
				t.Errorf("%s: draws on %q, want %q", name, got, test.want)
			}
		})
	}
}

// A pause by hand reaches those of the host's partitions that this process has
// met, in other processes too, and so does its end. Other hosts go on.
func TestFleetTellsPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := throttle.Config{Default: throttle.MustParseBudget("100/s"), MaxWait: -1, Partition: func(r *http.Request) string { return r.URL.Query().Get("who") }}
		s := farstore.New(time.Millisecond)
		ts := sharedTransports(t, s, c, 2, newBase(nil))
		all := []string{"http://h/?who=a", "http://h/?who=b", "http://i/?who=a"}
		open := func(tr *throttle.Transport, want ...bool) {
			t.Helper()
			for i, url := range all {
				var e *throttle.Error
				err := visit(t, tr, url)
				if (err == nil) != want[i] || !want[i] && (!errors.As(err, &e) || e.RetryAfter < 50*sec || e.RetryAfter > time.Minute) {
					t.Errorf("%s: %v", url, err)
				}
			}
			time.Sleep(2 * sec)
		}
		open(ts[0], true, true, true)
		ts[0].Pause("h", time.Now().Add(time.Minute))
		time.Sleep(2 * sec)
		open(ts[1], false, false, true)
		ts[0].Resume("h")
		time.Sleep(2 * sec)
		open(ts[1], true, true, true)
	})
}

// The store is told of pauses and of quotas that are nearly spent, and of no
// answer that says neither.
func TestFleetTellsWhatMatters(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		header []string
		tells  int
	}{
		"nothing":        {200, nil, 0},
		"plenty":         {200, []string{"X-RateLimit-Limit", "100", "X-RateLimit-Remaining", "90", "X-RateLimit-Reset", "60"}, 0},
		"nearly nothing": {200, []string{"X-RateLimit-Limit", "100", "X-RateLimit-Remaining", "3", "X-RateLimit-Reset", "60"}, 1},
		"no quota":       {200, []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "60"}, 0},
		"a pause":        {429, []string{"Retry-After", "20"}, 1},
		"no such page":   {404, nil, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := farstore.New(0)
			tr := sharedTransports(t, s, throttle.Config{Default: throttle.MustParseBudget("100/s")}, 1,
				answers(func(*http.Request) *http.Response { return answer(test.status, test.header...) }))[0]
			if err := visit(t, tr, "http://h/"); err != nil {
				t.Error(name, err)
			}
			time.Sleep(2 * sec)
			if n := s.Tells(); n != test.tells {
				t.Errorf("%s: told %d times, want %d", name, n, test.tells)
			}
			if n := len(tr.Stats().Hosts); n != 1 {
				t.Errorf("%s: %d hosts", name, n)
			}
		})
	}
}

func TestTransportsSharePausesByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := sharedTransports(t, farstore.New(time.Millisecond), throttle.Config{MaxWait: time.Second}, 2,
			answers(func(*http.Request) *http.Response { return answer(200) }))
		ts[0].Pause("api.example", time.Now().Add(time.Minute))
		time.Sleep(10 * time.Millisecond)
		var e *throttle.Error
		if err := visit(t, ts[1], "https://api.example/"); !errors.As(err, &e) || e.Reason != throttle.Paused {
			t.Errorf("got %v, want a pause", err)
		}
		if err := visit(t, ts[1], "https://other.example/"); err != nil {
			t.Errorf("another host: %v", err)
		}
		ts[0].Resume("api.example")
		time.Sleep(2 * time.Second)
		if err := visit(t, ts[1], "https://api.example/"); err != nil {
			t.Errorf("after Resume: %v", err)
		}
	})
}

// A pause by hand that ends sooner than the one before ends sooner for all.
func TestTransportsShortenPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		part := func(r *http.Request) string { return r.URL.Path[1:] }
		ts := sharedTransports(t, farstore.New(time.Millisecond), throttle.Config{MaxWait: time.Second, Partition: part}, 2,
			answers(func(*http.Request) *http.Response { return answer(200) }))
		urls := []string{"https://api.example/", "https://api.example/p"}
		for _, url := range urls {
			if err := visit(t, ts[0], url); err != nil {
				t.Fatal(err)
			}
		}
		for _, d := range []time.Duration{time.Hour, 2 * time.Second} {
			ts[0].Pause("api.example", time.Now().Add(d))
			time.Sleep(100 * time.Millisecond)
			for _, tr := range ts {
				for _, url := range urls {
					var e *throttle.Error
					if err := visit(t, tr, url); !errors.As(err, &e) || e.Reason != throttle.Paused {
						t.Errorf("%s: got %v, want a pause", url, err)
					}
				}
			}
		}
		time.Sleep(4 * time.Second)
		for _, tr := range ts {
			for _, url := range urls {
				if err := visit(t, tr, url); err != nil {
					t.Errorf("%s after the pause: %v", url, err)
				}
			}
		}
	})
}

// tells is a store that keeps what it was told.
type tells struct {
	throttle.Store
	mu   sync.Mutex
	news []store.News
}

func (s *tells) Tell(ctx context.Context, key string, n store.News) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.news = append(s.news, n)
	return s.Store.Tell(ctx, key, n)
}

// Which stated quotas are worth telling the other processes.
func TestQuotasWorthTelling(t *testing.T) {
	known := func(v float64) headers.Opt[float64] { return headers.Opt[float64]{Value: v, Known: true} }
	tell := store.Stated{ID: "core", Unit: requests, Remaining: 10, Reset: time.Minute}
	but := func(change func(*store.Stated)) *store.Stated {
		s := tell
		change(&s)
		return &s
	}
	for name, test := range map[string]struct {
		change func(*headers.Limit)
		want   *store.Stated
	}{
		"a tenth left":     {func(*headers.Limit) {}, &tell},
		"more":             {func(l *headers.Limit) { l.Remaining.Value = 10.5 }, nil},
		"none":             {func(l *headers.Limit) { l.Remaining.Value = 0 }, but(func(s *store.Stated) { s.Remaining = 0 })},
		"no size":          {func(l *headers.Limit) { l.Quota.Known = false }, nil},
		"none of no size":  {func(l *headers.Limit) { l.Quota.Known, l.Remaining.Value = false, 0 }, but(func(s *store.Stated) { s.Remaining = 0 })},
		"no unit":          {func(l *headers.Limit) { l.Unit = "" }, &tell},
		"tokens":           {func(l *headers.Limit) { l.Unit = "tokens" }, nil},
		"a partition":      {func(l *headers.Limit) { l.Partition = "x" }, nil},
		"no reset":         {func(l *headers.Limit) { l.Reset.Known = false }, nil},
		"nothing left out": {func(l *headers.Limit) { l.Remaining.Known = false }, nil},
		"full":             {func(l *headers.Limit) { l.ResetMeans = headers.Full }, nil},
		"next":             {func(l *headers.Limit) { l.ResetMeans = headers.Next }, nil},
		"a boundary":       {func(l *headers.Limit) { l.ResetMeans = headers.Boundary }, &tell},
		"too many":         {func(l *headers.Limit) { l.Remaining.Value, l.Quota.Value = 2e15, 1e17 }, nil},
		"a long name":      {func(l *headers.Limit) { l.Name = strings.Repeat("n", 65) }, but(func(s *store.Stated) { s.ID = strings.Repeat("n", 64) })},
		"a far reset":      {func(l *headers.Limit) { l.Reset.Value = math.MaxInt64 }, but(func(s *store.Stated) { s.Reset = store.MaxHorizon })},
		"a past reset":     {func(l *headers.Limit) { l.Reset.Value = -1 }, but(func(s *store.Stated) { s.Reset = 0 })},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := headers.Limit{Name: "core", Unit: requests, Remaining: known(10), Quota: known(100), Reset: headers.Opt[time.Duration]{Value: time.Minute, Known: true}}
			test.change(&l)
			s := &tells{Store: farstore.New(0)}
			tr := sharedTransports(t, s, throttle.Config{MaxPause: store.MaxHorizon, Classify: func(_ *http.Response, said headers.Signal) headers.Signal {
				said.Throttled, said.Limits = true, []headers.Limit{l}
				return said
			}}, 1, newBase(nil))[0]
			mustGet(t, tr, "http://h/").Body.Close()
			tr.Close()
			var got []store.Stated
			for _, n := range s.news {
				got = append(got, n.Stated...)
			}
			if test.want == nil && len(got) > 0 || test.want != nil && (len(got) != 1 || got[0] != *test.want) {
				t.Errorf("%s: %+v, want %+v", name, got, test.want)
			}
		})
	}
}

// The store is told what Classify made of an answer, not what its headers say.
func TestFleetTellsWhatClassifySays(t *testing.T) {
	spent := headers.Limit{
		Name: "core", Unit: requests, Quota: headers.Opt[float64]{Value: 100, Known: true},
		Remaining: headers.Opt[float64]{Known: true}, Reset: headers.Opt[time.Duration]{Value: time.Minute, Known: true},
	}
	for name, test := range map[string]struct {
		header []string
		limits []headers.Limit
		want   []store.Stated
	}{
		"a limit of its own":  {nil, []headers.Limit{spent}, []store.Stated{{ID: "core", Unit: requests, Reset: time.Minute}}},
		"none of the headers": {[]string{"X-RateLimit-Limit", "100", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "60"}, nil, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &tells{Store: farstore.New(0)}
			tr := sharedTransports(t, s, throttle.Config{MaxPause: store.MaxHorizon, Classify: func(_ *http.Response, said headers.Signal) headers.Signal {
				said.Limits = test.limits
				return said
			}}, 1, answers(func(*http.Request) *http.Response { return answer(200, test.header...) }))[0]
			mustGet(t, tr, "http://h/").Body.Close()
			tr.Close()
			var got []store.Stated
			for _, n := range s.news {
				got = append(got, n.Stated...)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: %+v, want %+v", name, got, test.want)
			}
		})
	}
}

// A partition may be a secret: the store gets a digest of it, which tells partitions apart.
func TestStoreKeysHideSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(0)
		tr := sharedTransports(t, s, throttle.Config{
			Budgets:   budgetsOf(map[string]string{"GET h/x": "5/s"}),
			Partition: func(r *http.Request) string { return r.URL.RawQuery },
		}, 1, newBase(nil))[0]
		seen := make(map[string]bool)
		for _, url := range []string{"http://h/x", "http://h/x?sk-secret", "http://h/x?other"} {
			mustGet(t, tr, url).Body.Close()
			for _, key := range keysAsked(s) {
				if seen[key] || strings.Contains(key, "secret") || !strings.HasPrefix(key, "h") {
					t.Errorf("%s draws on %q", url, key)
				}
				seen[key] = true
			}
		}
		if len(seen) != 6 {
			t.Errorf("%d accounts, want a host and a route of three partitions", len(seen))
		}
	})
}

// What one process guessed after refusals without a hint refuses no caller of another process
// before its time is over: a better estimate may come. What the server said does, at once.
func TestGuessesOfOthersRefuseNobodyEarly(t *testing.T) {
	const patience = 3 * sec
	for name, test := range map[string]struct {
		header []string
		budget string // with it processes share pauses, without it also what they find
		want   time.Duration
	}{
		"a guess":                        {nil, "", patience},
		"a guess beside a budget":        {nil, "100/s", patience},
		"what was said":                  {[]string{"Retry-After", "60"}, "", 0},
		"what was said beside a budget":  {[]string{"Retry-After", "60"}, "100/s", 0},
		"more than was said":             {[]string{"Retry-After", "2"}, "", patience},
		"more than said beside a budget": {[]string{"Retry-After", "2"}, "100/s", patience},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := throttle.Config{MaxWait: time.Hour}
				if test.budget != "" {
					c.Default = throttle.MustParseBudget(test.budget)
				}
				ts := sharedTransports(t, farstore.New(time.Millisecond), c, 2,
					answers(func(*http.Request) *http.Response { return answer(429, test.header...) }))
				for paused := time.Duration(0); paused < 2*patience; {
					if err := visit(t, ts[0], "http://h/"); err != nil {
						t.Fatal(err)
					}
					for _, why := range ts[0].Stats().Hosts[0].Restrictions {
						paused = max(paused, why.For)
					}
				}
				time.Sleep(100 * time.Millisecond) // the store is told meanwhile
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				r, _ := http.NewRequestWithContext(ctx, "GET", "http://h/", nil)
				begin := time.Now()
				resp, err := ts[1].RoundTrip(r)
				if err == nil {
					resp.Body.Close()
				}
				if took := time.Since(begin); err == nil || took < test.want || took > test.want+100*time.Millisecond {
					t.Errorf("got %v after %v, want a refusal after %v", err, took, test.want)
				}
			})
		})
	}
}
