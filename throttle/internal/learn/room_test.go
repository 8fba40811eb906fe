package learn_test

import (
	"math"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/learn"
)

// knowing is a play whose Learner has found the limit, and in which nothing is in use.
func knowing(by limiter, per learn.Instant) *play {
	p := newPlay(by, per, habits[1], 20)
	p.until(zero + max(60*second, 10*per))
	p.idle = 0
	p.until(p.now + 5*per + 10*second)
	return p
}

// TestRoomIsWhatTheServerBears: where the limit is known, as many as Room says pass at
// once, and no more do.
func TestRoomIsWhatTheServerBears(t *testing.T) {
	for name, c := range map[string]struct {
		by   limiter
		per  learn.Instant
		size int
	}{
		"20 per 2 s":                {&sliding{size: 20, per: 2 * second}, 2 * second, 20},
		"30 per 5 s":                {&fixed{size: 30, per: 5 * second}, 5 * second, 30},
		"60 a minute, by the clock": {&fixed{size: 60, per: 60 * second, clock: true}, 60 * second, 60},
		"5/s, bucket of 10":         {&bucket{rate: 5, size: 10, last: zero}, second / 5, 10},
		"40/s, bucket of 1":         {&bucket{rate: 40, size: 1, last: zero}, second / 40, 1},
	} {
		p := knowing(c.by, c.per)
		for _, used := range []int{0, c.size / 4, c.size / 2} {
			for range used {
				p.l.Sent(p.now)
				c.by.take(p.now + trip/2)
				p.l.Accepted(p.now+trip, p.now)
			}
			p.now += 2 * trip
			room, bears := p.l.Room(p.now), 0
			for {
				if ok, _ := c.by.take(p.now + trip/2); !ok {
					break
				}
				bears++
			}
			if room != bears {
				t.Errorf("%s, of which %d are used: room for %d, want %d", name, used, room, bears)
			}
			p.until(p.now + 5*c.per + 10*second)
		}
	}
}

// TestOutlookCountsTheRoomThereIs: those for whom there is room go now, and each more of
// a window waits for as many periods as it takes.
func TestOutlookCountsTheRoomThereIs(t *testing.T) {
	for name, by := range map[string]limiter{
		"sliding": &sliding{size: 20, per: 2 * second}, "from the first request": &fixed{size: 20, per: 2 * second},
		"by the clock": &fixed{size: 20, per: 2 * second, clock: true},
	} {
		p := knowing(by, 2*second)
		if name == "by the clock" {
			p.now += 2*second - p.now%(2*second) // a window has just begun
		}
		for ahead, periods := range map[int64]learn.Instant{0: 0, 1: 0, 19: 0, 20: 1, 39: 1, 40: 2, 59: 2, 60: 3} {
			got := p.l.Outlook(p.now, ahead) - p.now
			if least, most := periods*2*second, periods*2*second+second/2; got < least-trip || got > most {
				t.Errorf("%s: with %d ahead in %v, want about %v", name, ahead, time.Duration(got), time.Duration(least))
			}
		}
	}
}

// TestWhatBecameOfRequestsTakesRoom: what was accepted or lost takes room, what was not
// sent takes none.
func TestWhatBecameOfRequestsTakesRoom(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(l *learn.Learner, now, sent learn.Instant)
		took int
	}{
		"accepted": {func(l *learn.Learner, now, sent learn.Instant) { l.Accepted(now, sent) }, 15},
		"lost":     {func(l *learn.Learner, now, sent learn.Instant) { l.Lost(sent) }, 15},
		"not sent": {func(l *learn.Learner, now, sent learn.Instant) { l.Unsent(sent) }, 0},
	} {
		p := knowing(&sliding{size: 20, per: 2 * second}, 2*second)
		before := p.l.Room(p.now)
		for i := range learn.Instant(15) {
			p.l.Sent(p.now + i*trip/100)
		}
		for i := range learn.Instant(15) {
			c.end(&p.l, p.now+trip, p.now+i*trip/100)
		}
		if took := before - p.l.Room(p.now+2*trip); took != c.took || p.l.UnderWay() != 0 {
			t.Errorf("%s: 15 of %d took room for %d, want %d; %d under way", name, before, took, c.took, p.l.UnderWay())
		}
	}
}

// TestAHintIsBelievedForMaxPause, and in full if it is shorter.
func TestAHintIsBelievedForMaxPause(t *testing.T) {
	for _, most := range []time.Duration{time.Minute, 10 * time.Minute, 2 * time.Hour} {
		for _, wait := range []time.Duration{-time.Second, 0, 30 * time.Second, time.Hour, math.MaxInt64} {
			var l learn.Learner
			l.Sent(zero)
			l.Refused(zero+trip, zero, learn.Refusal{Hint: cooldown.Hint{Wait: wait, Known: true}, MaxPause: most})
			want := zero + trip + learn.Instant(min(max(0, wait), most))
			p := l.Next(zero+trip, 1)
			if wait > 0 && (p.At != want || p.Reason != learn.Asked) || wait <= 0 && p.Reason == learn.Asked {
				t.Errorf("%v, at most %v: %+v, want until %v", wait, most, p, time.Duration(want))
			}
		}
	}
}
