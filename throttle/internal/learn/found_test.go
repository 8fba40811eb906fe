package learn_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/learn"
)

const (
	second = learn.Instant(time.Second)
	zero   = 1000 * second
	trip   = second / 50
	never  = learn.Instant(math.MaxInt64)
)

// A limiter is a server's, written apart from the model that learns of it.
type limiter interface {
	// take reports whether one more passes, and if not, after how long it would.
	take(now learn.Instant) (ok bool, wait learn.Instant)
}

// sliding lets size through in any window.
type sliding struct {
	size int
	per  learn.Instant
	log  []learn.Instant
}

func (s *sliding) take(now learn.Instant) (bool, learn.Instant) {
	for len(s.log) > 0 && s.log[0] <= now-s.per {
		s.log = s.log[1:]
	}
	if len(s.log) == s.size {
		return false, s.log[0] + s.per - now
	}
	s.log = append(s.log, now)
	return true, 0
}

// fixed lets size through in each window, which begins with a request or by the clock.
type fixed struct {
	size, used int
	per        learn.Instant
	clock      bool
	ends       learn.Instant
}

func (f *fixed) take(now learn.Instant) (bool, learn.Instant) {
	if now >= f.ends {
		f.used, f.ends = 0, now+f.per
		if f.clock {
			f.ends = now - now%f.per + f.per
		}
	}
	if f.used == f.size {
		return false, f.ends - now
	}
	f.used++
	return true, 0
}

// bucket holds size units and gets rate a second.
type bucket struct {
	rate, size, used float64
	last             learn.Instant
}

func (b *bucket) take(now learn.Instant) (bool, learn.Instant) {
	b.used, b.last = max(0, b.used-float64(now-b.last)/1e9*b.rate), now
	if b.used > b.size-1+1e-9 {
		return false, learn.Instant((b.used - b.size + 1) / b.rate * 1e9)
	}
	b.used++
	return true, 0
}

// A habit is how a server says how long to wait.
type habit struct {
	name string
	says func(wait, per learn.Instant) time.Duration // negative: nothing
}

var habits = []habit{
	{"nothing", func(_, _ learn.Instant) time.Duration { return -1 }},
	{"exactly", func(wait, _ learn.Instant) time.Duration { return time.Duration(wait) }},
	{"rounded up", func(wait, _ learn.Instant) time.Duration { return time.Duration((wait + second - 1) / second * second) }},
	{"rounded down", func(wait, _ learn.Instant) time.Duration { return time.Duration(wait / second * second) }},
	{"a second", func(_, _ learn.Instant) time.Duration { return time.Second }},
	{"the period", func(_, per learn.Instant) time.Duration { return time.Duration(per) }},
	{"two thirds", func(wait, _ learn.Instant) time.Duration { return time.Duration(wait * 2 / 3) }},
}

// A play is callers who send to a limiter as soon as a Learner lets them.
type play struct {
	l       learn.Learner
	by      limiter
	per     learn.Instant
	says    func(wait, per learn.Instant) time.Duration
	work    learn.Instant // that a request takes, beside the trip
	idle    int
	now     learn.Instant
	under   []answer
	served  int
	refused int
}

type answer struct {
	at, sent learn.Instant
	ok       bool
	wait     learn.Instant
}

func newPlay(by limiter, per learn.Instant, h habit, callers int) *play {
	return &play{by: by, per: per, says: h.says, idle: callers, now: zero}
}

// until plays on until then, and returns how many were served and refused meanwhile.
func (p *play) until(end learn.Instant) (served, refused int) {
	served, refused = p.served, p.refused
	for p.now < end {
		at := never
		if p.idle > 0 {
			at = p.l.Next(p.now, p.idle).At
		}
		switch {
		case at <= p.now:
			p.l.Sent(p.now)
			ok, wait := p.by.take(p.now + trip/2)
			x := answer{p.now + trip, p.now, ok, wait}
			if ok {
				x.at += p.work
			}
			i, _ := slices.BinarySearchFunc(p.under, x.at+1, func(y answer, at learn.Instant) int { return cmp.Compare(y.at, at) })
			p.under = slices.Insert(p.under, i, x)
			p.idle--
		case len(p.under) > 0 && p.under[0].at <= min(at, end):
			p.hear()
		default:
			p.now = min(at, end)
		}
	}
	return p.served - served, p.refused - refused
}

func (p *play) hear() {
	x := p.under[0]
	p.under = p.under[1:]
	p.now = max(p.now, x.at)
	p.idle++
	var a learn.Refusal
	if x.ok {
		p.served++
		p.l.Accepted(p.now, x.sent)
		return
	}
	p.refused++
	if d := p.says(x.wait, p.per); d >= 0 {
		a.Hint = cooldown.Hint{Wait: d, Known: true}
	}
	p.l.Refused(p.now, x.sent, a)
}

// TestLimitsAreFound: whatever a server says of waits, its limit is found from what it
// refuses. From then on nearly all that it bears is sent, and hardly anything is refused.
func TestLimitsAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		by    func() limiter
		per   learn.Instant
		rate  float64
		want  learn.Limit
		least float64 // of what it bears is served
	}{
		{"20 per 2 s, sliding", func() limiter { return &sliding{size: 20, per: 2 * second} }, 2 * second, 10, learn.Limit{Units: 20, Per: 2 * time.Second}, .95},
		{"100 per 10 s, sliding", func() limiter { return &sliding{size: 100, per: 10 * second} }, 10 * second, 10, learn.Limit{Units: 100, Per: 10 * time.Second}, .95},
		{"30 per 5 s from the first request", func() limiter { return &fixed{size: 30, per: 5 * second} }, 5 * second, 6, learn.Limit{Units: 30, Per: 5 * time.Second}, .95},
		{"60 a minute by the clock", func() limiter { return &fixed{size: 60, per: 60 * second, clock: true} }, 60 * second, 1, learn.Limit{Units: 60, Per: time.Minute}, .95},
		{"5/s, bucket of 10", func() limiter { return &bucket{rate: 5, size: 10, last: zero} }, second / 5, 5, learn.Limit{Units: 5, Per: time.Second, Burst: 10}, .95},
		{"100/s, bucket of 50", func() limiter { return &bucket{rate: 100, size: 50, last: zero} }, second / 100, 100, learn.Limit{Units: 100, Per: time.Second, Burst: 50}, .95},
		{"7/s, bucket of 1", func() limiter { return &bucket{rate: 7, size: 1, last: zero} }, second / 7, 7, learn.Limit{}, .7},
	} {
		taken, others := "", 0
		for i := range 3 * len(habits) {
			h := habits[i/3]
			p := newPlay(c.by(), c.per, h, 38+2*(i%3))
			long := max(60*second, 10*c.per)
			_, refused := p.until(zero + long)
			if refused > 120 {
				t.Errorf("%s, says %s: %d refused before it is known", c.name, h.name, refused)
			}
			most := c.rate * float64(long) / float64(second)
			served, refused := p.until(zero + 2*long)
			if float64(served) < c.least*most || refused > served/10 {
				t.Errorf("%s, says %s: %d of %.0f are served and %d refused once it is known", c.name, h.name, served, most, refused)
			}
			if x, _ := p.l.Leader(); x != c.want && c.want.Units > 0 {
				taken, others = p.l.Words(), others+1
			}
		}
		if others > 3 {
			t.Errorf("%s: taken %d times for other limits, such as %s", c.name, others, taken)
		}
	}
}

// TestLimitsOfOddNumbersAreFound: a limit that few people would write is found as well,
// if the server says how long to wait. Half may be taken for others that explain as much.
func TestLimitsOfOddNumbersAreFound(t *testing.T) {
	for _, c := range []struct {
		name string
		by   func() limiter
		per  learn.Instant
		rate float64
		want learn.Limit
	}{
		{"40 per 7 s, sliding", func() limiter { return &sliding{size: 40, per: 7 * second} }, 7 * second, 40. / 7, learn.Limit{Units: 40, Per: 7 * time.Second}},
		{"90 per 23 s from the first request", func() limiter { return &fixed{size: 90, per: 23 * second} }, 23 * second, 90. / 23, learn.Limit{Units: 90, Per: 23 * time.Second}},
		{"33 per 4 s by the clock", func() limiter { return &fixed{size: 33, per: 4 * second, clock: true} }, 4 * second, 33. / 4, learn.Limit{Units: 33, Per: 4 * time.Second}},
		{"3.7/s, bucket of 20", func() limiter { return &bucket{rate: 3.7, size: 20, last: zero} }, second * 10 / 37, 3.7, learn.Limit{Units: 3.7, Per: time.Second, Burst: 20}},
		{"13/s, bucket of 30", func() limiter { return &bucket{rate: 13, size: 30, last: zero} }, second / 13, 13, learn.Limit{Units: 13, Per: time.Second, Burst: 30}},
		{"45 a minute, bucket of 5", func() limiter { return &bucket{rate: .75, size: 5, last: zero} }, second * 4 / 3, .75, learn.Limit{Units: .75, Per: time.Second, Burst: 5}},
	} {
		for _, h := range habits[1:3] {
			taken, others, served, refused := "", 0, 0, 0
			for callers := 7; callers < 13; callers++ {
				p := newPlay(c.by(), c.per, h, callers)
				p.until(zero + 200*second)
				s, r := p.until(zero + 400*second)
				served, refused = served+s, refused+r
				x, _ := p.l.Leader()
				if off := math.Abs(x.Units - c.want.Units); off > c.want.Units/1000 || x.Per != c.want.Per || x.Burst != c.want.Burst {
					taken, others = p.l.Words(), others+1
				}
			}
			if most := 6 * 200 * c.rate; float64(served) < .9*most || refused > served/10 {
				t.Errorf("%s, says %s: %d of %.0f are served and %d refused once it is known", c.name, h.name, served, most, refused)
			}
			if others > 3 {
				t.Errorf("%s, says %s: taken %d times for other limits, such as %s", c.name, h.name, others, taken)
			}
		}
	}
}

// crowded lets size through at a time, each of which takes so long.
type crowded struct {
	size int
	work learn.Instant
	ends []learn.Instant
}

func (c *crowded) take(now learn.Instant) (bool, learn.Instant) {
	for len(c.ends) > 0 && c.ends[0] <= now {
		c.ends = c.ends[1:]
	}
	if len(c.ends) == c.size {
		return false, c.ends[0] - now
	}
	c.ends = append(c.ends, now+c.work)
	return true, 0
}

// TestRefusalsAreToldToBeOfACrowd: a limit on requests at a time is known by its refusals,
// and neither a limit per time nor a server that never refused is taken for one.
func TestRefusalsAreToldToBeOfACrowd(t *testing.T) {
	var l learn.Learner
	if l.Crowded() {
		t.Error("a server that never refused has a crowd")
	}
	const work = second / 5
	at := newPlay(&crowded{size: 4, work: work}, work, habits[4], 40)
	at.work = work
	if at.until(zero + 60*second); !at.l.Crowded() {
		t.Errorf("not known: %v", at.l.Likeliest())
	}
	per := newPlay(&fixed{size: 20, per: 5 * second}, 5*second, habits[4], 40)
	if per.until(zero + 60*second); per.l.Crowded() {
		t.Errorf("taken for a crowd: %v", per.l.Likeliest())
	}
}

// TestRequestsAtATimeAreFound: of a server that works on so many at a time nothing but
// that is found, whether it says a second or nothing.
func TestRequestsAtATimeAreFound(t *testing.T) {
	for _, h := range []habit{habits[0], habits[4]} {
		for _, size := range []int{2, 3, 4, 5, 8, 10} {
			const work = second / 5
			p := newPlay(&crowded{size: size, work: work}, work, h, 40)
			p.work = work
			p.until(zero + 60*second)
			served, refused := p.until(zero + 120*second)
			if most := 60 * size * int(second) / int(work+trip); served < most*9/10 || refused > served/10 || p.l.Likeliest() != fmt.Sprintf("%d at a time", size) {
				t.Errorf("%d at a time, says %s: %d of some %d are served and %d refused: %v", size, h.name, served, most, refused, p.l.Likeliest())
			}
		}
	}
}

// TestAnInstantThatWasNamedIsKept: when it has come and nothing has happened meanwhile, a
// request may go, however many wait by then.
func TestAnInstantThatWasNamedIsKept(t *testing.T) {
	named := 0
	for i, h := range habits {
		for _, by := range []limiter{&fixed{size: 20, per: 5 * second}, &sliding{size: 7, per: 3 * second}, &bucket{rate: 3, size: 5}} {
			p := newPlay(by, 5*second, h, 5)
			for end := zero + second/10; end < zero+60*second; end += second / 10 {
				if p.until(end); p.idle == 0 {
					continue
				}
				plan := p.l.Next(p.now, p.idle)
				happens := len(p.under) > 0 && p.under[0].at <= plan.At
				if plan.Reason < learn.Believed || plan.At <= p.now || plan.At == never || happens {
					continue
				}
				named++
				p.now = plan.At
				for _, waiting := range []int{1, 2, 50} {
					if got := p.l.Next(p.now, waiting).At; got != p.now {
						t.Fatalf("%s, limiter %d: named for now, and %d wait: %v later", h.name, i, waiting, time.Duration(got-p.now))
					}
				}
			}
		}
	}
	if named < 1000 {
		t.Errorf("%d instants were named, want many", named)
	}
}
