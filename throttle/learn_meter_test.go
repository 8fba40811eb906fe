package throttle

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/kind"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// What a credential's account waits for, and when those behind others may go.
func TestLearnerAsAMeter(t *testing.T) {
	windowed := func(spent int) *evidence {
		e := believing(10, 9*sec, 0)
		for range spent {
			e.Sent(hourIn)
			e.accepted(hourIn, hourIn)
		}
		return e
	}
	steady := believing(.5, sec, 1)
	steady.Sent(hourIn)
	steady.accepted(hourIn, hourIn)
	open := new(cooldown.Cooldown)
	asked, asking := askedUntil(at0(0)), 11*sec/10
	for _, test := range []struct {
		name string
		c    *cooldown.Cooldown
		e    *evidence
		at   time.Duration
		eta  time.Duration // after 5 others
	}{
		{"nothing learned", nil, nil, 0, 0},
		{"a pause", pausedUntil(at0(3 * sec)), nil, 3 * sec, 3 * sec},
		{"a rate", open, steady, 2 * sec, 12 * sec},
		{"a longer pause", pausedUntil(at0(3 * sec)), steady, 3 * sec, 13 * sec},
		{"a shorter one", pausedUntil(at0(sec)), steady, 2 * sec, 12 * sec},
		{"one asks", asked, steady, asking, -1},
		{"no limit yet", open, new(evidence), 0, 0},
		{"a window with room", open, windowed(4), 0, 0},
	} {
		l := learning1()
		l.cooldown, l.evidence = test.c, test.e
		for what, got := range map[string]instant{"at": l.At(hourIn, 1), "eta": l.ETA(hourIn, 5, 1)} {
			want := test.at
			if what == "eta" {
				want = test.eta
			}
			if want < 0 && got != never || want >= 0 && (got.Until(hourIn)-want).Abs() > time.Millisecond {
				t.Errorf("%s: %s in %v, want %v", test.name, what, got.Until(hourIn), want)
			}
		}
	}
	l := learning1()
	if l.Words(hourIn) != "others are to go first" {
		t.Error(l.Words(hourIn))
	}
	l.evidence = new(evidence)
	if l.Words(hourIn) != "others are to go first" || l.Regain(1) != cooldown.FirstGuess {
		t.Error(l.Words(hourIn))
	}
	if l.evidence = believing(10, sec, 3); l.Words(hourIn) != "looks like 10/s, bucket of 3, found by its refusals" || l.Regain(1) != 100*time.Millisecond {
		t.Error(l.Words(hourIn), l.Regain(1))
	}
	host := l.host
	k := new(endpoint)
	for range 4 { // as many as go at first
		if host.At(hourIn, 1) != hourIn {
			t.Error("a place is left")
		}
		host.Take(hourIn, 1, true)
		k.Take(hourIn, 1, true)
	}
	if host.ETA(hourIn, 5, 1) != never || k.ETA(hourIn, 5, 1) != never {
		t.Error("no place is left")
	}
	if host.At(hourIn, 1) == never || host.At(hourIn, 1) <= hourIn || k.At(hourIn, 1) <= hourIn {
		t.Error("no place is left before those under way do not count any more")
	}
	k.slow.Answered(hourIn, 20*time.Millisecond)
	if k.Regain(1) != 20*time.Millisecond || host.Regain(1) <= k.Regain(1) || host.Regain(1) > sec {
		t.Error("a place comes back with an answer, or within a second if nobody knows how long one takes")
	}
}

// TestWhoIsPacedByWhat: kinds of request that share a limit wait for each other, and nobody
// else waits for it.
func TestWhoIsPacedByWhat(t *testing.T) {
	l := learning1()
	a, b, c := l.endpointOf(kind.Key{Method: "GET", Rest: "a"}, hourIn), l.endpointOf(kind.Key{Method: "GET", Rest: "b"}, hourIn), l.endpointOf(kind.Key{Method: "GET", Rest: "c"}, hourIn)
	g := l.newGroup()
	g.evidence, g.cooldown = believing(.5, sec, 1), pausedUntil(at0(sec))
	a.enterGroup(g)
	b.enterGroup(g)
	waits := func(k *endpoint) (at instant) {
		for _, n := range k.needs(nil, &ask{}) {
			at = max(at, n.Account.At(hourIn, 1))
		}
		return at
	}
	a.Take(hourIn, 1, true)
	g.evidence.accepted(hourIn, hourIn)
	if got := waits(b).Until(hourIn); got < 2*sec {
		t.Errorf("one of them waits for %v after the other was served", got)
	}
	if got := waits(c).Until(hourIn); got != 0 {
		t.Errorf("another kind waits for %v", got)
	}
}

// An endpoint without a pause is not held up, and one whose question was answered is
// asked for again.
func TestEndpointAsAMeter(t *testing.T) {
	l := learning1()
	k := l.endpointOf(kind.Key{Method: "GET", Rest: "x"}, hourIn)
	if k.At(hourIn, 1) != hourIn {
		t.Error("a fresh kind is held up")
	}
	k.cooldown = pausedUntil(at0(sec))
	if got := k.At(hourIn, 1).Until(hourIn); got != sec {
		t.Errorf("paused for %v", got)
	}
	if got := k.ETA(hourIn, 5, 1).Until(hourIn); got != sec {
		t.Errorf("the sixth expects to wait for %v", got)
	}
	later := hourIn.Add(sec)
	m := k.Take(later, 1, true)
	if m&markAsks == 0 || k.At(later, 1) != later.Add(11*sec/10) {
		t.Error("more than one asks")
	}
	k.Return(later, 1, m&^markAsks, later, 0)
	if k.At(later, 1) != later.Add(11*sec/10) {
		t.Error("another one's end is no answer to who asks")
	}
	k.Return(later, 1, m, later, 0)
	if k.At(later, 1) != later {
		t.Error("who asked is gone, and the next one may not")
	}
	l.other = newEndpoint(l, kind.Key{Rest: otherRequests})
	n := 0
	l.each(func(*queue.Account) { n++ })
	if n != 3 {
		t.Errorf("%d accounts of a credential with two kinds, want 3", n)
	}
	if l.waited() {
		t.Error("nobody waits")
	}
	defer waitFor(&k.account)()
	if !l.waited() {
		t.Error("somebody waits for the first of two")
	}
}

// What is learned of an endpoint apart, and of all others, begins anew where it
// proved wrong.
func TestRestartedLearning(t *testing.T) {
	l := learning1()
	k := l.endpointOf(kind.Key{Method: "GET", Rest: "a"}, hourIn)
	own, common := believing(3, sec, 1), believing(5, sec, 1)
	g := l.newGroup()
	g.evidence, l.evidence = own, common
	if l.restart(k); common.believes() || !own.believes() {
		t.Error("of one of the rest, not the common limit is forgotten")
	}
	k.enterGroup(g)
	if l.restart(k); own.believes() {
		t.Error("of a kind apart, its own limit is not forgotten")
	}
}

// A credential's learner is not forgotten while somebody waits for it, nor while it, or what
// those beyond the most share, is paused.
func TestWhoWaitsKeepsTheLearner(t *testing.T) {
	l := learning1()
	m := &learned{by: []*learner{l}}
	if !m.idle(hourIn) {
		t.Error("nothing binds")
	}
	leave := waitFor(&l.account)
	if m.idle(hourIn) || m.drop(hourIn) {
		t.Error("somebody waits")
	}
	leave()
	m.other = learning1()
	if m.other.cooldown = pausedUntil(at0(sec)); m.idle(hourIn) {
		t.Error("the rest is paused")
	}
	if !m.drop(hourIn) {
		t.Error("no room is made")
	}
}
