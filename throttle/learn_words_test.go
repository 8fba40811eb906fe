package throttle

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestWhatWasLearnedIsTold(t *testing.T) {
	var told []string
	c := Config{OnLearn: func(l Learned) { told = append(told, l.Why) }}
	learnRun(t, c, func(_ *http.Request, now time.Time) *http.Response {
		return reply(200, "X-RateLimit-Limit", "50", "X-RateLimit-Remaining", "12", "X-RateLimit-Reset", reset(now, time.Minute))
	}, func(t *testing.T, rt *Transport, _ *server) {
		one(t, rt, "http://api.example.com/v1")
		want := "api.example.com: 12 of 50 left until " + time.Now().Add(time.Minute).Format("15:04") // seconds depend on roundings
		if len(told) != 1 || !strings.HasPrefix(told[0], want) || !strings.HasSuffix(told[0], ", said by X-RateLimit-Limit") {
			t.Errorf("told %q, want one that begins with %q", told, want)
		}
		if got := restrictionsOf(rt); !strings.Contains(got, want) {
			t.Errorf("restrictions %q, want %q", got, want)
		}
	})
}

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
	said := func(change func(*quota)) *quota {
		q := heardQuota(3, 10, 0, 0, change)
		q.source = "x-ratelimit-remaining"
		return q
	}
	for _, test := range []struct {
		q    *quota
		want string
	}{
		{said(nil), "3 of 10 left, said by X-RateLimit-Remaining"},
		{said(func(q *quota) { q.size.Known = false }), "3 left, said by X-RateLimit-Remaining"},
		{said(func(q *quota) { q.key.name, q.key.unit = "core", "tokens" }), `3 of 10 tokens left of "core", said by X-RateLimit-Remaining`},
		{said(func(q *quota) { q.reset = known(at0(30 * sec)) }), "3 of 10 left until 13:00:30, said by X-RateLimit-Remaining"},
		{said(func(q *quota) { q.flows, q.refill = true, 2.5 }), "3 of 10 left, 2.5 more per second, said by X-RateLimit-Remaining"},
		{said(func(q *quota) { q.refill = 2.5 }), "3 of 10 left, said by X-RateLimit-Remaining"},
		{said(func(q *quota) { q.out = 5 }), "0 of 10 left, said by X-RateLimit-Remaining"},
		{said(func(q *quota) { q.asking, q.key.name = true, "core" }), `one request asks what is left of "core", after the reset said by X-RateLimit-Remaining`},
	} {
		if got := test.q.told(at0(0), zero); got != test.want {
			t.Errorf("got %s\nwant %s", got, test.want)
		}
	}
}

// Some APIs have a key in the path. What is said about a kind must not tell it.
func TestKindsDoNotTellKeys(t *testing.T) {
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
		if got := (kindKey{"GET", rest}).String(); got != want {
			t.Errorf("%q: %q, want %q", rest, got, want)
		}
	}
}
