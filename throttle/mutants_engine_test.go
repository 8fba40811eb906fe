package throttle

import (
	"strings"
	"testing"
	"time"
)

// The words of what is waited for, of each kind of learned limit.
func TestWaitsForWhatWasLearned(t *testing.T) {
	l := learning1()
	k := l.kindOf(kindKey{"GET", "x"}, hourIn)
	if got := l.host.Words(hourIn); !strings.HasPrefix(got, "at most ") {
		t.Errorf("a fresh host: %s", got)
	}
	k.hold = &hold{until: at0(30 * sec), source: "retry-after"}
	if got := k.Words(hourIn); !strings.HasPrefix(got, "paused until ") || !strings.HasSuffix(got, "said by Retry-After, for GET /x only") {
		t.Errorf("a paused kind: %s", got)
	}
	if got := k.Words(hourIn.Add(30 * sec)); strings.HasPrefix(got, "paused") {
		t.Errorf("afterwards: %s", got)
	}
	l.hold = &hold{until: at0(30 * sec)}
	if got := l.Words(hourIn); !strings.HasSuffix(got, ", a guess after a refusal") {
		t.Errorf("a paused credential: %s", got)
	}
	l.hold.capped, l.hold.source = true, "x-ratelimit-reset"
	if got := l.Words(hourIn); !strings.HasSuffix(got, "said by X-RateLimit-Reset, capped") {
		t.Errorf("a capped pause: %s", got)
	}
	if d := l.ETA(hourIn, 5, 1).Until(hourIn); d != 30*sec {
		t.Errorf("paused: %v", d)
	}
	if d := k.ETA(hourIn, 5, 1).Until(hourIn); d != 30*sec {
		t.Errorf("paused: %v", d)
	}
	for _, test := range []struct {
		f    finder
		want string
	}{
		{finder{rate: 12.5}, "about 12.5/s, found by its refusals"},
		{finder{rate: 2, windows: windows{stage: sureWindows, size: 60, period: time.Minute}}, "about 60 per 1m0s, found by its refusals"},
	} {
		if got := test.f.words(); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
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
	a, b := l.kindOf(kindKey{"GET", "a"}, hourIn), l.kindOf(kindKey{"GET", "b"}, hourIn)
	q := heardQuota(3, 10, 30*sec, time.Minute, func(q *quota) {
		q.source, q.key.name, q.key.unit, q.terms = "x-ratelimit-remaining", "core", "tokens", l.terms
	})
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
	q.asking = true
	want.Source, want.Left, want.Until = "after the reset said by X-RateLimit-Remaining", -1, time.Time{}
	if got := limit(cause{what: causeQuota, quota: q}); got != want {
		t.Errorf("asking: got %+v", got)
	}
	a.hold = &hold{until: at0(30 * sec), source: "retry-after"}
	want = LearnedLimit{Kind: LearnedPause, Route: "GET /a", Source: "said by Retry-After", Left: -1, Until: until}
	if got := limit(cause{what: causeHold, hold: a.hold, kind: a}); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	want.Route = ""
	if got := limit(cause{what: causeHold, hold: a.hold}); got != want {
		t.Errorf("of the credential: %+v", got)
	}
	a.hold.until = at0(0)
	want.Until = time.Time{}
	if got := limit(cause{what: causeHold, hold: a.hold}); got != want {
		t.Errorf("at its end: %+v", got)
	}
	a.finder = &finder{rate: 4}
	want = LearnedLimit{Kind: LearnedRate, Unit: requests, Route: "GET /a", Source: "found by its refusals", Limit: 4, Per: sec, Left: -1}
	if got := limit(cause{what: causeRate, finder: a.finder, kind: a}); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	want.Route, want.Limit, want.Per = "", 60, time.Minute
	f := &finder{rate: 4, windows: windows{stage: sureWindows, size: 60, period: time.Minute}}
	if got := limit(cause{what: causeRate, finder: f, kind: b}); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	shown := 0
	l.restrictions(at0(0), func(c cause, d time.Duration) { shown++ })
	if shown != 1 { // the quota; a's pause is over, its finder is not apart
		t.Errorf("%d are shown", shown)
	}
	a.apart, a.hold.until, l.finder = true, at0(sec), f
	b.slow.ease = 3
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

// What is learned of a kind apart, and of all others, begins anew where it
// proved wrong.
func TestRestartedLearning(t *testing.T) {
	l := learning1()
	k := l.kindOf(kindKey{"GET", "a"}, hourIn)
	for range 3 {
		l.Take(hourIn, 1, true)
	}
	l.accept(k, hourIn, hourIn)
	if l.flow.accepted != 1 || l.flow.started != 3 || l.flow.out != 3 {
		t.Errorf("%+v", l.flow)
	}
	l.Return(hourIn, 1, 0, hourIn, 0)
	l.restart(k)
	if l.flow != (flow{out: 2}) {
		t.Errorf("%+v", l.flow)
	}
	own, common := &finder{rate: 3}, &finder{rate: 5}
	k.finder, l.finder = own, common
	l.restart(k)
	if l.finderOf(k) != common || common.rate != 0 || own.rate != 3 {
		t.Errorf("the common rate %v, its own %v", common.rate, own.rate)
	}
	k.apart = true
	l.restart(k)
	if l.finderOf(k) != own || own.rate != 0 {
		t.Errorf("its own %v", own.rate)
	}
}
