package throttle_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// restarted is what the next run gets of what tr has learned: what a file held.
func restarted(t *testing.T, tr *throttle.Transport) (k throttle.Knowledge) {
	t.Helper()
	text, err := json.Marshal(tr.Learned())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &k); err != nil {
		t.Fatal(err)
	}
	return k
}

// asksToWait answers 429 and asks to wait for so many seconds.
func asksToWait(seconds string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		return testnet.Answer(r, 429, http.Header{"Retry-After": {seconds}}, nil), nil
	}
}

// served makes n calls, some at a time, each until it is served.
func served(t *testing.T, tr *throttle.Transport, url string, n, atOnce int, as string) {
	t.Helper()
	var wg sync.WaitGroup
	turn := make(chan bool, atOnce)
	for range n {
		turn <- true
		wg.Go(func() {
			defer func() { <-turn }()
			for {
				r, _ := http.NewRequestWithContext(t.Context(), "GET", url, nil)
				r.Header.Set("Authorization", as)
				resp, err := tr.RoundTrip(r)
				if err != nil {
					continue // it waits no longer than MaxWait, and is to be served
				}
				resp.Body.Close()
				if resp.StatusCode < 400 {
					return
				}
			}
		})
	}
	wg.Wait()
}

// A program that starts again goes on with what it had learned: it is refused far
// less than one that starts from nothing, and takes hardly longer.
func TestLearnedOutlivesRuns(t *testing.T) {
	fill := func(per time.Duration, bucket float64) func() func(*http.Request) (*http.Response, error) {
		return func() func(*http.Request) (*http.Response, error) { // a bucket that says only when to come back, or nothing
			var mu sync.Mutex
			left, at := bucket, time.Now()
			return func(r *http.Request) (*http.Response, error) {
				time.Sleep(20 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				now := time.Now()
				left, at = min(bucket, left+now.Sub(at).Seconds()/per.Seconds()), now
				if left < 1 {
					return testnet.Answer(r, 429, nil, nil), nil
				}
				left--
				return testnet.Answer(r, 200, nil, nil), nil
			}
		}
	}
	quota := func() func(*http.Request) (*http.Response, error) { // 20 a minute, from its first request on, and says so when it refuses
		var mu sync.Mutex
		var ends time.Time
		left := 20
		return func(r *http.Request) (*http.Response, error) {
			time.Sleep(20 * time.Millisecond) // of answers at one instant nobody can tell which is the newest
			mu.Lock()
			defer mu.Unlock()
			if now := time.Now(); !now.Before(ends) {
				left, ends = 20, now.Add(time.Minute)
			}
			h := http.Header{"X-Ratelimit-Limit": {"20"}, "X-Ratelimit-Remaining": {fmt.Sprint(max(0, left-1))}, "X-Ratelimit-Reset": {fmt.Sprint(int(math.Ceil(time.Until(ends).Seconds())))}}
			if left == 0 {
				return testnet.Answer(r, 429, h, nil), nil
			}
			left--
			return testnet.Answer(r, 200, h, nil), nil
		}
	}
	for name, tt := range map[string]struct {
		server        func() func(*http.Request) (*http.Response, error)
		first, second int
		most          int // refused in the second run; -1: the half of those of a run from nothing
	}{
		"a rate that is only refused": {fill(50*time.Millisecond, 5), 300, 300, -1},
		"a quota that is spent":       {quota, 20, 5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var refused [2]int
				var took [2]time.Duration
				for i := range refused {
					serve := tt.server()
					n, mu := 0, sync.Mutex{}
					b := newBase(func(r *http.Request) (*http.Response, error) {
						resp, err := serve(r)
						if resp.StatusCode == 429 {
							mu.Lock()
							n++
							mu.Unlock()
						}
						return resp, err
					})
					first := newTransport(t, b, throttle.Config{})
					served(t, first, "http://a/x/1", tt.first, 32, "Bearer s3cret")
					c := throttle.Config{}
					if i == 1 {
						c.Learned = restarted(t, first)
					}
					n = 0
					begin := time.Now()
					second := newTransport(t, b, c)
					served(t, second, "http://a/x/1", tt.second, 32, "Bearer s3cret")
					refused[i], took[i] = n, time.Since(begin)
				}
				t.Logf("refused from nothing %d in %v, from what was learned %d in %v", refused[0], took[0], refused[1], took[1])
				most := tt.most
				if most < 0 {
					most = refused[0] / 2
				}
				if refused[0] == 0 || refused[1] > most || took[1] > took[0]*11/10+time.Second {
					t.Errorf("want at most %d", most)
				}
			})
		})
	}
}

// Each kind of limit comes back, for those that it bound.
func TestLearnedComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		later := time.Now().Add(2 * time.Minute)
		before := newTransport(t, newBase(asksToWait("200")), throttle.Config{Learned: throttle.Knowledge{Version: 1, Salt: make([]byte, 16)}})
		r, _ := http.NewRequest("GET", "http://a/x", nil)
		r.Header.Set("Authorization", "Bearer one")
		if _, err := before.RoundTrip(r); err != nil {
			t.Fatal(err)
		}
		whose := before.Learned().Hosts[0].Whose
		c := throttle.Config{Learned: throttle.Knowledge{Version: 1, Salt: make([]byte, 16), Hosts: []throttle.KnownHost{
			{Host: "a", Whose: whose, At: time.Now(), Limits: []throttle.KnownLimit{
				{Kind: throttle.LearnedPause, Routes: []string{"GET /slow"}, Source: "Retry-After", Until: later},
				{Kind: throttle.LearnedQuota, Routes: []string{"GET /search", "POST /search"}, Name: "search", Unit: "requests", Source: "X-RateLimit-Remaining", Limit: 30, Per: time.Minute, Left: 1, Until: later},
				{Kind: throttle.LearnedConcurrency, Limit: 40},
				{Kind: throttle.LearnedConcurrency, Routes: []string{"GET /few"}, Source: "answers", Limit: 2},
				{Kind: throttle.LearnedConcurrency, Routes: []string{"GET /many"}, Limit: 40},
				{Kind: throttle.LearnedRate, Routes: []string{"GET /rare"}, Unit: "requests", Limit: 0.1, Per: time.Second},
			}},
		}}}
		b := newBase(slow(time.Second))
		tr := newTransport(t, b, c)
		for _, as := range []string{"Bearer one", "Bearer two"} {
			bound := as == "Bearer one"
			took := func(path string, n int) time.Duration {
				start := time.Now()
				served(t, tr, "http://a"+path, n, n, as)
				return time.Since(start).Round(time.Second / 10)
			}
			if d := took("/other", 1); d != time.Second {
				t.Errorf("%s: what nothing binds took %v", as, d)
			}
			if bound && !slices.ContainsFunc(restarted(t, tr).Hosts[0].Limits, func(l throttle.KnownLimit) bool {
				return l.Kind == throttle.LearnedPause && slices.Equal(l.Routes, []string{"GET /slow"}) && l.Until.Sub(later).Abs() < time.Second
			}) {
				t.Error("the next run would not know of the pause of a route that was not called")
			}
			if d := took("/slow", 1); (d > time.Minute) != bound {
				t.Errorf("%s: what is paused took %v", as, d)
			}
			if bound && took("/many", 40) != time.Second {
				t.Errorf("%s: 40 at a time are borne no more", as)
			}
			if d := took("/few", 4); (d > time.Second*3/2) != bound {
				t.Errorf("%s: four where two at a time were borne took %v", as, d)
			}
			if d := took("/rare", 3); (d > 10*time.Second) != bound {
				t.Errorf("%s: three at one in ten seconds took %v", as, d)
			}
		}
	})
}

// A rate that several kinds of request share comes back as one, and binds no others.
func TestLearnedRateOfSomeKindsComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(slow(time.Second)), throttle.Config{Learned: knowing(found("GET /a", "GET /b"))})
		took := func(path string) time.Duration {
			start := time.Now()
			served(t, tr, "http://a"+path, 1, 1, "")
			return time.Since(start)
		}
		took("/a")
		if other := took("/c"); other != time.Second {
			t.Errorf("one of another kind took %v, want a second", other)
		}
		took("/b")
		if again := took("/a"); again < 3*time.Second/2 {
			t.Errorf("one a second after another that shares 0.5/s took %v, want two seconds", again)
		}
		var rates [][]string
		for _, l := range restarted(t, tr).Hosts[0].Limits {
			if l.Kind == throttle.LearnedRate {
				rates = append(rates, l.Routes)
			}
		}
		if len(rates) != 1 || len(rates[0]) != 2 {
			t.Errorf("the next run knows of rates for %q, want one for both", rates)
		}
	})
}

// A rate that was found for some kinds of request is kept, also if the first of these kinds has a
// name that may be a secret: that name is left out.
func TestLearnedRateOfASecretKindIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var next time.Time
		tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) {
			if limited := r.URL.Path == "/b" || strings.HasPrefix(r.URL.Path, "/bot"); limited && time.Now().Before(next) {
				return testnet.Answer(r, 429, nil, nil), nil
			} else if limited {
				next = time.Now().Add(3 * time.Second)
			}
			return testnet.Answer(r, 200, nil, nil), nil
		}), throttle.Config{MaxWait: 30 * time.Second})
		var calls sync.WaitGroup
		for range 400 {
			for _, path := range []string{"/b", "/bot1234567:AAE-token/send", "/c", "/d", "/e", "/f"} {
				calls.Go(func() { get(t, t.Context(), tr, "http://a"+path) })
				time.Sleep(100 * time.Millisecond)
			}
		}
		calls.Wait()
		for _, l := range tr.Learned().Hosts[0].Limits {
			if l.Kind == throttle.LearnedRate && slices.Equal(l.Routes, []string{"GET /b"}) {
				return
			}
		}
		t.Errorf("%+v is learned, no rate for GET /b", tr.Learned().Hosts[0].Limits)
	})
}

// What is learned says neither who called nor what may be a secret, and what was
// not needed in one run is there for the next.
func TestLearnedHoldsNoSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 429, http.Header{"Retry-After": {"200"}, "X-Ratelimit-Limit": {"10"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"200"}}, nil), nil
		})
		tr := newTransport(t, b, throttle.Config{Partition: func(*http.Request) string { return "partition-key" }})
		for _, path := range []string{"/plain/1", "/bot1234567:AAE-token/send"} {
			r, _ := http.NewRequest("GET", "http://user:password@a"+path+"?q=query", nil)
			r.Header.Set("Authorization", "Bearer credential")
			if _, err := tr.RoundTrip(r); err != nil {
				break // the first has spent it all
			}
		}
		k := restarted(t, tr)
		for range 3 { // nobody asks in these runs
			k = restarted(t, newTransport(t, b, throttle.Config{Learned: k}))
		}
		if len(k.Hosts) != 1 || k.Hosts[0].Host != "a" || len(k.Hosts[0].Limits) < 2 {
			t.Fatalf("%+v", k)
		}
		text := fmt.Sprintf("%+v", k)
		for _, secret := range []string{"partition-key", "credential", "password", "query", "1234567", "AAE"} {
			if strings.Contains(text, secret) {
				t.Errorf("%q stands in %s", secret, text)
			}
		}
		time.Sleep(5 * time.Minute)
		if k := restarted(t, newTransport(t, b, throttle.Config{Learned: k})); len(k.Hosts) != 0 {
			t.Errorf("what is over is kept: %+v", k)
		}
	})
}

// Knowledge that is old, forged or broken holds nobody up for longer than one
// answer of a server could.
func TestLearnedThatIsNotTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		far, soon := now.Add(1000000*time.Hour), now.Add(time.Hour)
		one := func(l throttle.KnownLimit) []throttle.KnownHost {
			return []throttle.KnownHost{{Host: "a", At: now, Limits: []throttle.KnownLimit{l}}}
		}
		for name, k := range map[string]throttle.Knowledge{
			"another form":       {Version: 2, Salt: make([]byte, 16), Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedPause, Until: soon})},
			"no salt":            {Version: 1, Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedPause, Until: soon})},
			"old":                {Hosts: []throttle.KnownHost{{Host: "a", At: now.Add(-8 * 24 * time.Hour), Limits: []throttle.KnownLimit{{Kind: throttle.LearnedPause, Until: soon}}}}},
			"of the future":      {Hosts: []throttle.KnownHost{{Host: "a", At: soon.Add(time.Minute), Limits: []throttle.KnownLimit{{Kind: throttle.LearnedPause, Until: soon}}}}},
			"no kind":            {Hosts: one(throttle.KnownLimit{Limit: 1, Per: far.Sub(now), Until: soon})},
			"a pause for ever":   {Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedPause, Until: far})},
			"a pause":            {Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedPause, Until: soon})},
			"a pause, long ago":  {Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedPause, Until: now.Add(-far.Sub(now))})},
			"never":              {Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedRate, Limit: 1e-300, Per: 1})},
			"hardly ever":        {Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedRate, Limit: 1, Per: 10000 * time.Hour})},
			"no number":          {Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedRate, Limit: math.NaN(), Per: time.Second})},
			"without end":        {Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedRate, Limit: math.Inf(1), Per: time.Second})},
			"no window":          {Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedRate, Limit: 1, Per: 0})},
			"before its time":    {Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedRate, Limit: 10, Per: -time.Hour})},
			"a window of a year": {Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedRate, Limit: 8, Per: 365 * 24 * time.Hour})},
			"none at a time":     {Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedConcurrency, Source: "answers", Limit: 0.5})},
			"one at a time":      {Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedConcurrency, Source: "answers", Limit: 1})},
			"nothing left":       {Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedQuota, Routes: []string{"GET /x"}, Limit: 10, Until: far})},
			"nothing of a day":   {Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedQuota, Routes: []string{"GET /x"}, Limit: 10, Until: now.Add(24 * time.Hour)})},
			"less than nothing":  {Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedQuota, Routes: []string{"GET /x"}, Limit: 10, Left: -1e9, Until: soon})},
			"another's host":     {Hosts: []throttle.KnownHost{{Host: "b", At: now, Limits: []throttle.KnownLimit{{Kind: throttle.LearnedPause, Until: soon}}}}},
			"too much":           {Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedPause, Name: strings.Repeat("x", 300), Until: soon})},
			"control characters": {Hosts: one(throttle.KnownLimit{Kind: throttle.LearnedPause, Source: "a\x1b[31m", Until: soon})},
		} {
			if k.Version == 0 {
				k.Version, k.Salt = 1, make([]byte, 16)
			}
			tr := newTransport(t, newBase(nil), throttle.Config{Learned: k, MaxWait: time.Hour})
			start := time.Now()
			for range 3 {
				mustGet(t, tr, "http://a/x")
			}
			if d := time.Since(start); d > 5*time.Minute {
				t.Errorf("%s: three requests took %v", name, d)
			}
			restarted(t, tr) // is plain JSON again
		}
		many := throttle.Knowledge{Version: 1, Salt: make([]byte, 16)}
		for i := range 5000 {
			many.Hosts = append(many.Hosts, throttle.KnownHost{Host: fmt.Sprint("h", i%50), At: now, Limits: []throttle.KnownLimit{{Kind: throttle.LearnedPause, Until: soon}}})
		}
		if got := len(newTransport(t, newBase(nil), throttle.Config{Learned: many, MaxKeys: 70}).Learned().Hosts); got != 70 {
			t.Errorf("%d are kept, want MaxKeys", got)
		}
	})
}

// Any bytes that are JSON of the form are harmless.
func FuzzKnowledge(f *testing.F) {
	f.Add([]byte(`{"version":1,"salt":"AAAAAAAAAAAAAAAAAAAAAA==","hosts":[{"host":"a","at":"2000-01-01T00:00:00Z","limits":[{"kind":"pause","until":"2000-01-01T01:00:00Z"},{"kind":"rate","limit":0.01,"per":1000000000},{"kind":"quota","routes":["GET /x"],"limit":9,"until":"2000-01-01T01:00:00Z"},{"kind":"in flight","limit":1,"source":"x"}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var k throttle.Knowledge
		if json.Unmarshal(text, &k) != nil {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			tr := newTransport(t, newBase(nil), throttle.Config{Learned: k, MaxWait: 20 * time.Minute})
			start := time.Now()
			mustGet(t, tr, "http://a/x")
			mustGet(t, tr, "http://a/x")
			if d := time.Since(start); d > 11*time.Minute {
				t.Errorf("two requests took %v", d)
			}
			if _, err := json.Marshal(tr.Learned()); err != nil {
				t.Error(err)
			}
		})
	})
}
