package attribution_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// What could be a quota is obeyed at once, and until it is contradicted; what could
// not, when it behaves as one.
func TestWhoseWordIsObeyed(t *testing.T) {
	reset := zero.Add(time.Hour)
	word := func(left float64) attribution.Word {
		return attribution.Word{Left: left, Size: 10, Cost: 1, Reset: reset, Quota: true, Holds: true}
	}
	odd := func(left float64) attribution.Word {
		return attribution.Word{Left: left, Cost: 1, Reset: reset, Holds: true}
	}
	refused := func(w attribution.Word) attribution.Word { w.Refused = true; return w }
	asks := func(w attribution.Word) attribution.Word { w.Asks = true; return w }
	free := func(w attribution.Word) attribution.Word { w.Holds = false; return w }
	flows := func(w attribution.Word) attribution.Word { w.Flows = math.Inf(1); return w }
	for _, test := range []struct {
		name  string
		words []attribution.Word
		want  bool
	}{
		{"it could be a quota", []attribution.Word{word(5)}, true},
		{"it could not", []attribution.Word{odd(5)}, false},
		{"it could not, but falls", []attribution.Word{odd(5), odd(4)}, true},
		{"it could not, but refuses with nothing left", []attribution.Word{refused(odd(0))}, true},
		{"it could not, and refuses with something left", []attribution.Word{refused(odd(5))}, false},
		{"what was accepted took nothing", []attribution.Word{word(5), word(5), word(5)}, false},
		{"nobody waits for it", []attribution.Word{free(word(5)), free(word(5)), free(word(5))}, true},
		{"it flows back", []attribution.Word{flows(word(5)), flows(word(5)), flows(word(5))}, true},
		{"it fell before", []attribution.Word{word(6), word(5), word(5), word(5), word(5)}, true},
		{"the reset brought nothing", []attribution.Word{word(0), asks(word(0))}, false},
		{"the reset brought something", []attribution.Word{word(0), asks(word(10))}, true},
		{"the one that asked was refused", []attribution.Word{word(0), refused(asks(word(0)))}, true},
		{"another window began", []attribution.Word{word(3), word(9), word(8)}, true},
		{"another window began, in which what was accepted took nothing", []attribution.Word{word(3), word(9), word(9), word(9)}, false},
		{"it fell before that window began, too", []attribution.Word{word(4), word(3), word(9), word(9), word(9)}, true},
	} {
		var b attribution.Belief
		obeyed := false
		for _, w := range test.words {
			obeyed = b.Weigh(zero, w)
		}
		if obeyed != test.want {
			t.Errorf("%s: obeyed %t", test.name, obeyed)
		}
	}
}

// A word that refusals bear out stands more contradictions each time, but no more than a
// server needs that has ceased to mean it.
func TestProvedWordsAreBelievedForLonger(t *testing.T) {
	spent := attribution.Word{Left: 0, Size: 10, Cost: 1, Reset: zero.Add(time.Hour), Quota: true, Holds: true}
	for round, want := range []int{4, 16, 64, 64} {
		var b attribution.Belief
		w := spent
		w.Refused = true
		for range round + 1 {
			b.Weigh(zero, w)
		}
		if b.Vain() || !b.Firm() {
			t.Fatalf("after %d refusals: vain %t, firm %t", round+1, b.Vain(), b.Firm())
		}
		w.Refused, w.Asks = false, true
		n := 1
		for ; b.Weigh(zero, w); n++ {
			if !b.Vain() {
				t.Fatal("contradicted, and not in vain")
			}
		}
		if n != want {
			t.Errorf("after %d refusals it stands %d contradictions, want %d", round+1, n, want)
		}
	}
}

// What is left says nothing of the window before: after its end, or a minute where
// nobody said when that is.
func TestWindowsAreTakenOneByOne(t *testing.T) {
	for _, test := range []struct {
		name  string
		reset time.Duration
		after time.Duration
		want  bool
	}{
		{"in the same window", time.Hour, time.Minute, false},
		{"in the next", time.Minute, time.Minute, true},
		{"no reset was said, a minute ago", 0, attribution.StaleAfter, false},
		{"longer ago", 0, attribution.StaleAfter + 1, true},
	} {
		var b attribution.Belief
		w := attribution.Word{Left: 5, Size: 10, Cost: 2, Quota: true, Holds: true}
		if test.reset > 0 {
			w.Reset = zero.Add(test.reset)
		}
		b.Weigh(zero, w)
		if got := b.Weigh(zero.Add(test.after), w); got != test.want {
			t.Errorf("%s: obeyed %t", test.name, got)
		}
	}
}

// A bucket that is full at its reset gets back meanwhile what was accepted, so that as much
// is left: that contradicts nobody, as long as it was seen to fall. What it cannot have got
// back does.
func TestABucketThatIsSpentAsFastAsItFillsIsBelieved(t *testing.T) {
	for name, rate := range map[string]float64{"as fast": 10, "five times as fast": 50} {
		var b attribution.Belief
		now := zero
		weigh := func(left float64) bool {
			reset := now.Add(time.Duration((100 - left) / 10 * float64(time.Second))) // 10 units a second
			return b.Weigh(now, attribution.Word{Left: left, Size: 100, Cost: 1, Reset: reset, Quota: true, Holds: true})
		}
		weigh(51)
		weigh(50)
		obeyed := true
		for range 500 {
			now = now.Add(time.Duration(float64(time.Second) / rate))
			obeyed = weigh(50) && obeyed
		}
		if want := rate == 10; obeyed != want {
			t.Errorf("spent %s as it fills: obeyed %t", name, obeyed)
		}
	}
}

// Of a bucket that is known to fill all the time, as much as comes back may be spent, and a part
// of a unit more that was there already. It is contradicted if more is accepted, though the same
// is left.
func TestWhatComesBackAllTheTimeContradictsNobody(t *testing.T) {
	for _, test := range []struct {
		flows float64
		every time.Duration
		want  bool
	}{
		{2, 500 * time.Millisecond, true},
		{2, 400 * time.Millisecond, false},
		{math.Inf(1), 0, true},
		{math.Inf(1), time.Millisecond, true},
		{1e-6, time.Second, false},
	} {
		var b attribution.Belief
		now, obeyed := zero, true
		for range 20 {
			obeyed = obeyed && b.Weigh(now, attribution.Word{Size: 10, Cost: 1, Reset: zero.Add(time.Hour), Quota: true, Holds: true, Flows: test.flows})
			now = now.Add(test.every)
		}
		if obeyed != test.want {
			t.Errorf("%v come back a second, one is accepted every %v: obeyed %t", test.flows, test.every, obeyed)
		}
	}
}

// Adds learns what Weigh learns, or nothing.
func TestAddsIsWeighWhereNothingHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	added, all := 0, 0
	for range 2000 {
		var b attribution.Belief
		pick := func(list ...float64) float64 { return list[r.IntN(len(list))] }
		now, size, left := meter.Instant(time.Hour), pick(0, 10, 1e6), 0.0
		for range 30 {
			now += meter.Instant(pick(0, 1, 1e6, 1e9, 7e10))
			w := attribution.Word{
				Left: left, Size: size, Cost: pick(0, 1, 1, 3), Quota: left <= size, Refused: r.IntN(16) == 0,
				Asks: r.IntN(16) == 0, Holds: r.IntN(4) == 0, Flows: float64(r.IntN(4) / 3),
			}
			if left -= pick(1, 1, 1, 0, -1, -3, -size, left, math.NaN()); r.IntN(4) == 0 {
				left = size
			}
			if r.IntN(4) > 0 {
				w.Reset = now + meter.Instant(pick(0, 1e9, 1e12))
			}
			short := b
			obeyed, ok := short.Adds(now, w.Left, w.Cost)
			if !ok && fmt.Sprint(short) != fmt.Sprint(b) {
				t.Fatalf("%+v: %+v, was %+v", w, short, b)
			}
			want := b.Weigh(now, w)
			if w.Refused || w.Asks || w.Holds {
				continue
			}
			if ok && (obeyed != want || fmt.Sprint(short) != fmt.Sprint(b)) {
				t.Fatalf("%+v: %+v, %t; want %+v, %t", w, short, obeyed, b, want)
			}
			if all++; ok {
				added++
			}
		}
	}
	if added < all/10 {
		t.Errorf("%d of %d were added", added, all)
	}
}
