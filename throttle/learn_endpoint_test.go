package throttle

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/queue"
	"github.com/weirhttp/weir/throttle/internal/stated"
)

// learning1 is a learner of one credential at one host, without a server.
func learning1() *learner {
	s := &scope{}
	t := &learnTerms{Terms: stated.Terms{MaxPause: 5 * time.Minute}, words: newLearnWords(), jitter: func() float64 { return 0 }}
	return newLearner(t, s, newHostStart(t.words))
}

const hourIn = instant(time.Hour)

// Kinds beyond the bound share one, until an idle one makes room.
func TestEndpointsAreBounded(t *testing.T) {
	l := learning1()
	for i := range maxEndpoints {
		k := l.endpointOf(endpointKey{"GET", fmt.Sprint(i)}, hourIn)
		k.Take(hourIn, 1, true)
		if i != 3 && i != 5 {
			continue
		}
		k.Return(hourIn, 1, 0, hourIn, 0)
	}
	seven := l.endpoints[7]
	if got := l.endpointOf(endpointKey{"GET", "7"}, hourIn); got != seven {
		t.Error("a kind was made twice")
	}
	a, b := l.endpointOf(endpointKey{"GET", "a"}, hourIn.Add(time.Minute)), l.endpointOf(endpointKey{"GET", "b"}, hourIn.Add(time.Minute))
	if a != l.other || b != l.other || len(l.endpoints) != maxEndpoints || a.key.String() != "other requests" {
		t.Errorf("%v and %v beside %d kinds", a.key, b.key, len(l.endpoints))
	}
	later := hourIn.Add(time.Minute + 1)
	for _, name := range []string{"a", "b"} {
		if k := l.endpointOf(endpointKey{"GET", name}, later); k.key != (endpointKey{"GET", name}) || len(l.endpoints) != maxEndpoints {
			t.Errorf("an idle kind did not make room for %s", name)
		}
	}
	if k := l.endpointOf(endpointKey{"GET", "c"}, later); k != l.endpoints[maxEndpoints-2] && k != l.other && k.key.rest != "c" {
		t.Errorf("got %v", k.key)
	}
}

// What a refusal says about when to come back.
func TestHints(t *testing.T) {
	limit := func(name string, left float64, reset time.Duration) headers.Limit {
		l := headers.Limit{Name: name, Remaining: known(left), Source: "x-ratelimit"}
		if reset > 0 {
			l.Reset = known(reset)
		}
		return l
	}
	after := func(d time.Duration, limits ...headers.Limit) headers.Signal {
		return headers.Signal{RetryAfter: known(d), Limits: limits}
	}
	for _, test := range []struct {
		name             string
		s                headers.Signal
		want             cooldown.Hint
		named, explained bool
	}{
		{"nothing", headers.Signal{}, cooldown.Hint{}, false, false},
		{"Retry-After", after(5 * sec), cooldown.Hint{Wait: 5 * sec, Known: true, Source: "Retry-After"}, false, false},
		{"a year", after(9999 * 24 * time.Hour), cooldown.Hint{Wait: stated.MostWindow, Known: true, Source: "Retry-After"}, false, false},
		{"some left", headers.Signal{Limits: []headers.Limit{limit("a", 1, sec)}}, cooldown.Hint{}, false, false},
		{"spent", headers.Signal{Limits: []headers.Limit{limit("", 0, 30*sec)}}, cooldown.Hint{Wait: 30 * sec, Known: true, Source: "x-ratelimit"}, false, true},
		{"spent, named", headers.Signal{Limits: []headers.Limit{limit("a", 0, 30*sec)}}, cooldown.Hint{Wait: 30 * sec, Known: true, Source: "x-ratelimit"}, true, true},
		{"spent, nobody knows until when", headers.Signal{Limits: []headers.Limit{limit("a", 0, 0)}}, cooldown.Hint{}, true, false},
		{"two spent", headers.Signal{Limits: []headers.Limit{limit("", 0, 30*sec), limit("", 0, 40*sec), limit("", 0, 20*sec)}}, cooldown.Hint{Wait: 40 * sec, Known: true, Source: "x-ratelimit"}, false, true},
		{"both say the same", after(30*sec, limit("", 0, 30*sec)), cooldown.Hint{Wait: 30 * sec, Known: true, Source: "Retry-After"}, false, true},
	} {
		h, named, explained := learning1().hintOf(at0(0), nil, test.s)
		if h != test.want || named != test.named || explained != test.explained {
			t.Errorf("%s: %+v, named %t, explained %t", test.name, h, named, explained)
		}
	}
	l := learning1()
	q := l.quotaOf(hourIn, ref(limit("", 0, 30*sec)), nil, nil)
	hears(q, at0(-2*sec), stating(9, 10, 32*sec, headers.Boundary))
	for agree, want := range []bool{1: false, 2: true} {
		if agree == 0 {
			continue
		}
		hears(q, at0(-sec), stating(9-float64(agree), 10, 31*sec, headers.Boundary))
		for wait, near := range map[time.Duration]bool{0: true, 30 * sec: true, 26600 * time.Millisecond: false, 26700 * time.Millisecond: true, 33500 * time.Millisecond: true, 33700 * time.Millisecond: false} {
			s := headers.Signal{Limits: []headers.Limit{limit("", 0, 30*sec)}}
			if wait > 0 {
				s.RetryAfter = known(wait)
			}
			if h, _, _ := l.hintOf(at0(0), nil, s); h.Supported != (want && near) {
				t.Errorf("a reset that was said %d times before, a wait of %v: supported %t", agree, wait, h.Supported)
			}
		}
	}
}

// When a refusal is one for requests at a time.
func TestConcurrencyOrRate(t *testing.T) {
	for _, test := range []struct {
		name   string
		under  int
		lone   bool
		s      headers.Signal
		stated bool
		want   bool
	}{
		{"the server says so", 2, false, headers.Signal{Kind: headers.Concurrency}, false, true},
		{"it says so to the only one", 1, false, headers.Signal{Kind: headers.Concurrency}, false, false},
		{"one that started alone beside others", 2, true, headers.Signal{}, false, true},
		{"one of a burst", 2, false, headers.Signal{}, false, false},
		{"with a wait", 2, true, headers.Signal{RetryAfter: known(sec)}, false, false},
		{"with limits", 2, true, headers.Signal{Limits: []headers.Limit{{}}}, false, false},
		{"of a kind with limits", 2, true, headers.Signal{}, true, false},
		{"overloaded", 2, true, headers.Signal{Kind: headers.Overload}, false, false},
	} {
		l := learning1()
		k := l.endpointOf(endpointKey{"GET", "x"}, hourIn)
		for range test.under {
			k.slow.Start(hourIn)
		}
		g := &ticket{endpoint: k}
		if test.lone {
			g.permit = &placed{Permit: queue.Permit{Needs: []queue.Need{{Account: &k.account, N: 1, Token: markLone}}}}
		}
		if test.stated {
			l.bind(l.quotaOf(hourIn, &headers.Limit{}, k, nil), k, 1)
		}
		if got := l.concurrency(g, test.s); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}

// A learner is idle when forgetting it would lose nothing that binds.
func TestIdleLearners(t *testing.T) {
	now := at0(0)
	for name, test := range map[string]struct {
		change func(l *learner, k *endpoint)
		idle   bool
	}{
		"nothing":             {func(*learner, *endpoint) {}, true},
		"a request under way": {func(_ *learner, k *endpoint) { k.slow.Start(hourIn) }, false},
		"fewer at a time":     {func(_ *learner, k *endpoint) { k.slow.Lost(hourIn.Add(-59*sec), 0) }, false},
		"a minute ago":        {func(_ *learner, k *endpoint) { k.slow.Lost(hourIn.Add(-time.Minute), 0) }, true},
		"a quota in use":      {func(l *learner, _ *endpoint) { l.quotas = append(l.quotas, heardQuota(3, 10, 30*sec)) }, false},
		"a full one":          {func(l *learner, _ *endpoint) { l.quotas = append(l.quotas, heardQuota(10, 10, 30*sec)) }, true},
		"one without a reset": {func(l *learner, _ *endpoint) { l.quotas = append(l.quotas, heardQuota(3, 10, 0)) }, true},
		"one that is over": {func(l *learner, _ *endpoint) {
			l.quotas = append(l.quotas, hears(newQuota(stated.Key{}), now.Add(-sec), stating(3, 10, sec, headers.Boundary)))
		}, true},
		"a pause": {func(_ *learner, k *endpoint) { k.cooldown = pausedUntil(now.Add(sec)) }, false},
	} {
		l := learning1()
		test.change(l, l.endpointOf(endpointKey{"GET", "x"}, hourIn))
		if got := l.idle(now); got != test.idle {
			t.Errorf("%s: idle %t", name, got)
		}
	}
}

// What a request costs in a unit, and whether that is counted at all, is what is made of
// answers; what it draws is reckoned elsewhere.
func TestUnitsOfACost(t *testing.T) {
	for _, test := range []struct {
		c       Cost
		unit    string
		n       float64
		counted bool
	}{{nil, "", 1, true}, {nil, requests, 1, true}, {nil, "tokens", 0, false}, {Cost{"tokens": 7}, "tokens", 7, true}, {Cost{"tokens": 7}, "", 1, true}, {Cost{requests: 3}, "", 3, true}, {Cost{requests: 0}, requests, 0, true}} {
		if n, counted := unitsOf(test.c, test.unit); n != test.n || counted != test.counted {
			t.Errorf("%v of %v: %v, %t", test.unit, test.c, n, counted)
		}
	}
}
