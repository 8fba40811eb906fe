package throttle_test

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// speech is what a server says in one answer.
type speech struct {
	status int // zero: 200
	headers.Signal
	after time.Duration // zero: at once
	err   error         // instead of an answer; nil: none
}

// telling is a Transport whose server answers its requests with the given answers, one
// after the other, and with the last of them from then on. No pause is longer than the
// server asks for.
func telling(t *testing.T, c throttle.Config, answers ...speech) *throttle.Transport {
	var n atomic.Int64
	c.Classify = func(resp *http.Response, _ headers.Signal) headers.Signal {
		i, _ := strconv.Atoi(resp.Header.Get("Turn"))
		return answers[i].Signal
	}
	tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		i := min(int(n.Add(1)), len(answers)) - 1
		if err := cmp.Or(testnet.Wait(r.Context(), answers[i].after), answers[i].err); err != nil {
			return nil, err
		}
		return testnet.Answer(r, cmp.Or(answers[i].status, 200), http.Header{"Turn": {strconv.Itoa(i)}}, nil), nil
	}), c)
	throttle.Jitter(tr, func() float64 { return 0 })
	return tr
}

// stating is what an answer says that states l.
func stating(l headers.Limit) speech {
	return speech{Signal: headers.Signal{Limits: []headers.Limit{l}}}
}

// refusal is what a 429 says that states l; without a name and a source it states nothing.
func refusal(after time.Duration, l headers.Limit) speech {
	s := headers.Signal{Throttled: true, Kind: headers.Quota}
	if after > 0 {
		s.RetryAfter = known(after)
	}
	if l.Source != "" {
		s.Limits = []headers.Limit{l}
	}
	return speech{status: 429, Signal: s}
}

// learned is what Stats says that was learned of the only host, in words.
func learned(t *testing.T, tr *throttle.Transport) (words []string) {
	for _, l := range statsOf(t, tr).Learned {
		words = append(words, l.Why)
	}
	return words
}

// in is a time of day so much from now.
func in(d time.Duration) string { return time.Now().Add(d).Format("15:04:05") }

// left is a limit of which so many are left of ten; without a reset it has none.
func left(n float64, reset time.Duration) headers.Limit {
	return headers.Limit{Quota: known(10.), Remaining: known(n), Reset: headers.Opt[time.Duration]{Value: reset, Known: reset > 0}, ResetMeans: headers.Boundary, Source: "x-ratelimit-remaining"}
}

// The words for limits that a server states.
func TestLearnedInWords(t *testing.T) {
	but := func(n float64, reset time.Duration, change func(l *headers.Limit)) headers.Limit {
		l := left(n, reset)
		change(&l)
		return l
	}
	by := func(source string) headers.Limit { return but(3, 0, func(l *headers.Limit) { l.Source = source }) }
	of := func(size float64) headers.Limit { return but(3, 0, func(l *headers.Limit) { l.Quota = known(size) }) }
	core := func(l *headers.Limit) { l.Name, l.Unit = "core", "tokens" }
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			limit headers.Limit
			want  string
		}{
			{left(3, 0), "3 of 10 left, said by X-RateLimit-Remaining"},
			{but(3, sec, core), `3 of 10 tokens left of "core" until ` + in(sec) + ", said by X-RateLimit-Remaining"},
			{left(3, 30*sec), "3 of 10 left until " + in(30*sec) + ", said by X-RateLimit-Remaining"},
			{but(3, 0, func(l *headers.Limit) { l.Refill = known(2.5) }), "3 of 10 left, 2.5 more per second, said by X-RateLimit-Remaining"},
			{left(3, 12*time.Hour), "3 of 10 left until " + in(12*time.Hour) + ", said by X-RateLimit-Remaining"},
			{left(3, 12*time.Hour+1), "3 of 10 left until " + time.Now().Add(12*time.Hour).Format(time.DateTime) + ", said by X-RateLimit-Remaining"},
			{left(3, 48*time.Hour), "3 of 10 left until " + time.Now().Add(48*time.Hour).Format(time.DateTime) + ", said by X-RateLimit-Remaining"},
			{left(0, 0), "0 of 10 left, said by X-RateLimit-Remaining"},
			{left(5.25, 0), "5.25 of 10 left, said by X-RateLimit-Remaining"},
			{left(0.123456, 0), "0.123 of 10 left, said by X-RateLimit-Remaining"},
			{of(99.99), "3 of 100 left, said by X-RateLimit-Remaining"},
			{of(100.4), "3 of 100 left, said by X-RateLimit-Remaining"},
			{of(123.6), "3 of 124 left, said by X-RateLimit-Remaining"},
			{of(1e6), "3 of 1000000 left, said by X-RateLimit-Remaining"},
			{of(1e15), "3 of 1e+15 left, said by X-RateLimit-Remaining"},
			{by("body"), "3 of 10 left, said by the body"},
			{by("x-ratelimit-limit"), "3 of 10 left, said by X-RateLimit-Limit"},
			{by("ratelimit"), "3 of 10 left, said by RateLimit"},
			{by("retry-after"), "3 of 10 left, said by Retry-After"},
		} {
			tr := telling(t, throttle.Config{}, stating(test.limit))
			mustGet(t, tr, "http://a/x")
			if got := learned(t, tr); len(got) != 1 || got[0] != test.want {
				t.Errorf("got %q\nwant %q", got, test.want)
			}
		}
		tr := telling(t, throttle.Config{}, stating(but(3, sec, func(l *headers.Limit) { l.Name = "core" })))
		mustGet(t, tr, "http://a/x")
		time.Sleep(sec)
		want := `one request asks what is left of "core", after the reset said by X-RateLimit-Remaining`
		if got := learned(t, tr); len(got) != 1 || got[0] != want {
			t.Errorf("after the reset: got %q\nwant %q", got, want)
		}
		tr = telling(t, throttle.Config{}, stating(left(3, sec)))
		mustGet(t, tr, "http://a/x")
		time.Sleep(sec)
		want = `one request asks what is left, after the reset said by X-RateLimit-Remaining`
		if got := learned(t, tr); len(got) != 1 || got[0] != want {
			t.Errorf("after the reset of one without a name: got %q\nwant %q", got, want)
		}
		var some []speech
		for n := 9.; n >= 3; n-- {
			some = append(some, stating(but(n, 0, func(l *headers.Limit) { l.Quota.Known = false })))
		}
		tr = telling(t, throttle.Config{}, some...)
		for range some {
			mustGet(t, tr, "http://a/x")
			time.Sleep(sec)
		}
		if got := learned(t, tr); len(got) != 1 || got[0] != "3 left, said by X-RateLimit-Remaining" {
			t.Errorf("of no size: got %q", got)
		}
		late := stating(left(1, 0))
		late.after = 10 * sec
		tr = telling(t, throttle.Config{}, stating(left(1, 0)), late)
		var all sync.WaitGroup
		for range 4 { // the first answer does not count the others
			all.Go(func() { mustGet(t, tr, "http://a/x") })
		}
		synctest.Wait()
		if l := statsOf(t, tr).Learned; len(l) != 1 || l[0].Why != "0 of 10 left, said by X-RateLimit-Remaining" || l[0].Left != 0 {
			t.Errorf("more is under way than is left: %+v", l)
		}
		all.Wait()
	})
}

// routeOf is the name under which a request is counted.
func routeOf(t *testing.T, method, path string) string {
	t.Helper()
	tr := newTransport(t, newBase(nil), throttle.Config{})
	r := &http.Request{Method: method, URL: &url.URL{Scheme: "http", Host: "a", Path: path}, Header: http.Header{}}
	if _, err := tr.RoundTrip(r); err != nil {
		t.Fatal(err)
	}
	return statsOf(t, tr).Routes[0].Route
}

// Names of kinds of request. Some APIs have a key in the path: what is said about it must
// not tell it.
func TestNamesOfRoutes(t *testing.T) {
	for _, test := range []struct{ method, path, want string }{
		{"GET", "", "GET /"},
		{"GET", "/", "GET /"},
		{"", "/", "GET /"},
		{"PUT", "/", "PUT /"},
		{"GET", "/a", "GET /a"},
		{"GET", "/a/b", "GET /a"},
		{"GET", "a/b", "GET /a"},
		{"GET", "//b", "GET /"},
		{"GET", "/users", "GET /users"},
		{"GET", "/v1", "GET /v1"},
		{"GET", "/v1.2", "GET /v1.2"},
		{"GET", "/search-results", "GET /search-results"},
		{"GET", "/12345", "GET /123..."},
		{"GET", "/1234", "GET /1234"},
		{"GET", "/a{b}", "GET /a%7Bb%7D"},
		{"GET", "/a b", "GET /a%20..."},
		{"GET", "/" + strings.Repeat("x", 32), "GET /" + strings.Repeat("x", 32)},
		{"GET", "/" + strings.Repeat("x", 33), "GET /xxx..."},
		{"GET", "/%", "GET /..."},
		{"GET", "/:", "GET /..."},
		{"POST", "/bot123456:AAEhBOweik6ad9r_QX", "POST /bot..."},
		{"GET", "/0123456789abcdef", "GET /012..."},
		{"GET", "/\x1b[2J", "GET /%1B%5B2..."},
	} {
		if got := routeOf(t, test.method, test.path); got != test.want {
			t.Errorf("%s %q: %s, want %s", test.method, test.path, got, test.want)
		}
	}
	tr := newTransport(t, newBase(nil), throttle.Config{Budgets: map[string]throttle.Budget{"GET a/b": {}}})
	mustGet(t, tr, "http://a/b")
	if got := statsOf(t, tr).Routes[0].Route; got != "GET a/b" {
		t.Errorf("by a pattern: %s", got)
	}
	long := "http://b/" + strings.Repeat("y", 64)
	for _, path := range []string{long, long + "a", long + "b"} {
		mustGet(t, tr, path)
	}
	if _, _, kinds := throttle.LearnedKept(tr, "b"); kinds != 1 {
		t.Errorf("of what is alike up to its 64th letter %d kinds are kept, want 1", kinds)
	}
}

// What a request under way draws on a limit that the server states.
func TestWhatIsDrawnOnAStatedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			cost throttle.Cost
			unit string
			want float64
		}{
			{nil, "", 1}, {nil, requests, 1}, {nil, "tokens", 0}, {throttle.Cost{"tokens": 7}, "tokens", 7}, {throttle.Cost{"tokens": 7}, "", 1},
			{throttle.Cost{requests: 3}, "", 3}, {throttle.Cost{requests: 0}, requests, 0},
		} {
			l := left(20, time.Minute)
			l.Quota, l.Unit = known(100.), test.unit
			late := stating(l)
			late.after = sec
			tr := telling(t, throttle.Config{}, stating(l), late)
			ctx := throttle.WithCost(t.Context(), test.cost)
			get(t, ctx, tr, "http://a/x")
			done := make(chan bool)
			go func() {
				defer close(done)
				get(t, ctx, tr, "http://a/x")
			}()
			synctest.Wait()
			if l := statsOf(t, tr).Learned; len(l) != 1 || 20-l[0].Left != test.want {
				t.Errorf("%v draws on %q: %+v, want %v", test.cost, test.unit, l, test.want)
			}
			<-done
		}
	})
}

// waitOf is what OnWait says of a request that begins to wait, without waiting for its end.
func waitOf(t *testing.T, tr *throttle.Transport, waits chan throttle.Wait, url string) throttle.Wait {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var one sync.WaitGroup
	one.Go(func() { get(t, ctx, tr, url) })
	synctest.Wait()
	defer one.Wait()
	defer cancel()
	select {
	case w := <-waits:
		return w
	default:
		t.Errorf("%s does not wait", url)
		return throttle.Wait{}
	}
}

// The words of what is waited for, of each kind of learned limit, and for how long.
func TestWaitsForWhatWasLearned(t *testing.T) {
	spent := left(0, 30*sec)
	spent.Name = "a"
	hour := left(0, time.Hour)
	hour.Source = "x-ratelimit-reset"
	for _, test := range []struct {
		name   string
		first  speech
		begin  string // of the words
		end    string
		expect time.Duration
	}{
		{"a paused kind", refusal(30*sec, spent), "paused until ", "said by Retry-After, for GET /x only", 30 * sec},
		{"a paused credential", refusal(0, headers.Limit{}), "paused until ", ", a guess after a refusal", -1},
		{"a pause that is shorter than what was asked for", refusal(0, hour), "paused until ", "said by X-RateLimit-Reset, shortened: it asked for longer", 40 * sec},
	} {
		synctest.Test(t, func(t *testing.T) {
			waits := make(chan throttle.Wait, 100)
			tr := telling(t, throttle.Config{MaxPause: 40 * sec, OnWait: func(w throttle.Wait) {
				if !w.Over {
					waits <- w
				}
			}}, test.first, speech{after: sec})
			mustGet(t, tr, "http://a/x")
			w := waitOf(t, tr, waits, "http://a/x")
			if !strings.HasPrefix(w.Why, test.begin) || !strings.HasSuffix(w.Why, test.end) {
				t.Errorf("%s: %q", test.name, w.Why)
			}
			if test.expect >= 0 && w.Expect != test.expect {
				t.Errorf("%s: it expects to wait for %v, want %v", test.name, w.Expect, test.expect)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		waits := make(chan throttle.Wait, 100)
		tr := telling(t, throttle.Config{OnWait: func(w throttle.Wait) {
			if !w.Over {
				waits <- w
			}
		}}, speech{after: sec})
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { mustGet(t, tr, "http://a/x") })
		}
		synctest.Wait()
		if w := waitOf(t, tr, waits, "http://a/x"); !strings.HasPrefix(w.Why, "at most 4 at a time ") {
			t.Errorf("a fresh host: %q", w.Why)
		}
		all.Wait()
	})
}

// knowing is what a run before learned of host a.
func knowing(limits ...throttle.KnownLimit) throttle.Knowledge {
	return throttle.Knowledge{Version: 1, Salt: make([]byte, 16), Hosts: []throttle.KnownHost{{Host: "a", At: time.Now(), Limits: limits}}}
}

// A limit on requests at a time says whether it is one kind's or the host's, and a rate
// whether it is one kind's.
func TestCausesInWords(t *testing.T) {
	atOnce := func(n float64, routes ...string) throttle.KnownLimit {
		return throttle.KnownLimit{Kind: throttle.LearnedConcurrency, Routes: routes, Source: "answers", Limit: n}
	}
	rate := func(routes ...string) throttle.KnownLimit {
		return throttle.KnownLimit{Kind: throttle.LearnedRate, Routes: routes, Unit: requests, Limit: 10, Per: sec, Left: 5}
	}
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			limits []throttle.KnownLimit
			want   string
		}{
			{[]throttle.KnownLimit{atOnce(3, "GET /x"), atOnce(3)}, "at most 3 at a time for GET /x, shown by its answers"},
			{[]throttle.KnownLimit{atOnce(4, "GET /x"), atOnce(3)}, "at most 3 at a time until it has answered more"},
			{[]throttle.KnownLimit{rate()}, "looks like 10/s, bucket of 5, found by its refusals"},
			{[]throttle.KnownLimit{rate("GET /x")}, "looks like 10/s, bucket of 5, found by its refusals, for GET /x only"},
		} {
			tr := telling(t, throttle.Config{Learned: knowing(test.limits...)}, speech{after: sec})
			done := make(chan bool)
			go func() {
				defer close(done)
				mustGet(t, tr, "http://a/x")
			}()
			synctest.Wait()
			if got := learned(t, tr); len(got) != 1 || got[0] != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			<-done
		}
		tr := telling(t, throttle.Config{Learned: knowing(atOnce(9, "GET /x"))}, stating(left(8, time.Minute)), speech{after: sec})
		mustGet(t, tr, "http://a/y") // after which the host is known well
		mustGet(t, tr, "http://a/x")
		if got := learned(t, tr); !slices.Contains(got, "at most 9 at a time for GET /x, shown by its answers") {
			t.Errorf("of a host that is known well: %q", got)
		}
	})
}

// OnLearn names the unit and the limit.
func TestWhatIsLearnedHasAUnit(t *testing.T) {
	core := left(3, 30*sec)
	core.Name, core.Unit = "core", "tokens"
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			says speech
			want throttle.Learned
		}{
			{stating(core), throttle.Learned{Unit: "tokens", Name: "core"}},
			{stating(left(3, 30*sec)), throttle.Learned{Unit: requests}},
			{refusal(30*sec, headers.Limit{}), throttle.Learned{}},
		} {
			var got []throttle.Learned
			tr := telling(t, throttle.Config{OnLearn: func(l throttle.Learned) { got = append(got, l) }}, test.says)
			mustGet(t, tr, "http://a/x")
			if len(got) != 1 || got[0].Unit != test.want.Unit || got[0].Name != test.want.Name {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		}
	})
}
