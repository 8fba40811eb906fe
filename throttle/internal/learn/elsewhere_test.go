package learn

import (
	"math"
	"testing"
	"time"
)

// Who only hears of what another one sends finds the limit that this one finds, and
// takes as much of it for used.
func TestWhatOthersSendTeachesAsMuch(t *testing.T) {
	const size, per = 20, 10 * second
	for _, hint := range []time.Duration{-1, 4 * time.Second} {
		var own, hears Learner
		hears.Sent(zero - second)
		hears.Accepted(zero-second+trip, zero-second) // it knows how long answers take
		used, window := 0, Instant(0)
		for now := zero; now < zero+12*per; {
			if at := own.Next(now, 4).At; at > now {
				now = min(at, now+second)
				continue
			}
			own.Sent(now)
			hears.Elsewhere(now, 1)
			if w := now / per; w != window {
				window, used = w, 0
			}
			if used++; used <= size {
				own.Accepted(now+trip, now)
				hears.Heard(now + 2*trip)
			} else {
				a := Refusal{MaxPause: time.Minute}
				if hint >= 0 {
					a = waits(hint)
				}
				own.Refused(now+trip, now, a)
				hears.ElsewhereRefused(now+trip, 1, hint, time.Minute)
			}
			now += 2 * trip
		}
		a, known := own.Leader()
		if b, heard := hears.Leader(); !known || !heard || a != b {
			t.Errorf("hint %v: %q where it was sent, %q where it was heard of", hint, own.Words(), hears.Words())
		}
		if now := zero + 13*per; own.Next(now, 1).At > now || own.Room(now) != hears.Room(now) {
			t.Errorf("hint %v: room for %d where it was sent, for %d where it was heard of", hint, own.Room(now), hears.Room(now))
		}
	}
}

// A refusal that others met is evidence, and so is for how long it asked.
func TestRefusalsOfOthersAreHeeded(t *testing.T) {
	var l Learner
	now := zero
	for range 20 {
		l.Elsewhere(now, 1)
		now += trip
	}
	l.Heard(now)
	l.ElsewhereRefused(now, 2, 7*time.Second, time.Minute)
	if p := l.Next(now, 1); !l.Believes() || p.At != now+7*second || l.Room(now) != 0 {
		t.Errorf("believes %v, the next in %v, room for %d", l.Believes(), time.Duration(p.At-now), l.Room(now))
	}
	if l.Next(now+5*second, 1); l.UnderWay() != 0 {
		t.Errorf("%d are taken to be under way", l.UnderWay())
	}
}

// What others were refused is heard of only when they may send again, if nobody asked
// meanwhile. It was what they had sent before, and their wait is over.
func TestRefusalsThatAreHeardOfLateAreOld(t *testing.T) {
	const size, wait = 20, 10 * time.Second
	var l Learner
	now := zero
	l.Sent(now)
	l.Accepted(now+trip, now)
	for range size + 4 {
		now += trip / 10
		l.Elsewhere(now, 1)
		l.Heard(now)
	}
	l.Sent(now)
	l.Refused(now+trip, now, waits(wait))
	now += trip + Instant(wait) + trip/2
	l.Elsewhere(now, 1)
	l.ElsewhereRefused(now, 5, wait, time.Minute)
	l.Heard(now)
	if n := l.UnderWay(); n != 1 {
		t.Errorf("%d under way, want the one that was just sent", n)
	}
	if x, ok := l.Leader(); !ok || x.Units < size-2 {
		t.Errorf("of %d it believes in %+v", size, x)
	}
	if p := l.Next(now+2*trip, 1); p.At > now+second {
		t.Errorf("the next goes in %v", time.Duration(p.At-now))
	}
}

// A request of others that was refused, but not because of a limit, is as if it had not been sent.
func TestWhatOthersWereSparedCountsNot(t *testing.T) {
	for _, thinks := range []bool{false, true} {
		var l Learner
		l.ElsewhereUnsent() // nothing is known of others
		if thinks {
			l.think(zero)
		}
		l.Elsewhere(zero, 3)
		l.ElsewhereUnsent()
		if n := l.UnderWay(); n != 2 {
			t.Errorf("thinks %v: %d under way, want 2", thinks, n)
		}
		l.Heard(zero + 10*second)
		units := 0.0
		for _, e := range l.think(zero + 10*second).bank.log {
			units += e.units(true)
		}
		if l.ElsewhereUnsent(); units != 2 || l.UnderWay() != 0 {
			t.Errorf("thinks %v: %v units are counted, %d under way", thinks, units, l.UnderWay())
		}
	}
}

// What others have sent is under way until it was heard, a round trip later, that it was
// not refused; if nothing is heard any more, for two seconds.
func TestWhatOthersSendIsUnderWayForAWhile(t *testing.T) {
	for _, heard := range []bool{true, false} {
		var l Learner
		now := zero
		l.Sent(now)
		l.Accepted(now+trip, now)
		now += second
		l.Elsewhere(now, 3)
		if at := l.Lands(); at <= now || at > now+3*trip {
			t.Errorf("to be asked again in %v", time.Duration(at-now))
		}
		l.Heard(now + trip/2)
		if n := l.UnderWay(); n != 3 {
			t.Errorf("%d under way before an answer can have come", n)
		}
		now += 3 * trip
		if heard {
			l.Heard(now)
		} else if l.Next(now, 1); l.UnderWay() == 3 {
			now += keptFor
			l.Next(now, 1)
		}
		if n := l.UnderWay(); n != 0 || l.Lands() != never {
			t.Errorf("heard %v: %d under way", heard, n)
		}
	}
}

// What others are taken to have sent takes room, and bears out no limit.
func TestWhatIsSupposedIsNoEvidence(t *testing.T) {
	const size = 20
	var l Learner
	now := zero
	for i := range size + 1 {
		l.Sent(now)
		if i < size {
			l.Accepted(now+trip, now)
		} else {
			l.Refused(now+trip, now, waits(10*time.Second))
		}
		now += 2 * trip
	}
	now += 30 * second
	believed, room, busy := l.Words(), l.Room(now), l.UnderWay()
	for range 10 {
		l.Supposed(now, size/2)
		now += trip
	}
	if words, left := l.Words(), l.Room(now); words != believed || left >= room || l.UnderWay() != busy {
		t.Errorf("%q and room for %d, then %q and %d; %d under way", believed, room, words, left, l.UnderWay())
	}
}

// A refusal that only requests of others can have caused, as they were under way, speaks
// against a limit on requests at a time, the more the later it is heard of them. One that
// own requests explain does not.
func TestWhatIsHeardLateIsHardlyUnderWay(t *testing.T) {
	against := func(busy, theirs int, late float64) float64 {
		var b bank
		b.sent(zero, 1, busy, theirs)
		b.refuses(zero+trip, zero, -1, 1)
		var p replay
		p.run(&shape{family: atOnce, per: trip}, &b.record, timing{work: 1, lag: late})
		against, _ := p.penalty(1)
		return against
	}
	if got := against(1, 0, 4); got != 0 {
		t.Errorf("%v speaks against what an own request explains", got)
	}
	if got := against(2, 1, 4); got != 0 {
		t.Errorf("%v speaks against what one own request of two explains", got)
	}
	if now, soon, late := against(1, 1, 0), against(1, 1, 1), against(1, 1, 4); now != 0 || soon <= 0 || late <= soon {
		t.Errorf("%v speaks against what others explain, %v if it is heard a trip late, %v after four", now, soon, late)
	}
}

// As many may be sent as by half of the weight of all candidates, also of those that have no
// room.
func TestRoomIsThatOfAllCandidates(t *testing.T) {
	for weight, want := range map[float64]int{.2: 20, .4: 20, .6: 0, .9: 0} {
		m := &mind{allow: math.Inf(1), refusing: true}
		tenth := shape{family: bucket, per: second / 10}
		full := state{start: zero, level: 20}
		m.bank.of = []candidate{
			{shape: tenth, state: full, size: 20, weight: weight},
			{shape: tenth, state: full, size: 40, weight: 1 - weight},
		}
		l := Learner{mind: m}
		if got := l.Room(zero); got != want {
			t.Errorf("one that is full weighs %v: room for %d, want %d", weight, got, want)
		}
		if got := l.Hope(zero); got != 20 {
			t.Errorf("one that is full weighs %v: room for %d if there is any, want 20", weight, got)
		}
	}
}

// However much others send, little is kept of it.
func TestLittleIsKeptOfOthers(t *testing.T) {
	var l Learner
	for i := range Instant(1000) {
		l.Elsewhere(zero+i, 1<<30)
		l.ElsewhereRefused(zero+i, 1, time.Hour, time.Minute)
	}
	if n := len(l.away.batches); n > mostBatches || cap(l.away.batches) > 2*mostBatches {
		t.Errorf("%d batches are kept, with a capacity of %d; want at most %d and twice that", n, cap(l.away.batches), mostBatches)
	}
	if l.Next(zero+3*second, 1); l.UnderWay() < 0 {
		t.Errorf("%d under way", l.UnderWay())
	}
}

// If it is planned to find out whether more is accepted, there is hope for as much as there is room
// for: that plan holds until something happens, and who waits for others to use the room lets
// nothing happen.
func TestThereIsHopeWhileMoreIsTried(t *testing.T) {
	var l Learner
	now := zero
	for range 40 { // a log of 10 in 10 s
		for range 10 {
			l.Sent(now)
			l.Accepted(now+second/10, now)
			now += second / 10
		}
		l.Sent(now)
		l.Refused(now+second/10, now, Refusal{})
		now += 10 * second
	}
	for range 10 {
		l.Sent(now)
		l.Accepted(now+second/10, now)
		now += second / 10
	}
	l.mind.plan = Plan{At: now, Reason: Found, p: 1}
	if got := l.Room(now + 10*second); got != 0 {
		t.Errorf("there is room for %d in all, want 0: one process tries", got)
	}
	if got := l.Hope(now); got != 0 {
		t.Errorf("a window that is full: hope for %d", got)
	}
	if got := l.Hope(now + 10*second); got < 5 || got > 10 {
		t.Errorf("an empty window of 10: hope for %d", got)
	}
}
