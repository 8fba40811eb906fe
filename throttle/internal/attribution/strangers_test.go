package attribution_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// newStrangers has seen so many first answers, of which one in ten was refused.
func newStrangers(answers int) *attribution.Strangers {
	j := new(attribution.Strangers)
	j.Begin(zero)
	for i := range answers {
		j.Count(i%10 == 0)
	}
	return j
}

// One that asks while others wait is refused if they share one limit, and served if
// it has its own: two or three such answers are beyond doubt.
func TestOneThatAsksTells(t *testing.T) {
	for _, refused := range []bool{true, false} {
		j := newStrangers(40)
		if j.Sure() || j.Apart() {
			t.Fatal("at first nothing is known")
		}
		n := 0
		for ; !j.Sure() && !j.Apart() && n < 10; n++ {
			j.Answered(zero+1, zero, zero.Add(5*time.Second), refused)
		}
		if n == 0 || n > 3 || j.Sure() != refused {
			t.Errorf("refused %t: sure %t, apart %t after %d", refused, j.Sure(), j.Apart(), n)
		}
	}
	j := newStrangers(40)
	for range 10 { // sent when the others had to wait no more
		j.Answered(zero+1, zero, zero, false)
	}
	if j.Apart() {
		t.Error("one that was served as anybody would have been tells of a limit of its own")
	}
}

// Of one limit most of what is sent with or after the first that is refused is refused
// too. Where as many are refused as ever, that tells nothing.
func TestWhatFollowsARefusalTells(t *testing.T) {
	for _, test := range []struct {
		name   string
		served int // one of so many that follow is served; zero: none
		apart  time.Duration
		sure   bool
	}{
		{"all are refused", 0, time.Millisecond, true},
		{"all were sent at once", 0, 0, true},
		{"one of six is served", 6, time.Millisecond, true},
		{"all are served", 1, time.Millisecond, false},
	} {
		j := newStrangers(40)
		sent, heard := zero, zero.Add(time.Second)
		j.Follows(heard.Add(-sec/2), sent.Add(-time.Millisecond), false) // served before
		j.Follows(heard, sent, true)
		for i := range 12 {
			sent = sent.Add(test.apart)
			j.Follows(heard.Add(time.Duration(i)), sent, test.served == 0 || (i+1)%test.served != 0)
		}
		if j.Sure() != test.sure || j.Apart() {
			t.Errorf("%s: sure %t, apart %t", test.name, j.Sure(), j.Apart())
		}
	}
}

// What is left of one limit counts down, in whatever order the answers are heard; what is
// left of limits of their own begins anew. A window that may have begun meanwhile tells
// nothing.
func TestWhatIsLeftTells(t *testing.T) {
	shuffled := rand.New(rand.NewPCG(1, 1)).Perm(12)
	for _, test := range []struct {
		name        string
		left        func(i int) float64
		fresh       bool
		flying      float64
		sure, apart bool
	}{
		{"it falls by one", func(i int) float64 { return 60 - float64(i) }, true, 1, true, false},
		{"it falls by one, and answers overtake one another", func(i int) float64 { return 60 - float64(shuffled[i]) }, true, 12, true, false},
		{"it is nearly full", func(i int) float64 { return 99 }, true, 1, false, true},
		{"it is nearly full, perhaps after a reset", func(i int) float64 { return 99 }, false, 1, false, false},
		{"it is always the same", func(i int) float64 { return 60 }, true, 1, false, false},
		{"it is anything", func(i int) float64 { return float64(i * 37 % 61) }, true, 1, false, false},
	} {
		j := newStrangers(40)
		for i := range 12 {
			j.Compare(zero, attribution.Level{Left: test.left(i), Was: 61, UnderWay: test.flying, New: test.fresh})
		}
		if j.Sure() != test.sure || j.Apart() != test.apart {
			t.Errorf("%s: sure %t, apart %t", test.name, j.Sure(), j.Apart())
		}
	}
}

// Each window of few requests adds to the evidence, in whatever order its answers are
// heard: no number of one window is held against those of the next.
func TestWindowsOfFewTellTogether(t *testing.T) {
	const size = 6
	draw := rand.New(rand.NewPCG(3, 3))
	for range 100 {
		j, now, windows := newStrangers(40), zero, 0
		for ; !j.Sure() && windows < 10; windows++ {
			for i, left := range draw.Perm(size) {
				j.Compare(now, attribution.Level{Left: float64(left), UnderWay: float64(size - i), Fresh: i == 0})
			}
			now = now.Add(10 * time.Second)
		}
		if windows > 4 {
			t.Errorf("sure after %d windows, want at most 4", windows)
		}
	}
}

// Strangers who all have as much left, as tenants have whose tokens are new, do not share
// one limit, however many of them are under way.
func TestTheSameNumberForAllIsNoSharedLimit(t *testing.T) {
	for _, test := range []struct{ left, flying float64 }{{4, 4}, {10, 6}, {10, 10}, {29, 20}, {59, 50}, {99, 50}, {99, 99}} {
		j := newStrangers(40)
		for i := range 60 {
			j.Compare(zero, attribution.Level{Left: test.left, Was: test.left, UnderWay: test.flying, Fresh: i == 0})
			if j.Patience() > 1 {
				t.Errorf("%v left, %v under way: one limit is likelier after the same number %d times", test.left, test.flying, i+1)
				break
			}
		}
	}
}

// The likelier it is that they share one limit, the longer the others have to wait
// before one asks, and who is sure asks as soon as it is time.
func TestWhoIsNearlySureHesitatesToAsk(t *testing.T) {
	j, last := newStrangers(40), 0.
	for i := range 4 {
		j.Compare(zero, attribution.Level{Left: float64(12 - i), UnderWay: 1, Fresh: i == 0})
		if p := j.Patience(); !j.Sure() && p < last || j.Sure() && p != 1 {
			t.Errorf("after %d numbers: %v times as long, %v before, sure %t", i+1, p, last, j.Sure())
		} else {
			last = max(last, p)
		}
	}
	if last < 4 {
		t.Errorf("at most %v times as long as at first", last)
	}
}

// Strangers with limits of their own are hardly ever taken for one, however many of them
// are spent and whatever is left for the others: that begins with odds of four to one
// for one limit, and is beyond doubt at 360 to one, so chance takes it there once in 90
// times.
func TestStrangersAreNotOneByChance(t *testing.T) {
	const hosts = 4000
	draw := rand.New(rand.NewPCG(7, 7))
	sure := 0
	for range hosts {
		j := new(attribution.Strangers)
		j.Begin(zero)
		now, spent, size := zero, draw.Float64()*.7, 4+draw.IntN(100)
		one := false
		for range 40 { // waves
			n := 1 + draw.IntN(20)
			for i := range n {
				refused := draw.Float64() < spent
				j.Follows(now.Add(time.Second+time.Duration(i)), now.Add(time.Duration(draw.IntN(n))), refused)
				if !refused {
					j.Compare(now, attribution.Level{Left: float64(draw.IntN(size)), Was: float64(size), UnderWay: float64(n - i)})
				}
				j.Count(refused)
				one = one || j.Sure()
			}
			now = now.Add(2 * time.Second)
		}
		if one {
			sure++
		}
	}
	if sure > hosts/50 {
		t.Errorf("%d of %d hosts, want at most one in 50", sure, hosts)
	}
	t.Logf("%d of %d hosts", sure, hosts)
}

// Evidence is forgotten, and no more of it is kept than a few answers outweigh.
func TestEvidenceOfStrangersIsBounded(t *testing.T) {
	j := newStrangers(10)
	for range 1000 {
		j.Answered(zero, zero, zero.Add(time.Minute), true)
	}
	for age, want := range map[time.Duration]bool{attribution.Remembered: false, attribution.Remembered + 1: true} {
		if j.Stale(zero.Add(age)) != want {
			t.Errorf("%v later: stale %t", age, !want)
		}
	}
	n := 0
	for ; !j.Apart(); n++ {
		j.Answered(zero, zero, zero.Add(5*time.Second), false)
	}
	if n > 3 {
		t.Errorf("%d answers against what a thousand said", n)
	}
	j.Begin(meter.Instant(1))
	if j.Apart() || j.Sure() {
		t.Error("it begins with an opinion")
	}
}

// What was sent before the first that is refused, or after that was heard, is no part of
// the wave.
func TestWhatIsNoPartOfAWaveTellsNothing(t *testing.T) {
	for name, off := range map[string]time.Duration{"sent before": -time.Second, "sent after it was heard": 2 * time.Second} {
		j := newStrangers(40)
		sent, heard := zero.Add(time.Minute), zero.Add(time.Minute+time.Second)
		j.Follows(heard, sent, true)
		for range 12 {
			j.Follows(heard, sent.Add(off), false)
		}
		for range 6 {
			j.Follows(heard, sent, true)
		}
		if !j.Sure() {
			t.Errorf("%s: what was served then is held against one limit", name)
		}
	}
}

// Numbers that count down are evidence, and keep what is known from growing stale.
func TestWhatCountsDownKeepsEvidenceFresh(t *testing.T) {
	for down, want := range map[bool]bool{true: false, false: true} {
		j := newStrangers(40)
		now := zero
		for i := range 40 {
			now = now.Add(time.Minute)
			left := 60.
			if down {
				left -= float64(i)
			}
			j.Compare(now, attribution.Level{Left: left, Was: 61, UnderWay: 1, New: true})
		}
		if j.Stale(now.Add(time.Minute)) != want {
			t.Errorf("counts down %t: stale %t", down, !want)
		}
	}
}
