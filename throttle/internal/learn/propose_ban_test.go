package learn

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestBansAreLearnt: of a limiter that shuts out who asks for more, nothing but its
// refusals tells. Its ban is found out and waited for, and then hardly anything is refused.
// Where a ban is longer than the window and each refusal begins it anew, that often fails:
// then a slow rate explains as much, and a tenth is served.
func TestBansAreLearnt(t *testing.T) {
	for _, c := range []struct {
		size     float64
		per, ban Instant
		again    bool
		named    int     // of 8, at least
		served   float64 // of the limit, at least
	}{{20, 2 * second, 2 * second, true, 7, .25}, {20, 2 * second, 5 * second, true, 2, .08}, {20, 2 * second, 5 * second, false, 7, .25}, {50, 5 * second, 10 * second, false, 6, .25}} {
		named, lasts := 0, 0
		for seed := range uint64(8) {
			g := &game{r: rand.New(rand.NewPCG(seed, 3)), size: c.size, trip: Instant(30 * time.Millisecond), callers: 50,
				limit: shape{family: windowFirst, per: c.per, ban: c.ban, again: c.again}}
			g.play(zero + 120*second)
			if strings.Contains(g.l.Words(), "shuts out") {
				named++
			}
			before := g.refused
			g.play(zero + 240*second)
			lasts += g.refused - before
			if n, want := float64(g.since(zero+120*second))/120, c.size/(float64(c.per)/1e9); n < want*c.served {
				t.Errorf("%v per %v, ban %v, again %t, seed %d: %.1f/s are served of %.1f/s", c.size, span(c.per), span(c.ban), c.again, seed, n, want)
			}
		}
		if named < c.named || lasts > 8*30 {
			t.Errorf("%v per %v, ban %v, again %t: named %d of 8, want %d; %d refused in the second two minutes, want at most 30 a run", c.size, span(c.per), span(c.ban), c.again, named, c.named, lasts)
		}
		t.Logf("%v per %v, ban %v, again %t: named %d of 8, %d refused in the second two minutes", c.size, span(c.per), span(c.ban), c.again, named, lasts)
	}
}

// TestWindowsAreNotFarLongerThanTheirBans: with a ban, windows of usual lengths are proposed
// that end soon after it. Longer ones refuse on without it. None is proposed twice.
func TestWindowsAreNotFarLongerThanTheirBans(t *testing.T) {
	for _, ban := range []Instant{second, 10 * second, 30 * second, 60 * second} {
		var b bank
		seen := make(map[shape]bool)
		b.withBan(ban, false, nil, func(c candidate) {
			if c.ban != ban || c.family != windowFirst && c.family != slidingLog || c.per >= 4*ban || seen[c.shape] {
				t.Errorf("with a ban of %v, twice is %t: %v", span(ban), seen[c.shape], &c)
			}
			seen[c.shape] = true
		})
		if !seen[shape{family: windowFirst, per: ban, ban: ban}] || !seen[shape{family: slidingLog, per: ban, ban: ban}] {
			t.Errorf("no window of %v with a ban as long", span(ban))
		}
	}
}

// TestRowsSayHowLongABanIs: it is longer than the gaps in which it held, and no longer
// than the one after which it did not.
func TestRowsSayHowLongABanIs(t *testing.T) {
	b := &bank{record: record{log: []entry{
		{at: zero, last: zero, taken: 5},
		{at: zero + second, last: zero + second, refused: 3, epoch: 1},
		{at: zero + 2*second, last: zero + 2*second, refused: 1, epoch: 2},
		{at: zero + 5*second, last: zero + 5*second, refused: 1, epoch: 3},
		{at: zero + 9*second, last: zero + 9*second, taken: 1},
	}}}
	b.rows()
	if want := [2]spread{{4 * second, 8 * second, 1, false}, {3 * second, 4 * second, 1, false}}; b.shut != want {
		t.Errorf("bans are %v, want %v", b.shut, want)
	}
	b.shut[0].within(6*second, 7*second, true)
	if want := (spread{6 * second, 7 * second, 2, false}); b.shut[0] != want {
		t.Errorf("narrowed to %v, want %v", b.shut[0], want)
	}
	b.shut[0].within(second, 2*second, true)
	if want := (spread{second, 2 * second, 1, true}); b.shut[0] != want {
		t.Errorf("what contradicts it leaves %v, want %v", b.shut[0], want)
	}
}

// shutOut has a learner send to a server that refuses all for that long, and tells it of the
// first acceptance after that as the owner does. Five are served before. It returns whether the
// learner was unsure.
func shutOut(l *Learner, now, long Instant) (end Instant, unsure bool) {
	for range 5 {
		l.Sent(now)
		l.Accepted(now+trip, now)
		now += 2 * trip
	}
	for begin := now; ; now = max(now+trip, l.Next(now, 5).At) {
		l.Sent(now)
		if now-begin >= long {
			break
		}
		l.Refused(now+trip, now, Refusal{})
	}
	l.Accepted(now+trip, now)
	if unsure = l.Unsure(); unsure {
		l.Reopened(now+trip, now)
	}
	return now + 10*second, unsure
}

// bans is the weight of all candidates with a ban of that length, within an eighth.
func (l *Learner) bans(long Instant) (w float64) {
	for _, c := range l.mind.bank.of {
		if off := c.ban - long; max(off, -off) < long/8 {
			w += c.weight
		}
	}
	return w
}

// TestTwoLongRowsThatAgreeAreABan: one may be an outage, and two of different lengths, too.
func TestTwoLongRowsThatAgreeAreABan(t *testing.T) {
	for _, c := range []struct {
		rows []Instant
		ban  bool
	}{
		{[]Instant{30 * second}, false},
		{[]Instant{30 * second, 30 * second}, true},
		{[]Instant{20 * second, 60 * second}, false},
		{[]Instant{60 * second, 60 * second}, true},
		{[]Instant{30 * second, 30 * second, 30 * second}, true},
		{[]Instant{60 * second, 60 * second, 200 * second}, false},
	} {
		var l Learner
		now, unsure := zero, false
		for _, long := range c.rows {
			now, unsure = shutOut(&l, now, long)
		}
		last := c.rows[len(c.rows)-1]
		if w := l.bans(c.rows[0]); w >= .5 != c.ban || unsure == c.ban {
			t.Errorf("after %v, bans of the length of the first have the weight %.2f, and it is unsure: %t; is it a ban of %v? want %t", c.rows, w, unsure, span(last), c.ban)
		}
	}
}

// TestAHintNamesABan: a server that says for how long it shuts out has to be exceeded once.
func TestAHintNamesABan(t *testing.T) {
	var l Learner
	now := zero
	for range 2 {
		for range 5 {
			l.Sent(now)
			l.Accepted(now+trip, now)
			now += 2 * trip
		}
		l.Sent(now)
		l.Refused(now+trip, now, waits(30*time.Second))
		now += trip + 30*second
	}
	if w := l.bans(30 * second); w < .1 {
		t.Errorf("bans of 30s have the weight %.2f, want some", w)
	}
}
