package throttle

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/concurrency"
	"github.com/weirhttp/weir/throttle/internal/stated"
)

// The words for what was learned.
func TestLearnedInWords(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 5: "5", 5.25: "5.25", 99.99: "100", 100.4: "100", 123.6: "124", 1e6: "1000000", 1e15: "1e+15", 0.123456: "0.123"} {
		if got := amount(x); got != want {
			t.Errorf("%v: %s, want %s", x, got, want)
		}
	}
	zero := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return time.Time{}.Add(d) }
	for d, want := range map[time.Duration]string{sec: "12:00:01", 12 * time.Hour: "00:00:00", 12*time.Hour + 1: "2026-01-16 00:00:00", 48 * time.Hour: "2026-01-17 12:00:00"} {
		if got := clock(at(0), zero, at(d)); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
	for name, want := range map[string]string{"body": "the body", "x-ratelimit-limit": "X-RateLimit-Limit", "ratelimit": "RateLimit", "retry-after": "Retry-After"} {
		if got := fieldName(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	core := heardQuota(3, 10, sec)
	core.ID.Name, core.ID.Unit = "core", "tokens"
	over := hears(newQuota(stated.Key{Name: "core"}), hourIn.Add(-sec), stating(3, 10, sec, headers.Boundary))
	used := heardQuota(3, 10, 0)
	used.Take(hourIn, 5, true)
	for _, test := range []struct {
		q    *quota
		want string
	}{
		{heardQuota(3, 10, 0), "3 of 10 left, said by X-RateLimit-Remaining"},
		{hears(newQuota(stated.Key{}), hourIn, headers.Limit{Remaining: known(3.0)}), "3 left, said by X-RateLimit-Remaining"},
		{core, `3 of 10 tokens left of "core" until 13:00:01, said by X-RateLimit-Remaining`},
		{heardQuota(3, 10, 30*sec), "3 of 10 left until 13:00:30, said by X-RateLimit-Remaining"},
		{hears(newQuota(stated.Key{}), hourIn, headers.Limit{Remaining: known(3.0), Quota: known(10.0), Refill: known(2.5)}), "3 of 10 left, 2.5 more per second, said by X-RateLimit-Remaining"},
		{used, "0 of 10 left, said by X-RateLimit-Remaining"},
		{over, `one request asks what is left of "core", after the reset said by X-RateLimit-Remaining`},
	} {
		if got := test.q.told(hourIn, zero); got != test.want {
			t.Errorf("got %s\nwant %s", got, test.want)
		}
	}
}

// Some APIs have a key in the path. What is said about an endpoint must not tell it.
func TestEndpointsDoNotTellKeys(t *testing.T) {
	for rest, want := range map[string]string{
		"":                          "GET /",
		"v1":                        "GET /v1",
		"search-results":            "GET /search-results",
		"bot123456:AAEhBOweik6ad9r": "GET /bot...",
		"0123456789abcdef":          "GET /012...",
		"\x1b[2J":                   "GET /%1B%5B2...",
		strings.Repeat("n", 33):     "GET /nnn...",
		":":                         "GET /...",
	} {
		if got := (endpointKey{"GET", rest}).String(); got != want {
			t.Errorf("%q: %q, want %q", rest, got, want)
		}
	}
}

// The words of what is waited for, of each kind of learned limit.
func TestWaitsForWhatWasLearned(t *testing.T) {
	l := learning1()
	k := l.endpointOf(endpointKey{"GET", "x"}, hourIn)
	if got := l.host.Words(hourIn); !strings.HasPrefix(got, "at most ") {
		t.Errorf("a fresh host: %s", got)
	}
	k.cooldown = saidUntil(at0(30*sec), time.Hour, "retry-after")
	if got := k.Words(hourIn); !strings.HasPrefix(got, "paused until ") || !strings.HasSuffix(got, "said by Retry-After, for GET /x only") {
		t.Errorf("a paused kind: %s", got)
	}
	if got := k.Words(hourIn.Add(30 * sec)); strings.HasPrefix(got, "paused") {
		t.Errorf("afterwards: %s", got)
	}
	l.cooldown = pausedUntil(at0(30 * sec))
	if got := l.Words(hourIn); !strings.HasSuffix(got, ", a guess after a refusal") {
		t.Errorf("a paused credential: %s", got)
	}
	l.cooldown = saidUntil(at0(time.Hour), 30*sec, "x-ratelimit-reset")
	if got := l.Words(hourIn); !strings.HasSuffix(got, "said by X-RateLimit-Reset, capped") {
		t.Errorf("a capped pause: %s", got)
	}
	if d := l.ETA(hourIn, 5, 1).Until(hourIn); d != 30*sec {
		t.Errorf("paused: %v", d)
	}
	if d := k.ETA(hourIn, 5, 1).Until(hourIn); d != 30*sec {
		t.Errorf("paused: %v", d)
	}
	for x, want := range map[float64]float64{-1: 0, 0: 0, 5: 5} {
		if got := figure(x); got != want {
			t.Errorf("figure %v: %v", x, got)
		}
	}
}

// What was learned is shown field by field.
func TestLearnedLimitsInFields(t *testing.T) {
	zero := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	l := learning1()
	l.terms.zero = zero
	a, b := l.endpointOf(endpointKey{"GET", "a"}, hourIn), l.endpointOf(endpointKey{"GET", "b"}, hourIn)
	q := hears(newQuota(stated.Key{Name: "core", Unit: "tokens", Window: time.Minute}), hourIn, stating(3, 10, 30*sec, headers.Boundary))
	q.terms = l.terms
	l.quotas = append(l.quotas, q)
	l.bind(q, a, 1)
	limit := func(c cause) LearnedLimit {
		x := c.limit(at0(0), l)
		x.Why = ""
		return x
	}
	until := zero.Add(time.Hour + 30*sec)
	want := LearnedLimit{Kind: LearnedQuota, Name: "core", Unit: "tokens", Route: "GET /a", Source: "said by X-RateLimit-Remaining", Limit: 10, Per: time.Minute, Left: 3, Until: until}
	if got := limit(cause{what: causeQuota, quota: q}); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	l.bind(q, b, 1)
	want.Route = ""
	if got := limit(cause{what: causeQuota, quota: q}); got != want {
		t.Errorf("of two kinds: got %+v", got)
	}
	hears(q, hourIn.Add(-time.Hour), stating(3, 10, sec, headers.Boundary))
	want.Source, want.Left, want.Until = "after the reset said by X-RateLimit-Remaining", -1, time.Time{}
	if got := limit(cause{what: causeQuota, quota: q}); got != want {
		t.Errorf("asking: got %+v", got)
	}
	a.cooldown = saidUntil(at0(30*sec), time.Hour, "retry-after")
	want = LearnedLimit{Kind: LearnedPause, Route: "GET /a", Source: "said by Retry-After", Left: -1, Until: until}
	if got := limit(cause{what: causeCooldown, cooldown: a.cooldown, endpoint: a}); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	want.Route = ""
	if got := limit(cause{what: causeCooldown, cooldown: a.cooldown}); got != want {
		t.Errorf("of the credential: %+v", got)
	}
	a.cooldown = saidUntil(at0(0), time.Hour, "retry-after")
	want.Until = time.Time{}
	if got := limit(cause{what: causeCooldown, cooldown: a.cooldown}); got != want {
		t.Errorf("at its end: %+v", got)
	}
	a.evidence = believing(4, sec, 1)
	want = LearnedLimit{Kind: LearnedRate, Unit: requests, Route: "GET /a", Source: "found by its refusals", Limit: 4, Per: sec, Left: -1}
	if got := limit(cause{what: causeRate, found: a.evidence, endpoint: a}); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	want.Route, want.Limit, want.Per = "", 60, time.Minute
	f := believing(60, time.Minute, 0)
	if got := limit(cause{what: causeRate, found: f, endpoint: b}); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	shown := 0
	l.restrictions(at0(0), func(c cause, d time.Duration) { shown++ })
	if shown != 1 { // the quota; a's pause is over, it is not apart
		t.Errorf("%d are shown", shown)
	}
	a.apart, a.cooldown, l.evidence = true, pausedUntil(at0(sec)), f
	b.slow.Lost(hourIn, 0)
	shown = 0
	l.restrictions(at0(0), func(c cause, d time.Duration) { shown++ })
	if shown != 5 {
		t.Errorf("%d are shown, want a quota, two rates, a pause and requests at a time", shown)
	}
	l.terms.pausesOnly = true
	shown = 0
	if l.restrictions(at0(0), func(c cause, d time.Duration) { shown++ }); shown != 0 {
		t.Errorf("%d are shown where only pauses of the credential count", shown)
	}
}

// atMost lets so many go at a time, free any number.
func atMost(n float64) (f concurrency.Limit) {
	f.Recall(hourIn, n, false)
	return f
}

func free() (f concurrency.Limit) {
	f.Stated()
	f.Answered(hourIn, sec)
	return f
}

// A limit on requests at a time says whether it is the endpoint's or the host's.
func TestCausesInWords(t *testing.T) {
	l := learning1()
	k := l.endpointOf(endpointKey{"GET", "x"}, hourIn)
	for _, test := range []struct {
		endpoint, host concurrency.Limit
		want           string
	}{
		{atMost(3), atMost(3), "at most 3 at a time for GET /x, shown by its answers"},
		{atMost(4), atMost(3), "at most 3 at a time until it has answered more"},
		{atMost(9), free(), "at most 9 at a time for GET /x, shown by its answers"},
		{free(), atMost(3), "at most 3 at a time until it has answered more"},
	} {
		k.slow, l.host.slow = test.endpoint, test.host
		if got := (cause{what: causeFlight, endpoint: k}).in(at0(0), l); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
	if got := l.host.Words(hourIn); got != "at most 3 at a time until it has answered more" {
		t.Error(got)
	}
	f := believing(10, sec, 5)
	if got := (cause{what: causeRate, found: f, endpoint: k}).in(at0(0), l); got != "looks like 10/s, bucket of 5, found by its refusals" {
		t.Error(got)
	}
	if k.evidence = f; (cause{what: causeRate, found: f, endpoint: k}).in(at0(0), l) != "looks like 10/s, bucket of 5, found by its refusals, for GET /x only" {
		t.Error("not for the kind only")
	}
	if (cause{}).in(at0(0), l) != "" {
		t.Error("nothing has words")
	}
	q := newQuota(stated.Key{Name: "core", Unit: "tokens"})
	for c, want := range map[cause][2]string{{what: causeQuota, quota: q}: {"tokens", "core"}, {what: causeRate, found: f}: {}, {}: {}} {
		if c.unit() != want[0] || c.name() != want[1] {
			t.Errorf("%v: %q of %q", c.what, c.unit(), c.name())
		}
	}
	if q.ID.Unit = ""; (cause{what: causeQuota, quota: q}).unit() != requests {
		t.Error("a quota without a unit is one of requests")
	}
	q = heardQuota(3, 10, sec)
	if got := q.Words(hourIn.Add(sec)); got != "one request asks what is left, after the reset said by X-RateLimit-Remaining" {
		t.Error(got)
	}
}
