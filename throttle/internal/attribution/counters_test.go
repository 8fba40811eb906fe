package attribution_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// surely is for how long each counter counts at least.
const surely = 400 * time.Millisecond

// A stating is a counter as servers have it, which states what it has left and its reset.
type stating struct {
	kind       string
	size, per  float64 // per in seconds
	used, ends float64 // of a window; of a bucket, ends is when used was right
	times      []float64
}

func (s *stating) take(now, n float64) (ok bool, left, reset float64) {
	switch s.kind {
	case "bucket":
		s.used, s.ends = max(0, s.used-(now-s.ends)*s.size/s.per), now
	case "log":
		s.times = slices.DeleteFunc(s.times, func(t float64) bool { return t <= now-s.per })
		s.used = float64(len(s.times))
	case "clock":
		if end := (math.Floor(now/s.per) + 1) * s.per; end != s.ends {
			s.used, s.ends = 0, end
		}
	case "first":
		if now >= s.ends {
			s.used, s.ends = 0, now+s.per
		}
	}
	if ok = s.used+n <= s.size; ok {
		s.used += n
		for range int(n) {
			s.times = append(s.times, now)
		}
	}
	switch s.kind {
	case "bucket":
		reset = s.used / s.size * s.per
	case "log":
		reset = s.times[0] + s.per - now
	default:
		reset = s.ends - now
	}
	return ok, math.Floor(s.size - s.used), reset
}

// stated is what a caller hears who sends many requests at about that load. others is how
// often somebody else takes a unit between them.
func stated(dice *rand.Rand, of []*stating, inTurn bool, load, others float64, hear func(now, sent meter.Instant, w attribution.Word, window time.Duration)) {
	type request struct {
		sent, at, heard, left, reset float64
		ok                           bool
	}
	all, t := make([]*request, 300), 1e6*dice.Float64()
	slow := dice.ExpFloat64()
	for i := range all {
		t += dice.ExpFloat64() / load / of[0].size * of[0].per / float64(len(of))
		at := t + dice.Float64()*slow
		all[i] = &request{sent: t, at: at, heard: at + dice.Float64()*slow}
	}
	slices.SortFunc(all, func(a, b *request) int { return int(math.Copysign(1, a.at-b.at)) })
	for i, r := range all {
		c := of[i%len(of)]
		if !inTurn {
			c = of[dice.IntN(len(of))]
		}
		if dice.Float64() < others {
			c.take(r.at, 1)
		}
		r.ok, r.left, r.reset = c.take(r.at, 1)
	}
	slices.SortFunc(all, func(a, b *request) int { return int(math.Copysign(1, a.heard-b.heard)) })
	window := time.Duration(0)
	if dice.IntN(2) == 0 {
		window = meter.Seconds(math.Ceil(of[0].per))
	}
	skew, epoch := dice.Float64(), dice.IntN(2) == 0
	for _, r := range all {
		reset := math.Ceil(r.reset)
		if at := r.at + skew; epoch {
			reset = math.Ceil(at+r.reset) - math.Floor(at) // a Unix time less the Date
		}
		now := meter.Instant(0).Add(meter.Seconds(r.heard))
		hear(now, meter.Instant(0).Add(meter.Seconds(r.sent)), attribution.Word{
			Left: r.left, Size: of[0].size, Cost: 1, Quota: true, Refused: !r.ok, Holds: true, Reset: now.Add(meter.Seconds(reset)),
		}, window)
	}
}

// found is how often so many servers with a counter of that kind each are taken for several, of so
// many draws. It also says when that was last.
func found(kind string, servers, draws int) (n int, last string) {
	for seed := range uint64(draws) {
		dice := rand.New(rand.NewPCG(seed, uint64(servers)))
		size, per, others := float64(2+dice.IntN(30)), surely.Seconds()+30*math.Pow(dice.Float64(), 2), dice.Float64()
		if servers > 1 {
			size, per, others = min(size, 10), per+5, 0 // of shorter windows resets in whole seconds say too little
		}
		var of []*stating
		for range servers {
			of = append(of, &stating{kind: kind, size: size, per: per})
		}
		var c attribution.Counters
		several := false
		stated(dice, of, dice.IntN(2) == 0, .3+dice.Float64(), others, func(now, sent meter.Instant, w attribution.Word, window time.Duration) {
			if c.Weigh(now, sent, nil, w, window, 0); c.Several() && !several {
				several, last = true, fmt.Sprintf("%v per %v s, seed %d: %v, %+v", size, per, seed, now, w)
				n++
			}
		})
	}
	return n, last
}

// One counter is never taken for several, of whatever kind it is, though answers overtake one another,
// others use it, too, and it is asked for more than it has. Several are told from one, most of those
// with windows.
func TestSeveralCountersAreToldFromOne(t *testing.T) {
	for kind, least := range map[string]int{"clock": 150, "first": 150, "log": 70, "bucket": 70} {
		if n, last := found(kind, 1, 3000); n > 0 {
			t.Errorf("one %s was taken for several %d times in 3000, last of %s", kind, n, last)
		}
		for _, servers := range []int{2, 3, 8} {
			n, _ := found(kind, servers, 300)
			if t.Logf("%d of a %s: %d of 300", servers, kind, n); n < least {
				t.Errorf("%d of a %s were found %d times in 300, want %d", servers, kind, n, least)
			}
		}
	}
}

// Where one server takes over from several, there is one again.
func TestSeveralCountersBecomeOne(t *testing.T) {
	var c attribution.Counters
	dice := rand.New(rand.NewPCG(1, 1))
	weigh := func(now, sent meter.Instant, w attribution.Word, window time.Duration) {
		c.Weigh(now, sent, nil, w, window, 0)
	}
	several := []*stating{{kind: "clock", size: 10, per: 10}, {kind: "clock", size: 10, per: 10}}
	if stated(dice, several, true, .9, 0, weigh); !c.Several() {
		t.Fatal("not found")
	}
	if stated(dice, several[:1], true, .9, 0, weigh); c.Several() {
		t.Error("still there")
	}
}

// Requests that are not alike are not compared: each may have a counter of its own.
func TestCountersOfOtherRequestsAreNotCompared(t *testing.T) {
	var c attribution.Counters
	dice, n := rand.New(rand.NewPCG(1, 1)), 0
	stated(dice, []*stating{{kind: "clock", size: 10, per: 10}, {kind: "clock", size: 10, per: 10}}, true, .9, 0,
		func(now, sent meter.Instant, w attribution.Word, window time.Duration) {
			n++
			if c.Weigh(now, sent, n, w, window, 0); c.Several() {
				t.Fatal("several")
			}
		})
}
