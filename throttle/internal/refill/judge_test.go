package refill_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

const sec = time.Second

// heard is a series of answers 20 ms after they were asked for, to requests that went
// one after the other.
func heard(j *refill.Judge, size, rate float64, reset time.Duration, answers ...answer) {
	for _, x := range answers {
		a := refill.Answer{
			Sent: at(x.at), Heard: at(x.at + 20*time.Millisecond), Left: x.left, Cost: 1, Refused: x.refused,
			Size: size, Rate: rate, Doubt: sec, Log: x.log, Logged: x.log != refill.Span{},
		}
		if reset > 0 {
			a.Reset = at(reset)
		}
		j.Heard(&a)
	}
}

type answer struct {
	at      time.Duration
	left    float64
	refused bool
	log     refill.Span
}

func at(d time.Duration) meter.Instant { return meter.Instant(time.Hour + d) }

// each is one answer a second from the first on, which leave so many.
func each(left ...float64) (list []answer) {
	for i, n := range left {
		list = append(list, answer{at: time.Duration(i) * sec, left: n})
	}
	return list
}

func TestWhatIsLeftTellsTheKind(t *testing.T) {
	const far = time.Hour
	exactly := func(n float64) refill.Span { return refill.Span{Least: n, Most: n} }
	for _, test := range []struct {
		name       string
		size, rate float64
		reset      time.Duration
		answers    []answer
		kind       refill.Kind
		sure       bool
	}{
		{"nothing was heard", 10, 1, far, nil, refill.Window, false},
		{"it falls", 100, 3, far, each(9, 8, 7, 6), refill.Window, true},
		{"of unknown rate it falls", 10, 0, far, each(9, 8, 7, 6), refill.Window, false},
		{"it stays", 10, 1, far, each(9, 9, 9), refill.Bucket, false},
		{"it goes on staying", 10, 1, far, each(9, 9, 9, 9, 9, 9), refill.Bucket, true},
		{"served though nothing was left", 10, 1, far, each(0, 0, 0), refill.Bucket, false},
		{"once is chance", 10, 1, far, each(1, 1, 0), refill.Window, false},
		{"of unknown rate it stays", 10, 0, far, each(5, 5, 5, 5, 5), refill.Bucket, false},
		{"of unknown size it stays", 0, 0, far, each(9, 9, 9, 9), refill.Bucket, false},
		{"full after each reset", 10, 0, 0, each(2, 9, 2, 9, 2, 9), refill.Window, false},
		{"others spend of a window", 10, 1, far, each(9, 6, 5, 1), refill.Window, false},
		{"others spend of a bucket", 100, 10, far, each(90, 96, 91, 97, 93), refill.Bucket, true},
		{"a bucket becomes faster", 100, 10, far, each(9, 18, 27, 36, 65, 94), refill.Bucket, true},
		{"a bucket becomes slower", 100, 10, far, each(9, 18, 27, 36, 40, 44, 48), refill.Bucket, true},
		{"and refuses", 100, 10, far, []answer{
			{left: 0, at: 0}, {left: 9, at: sec}, {left: 18, at: 2 * sec}, {left: 0, at: 4 * sec, refused: true}, {left: 9, at: 5 * sec},
		}, refill.Bucket, true},
		{"refused when a unit should be there", 10, 1, far, append(each(0, 0, 0, 0), []answer{
			{at: 4 * sec, refused: true}, {at: 5 * sec}, {at: 6 * sec, refused: true}, {at: 7 * sec}, {at: 8 * sec, refused: true}, {at: 9 * sec, refused: true},
		}...), refill.Window, false},
		{"refused when half a unit should be", 10, 1, far, append(each(0, 0, 0, 0), []answer{
			{at: 7 * sec / 2, refused: true}, {at: 5 * sec}, {at: 11 * sec / 2, refused: true}, {at: 7 * sec}, {at: 15 * sec / 2, refused: true}, {at: 8 * sec},
		}...), refill.Bucket, true},
		{"as a log has it", 10, 1, far, []answer{
			{left: 0, at: 0}, {left: 4, at: sec, log: exactly(5)}, {left: 3, at: sec + sec/10, log: exactly(4)}, {left: 5, at: 2 * sec, log: exactly(6)},
		}, refill.Log, true},
		{"not as a log has it", 10, 1, far, []answer{
			{left: 0, at: 0}, {left: 0, at: sec, log: exactly(0)}, {left: 0, at: 2 * sec, log: exactly(0)}, {left: 0, at: 3 * sec, log: exactly(0)},
		}, refill.Bucket, false},
		{"after its reset there is little", 10, .1, 4 * sec, []answer{
			{left: 0, at: 0}, {left: 1, at: 6 * sec, log: exactly(2)}, {left: 0, at: 12 * sec, log: exactly(1)},
		}, refill.Log, false},
	} {
		var j refill.Judge
		heard(&j, test.size, test.rate, test.reset, test.answers...)
		if j.Kind() != test.kind || j.Sure() != test.sure {
			t.Errorf("%s: kind %d, sure %t, want %d, %t", test.name, j.Kind(), j.Sure(), test.kind, test.sure)
		}
	}
}

// Answers that overtake one another say nothing of what came back.
func TestAnswersThatOvertakeOneAnotherTellNothing(t *testing.T) {
	var j refill.Judge
	hear := func(sent, got time.Duration, left, open float64) {
		j.Heard(&refill.Answer{Sent: at(sent), Heard: at(got), Left: left, Cost: 1, Open: open, Size: 100, Rate: .01})
	}
	hear(0, 20*time.Millisecond, 99, 0)
	for i := range 20 { // sent together after that, heard in the wrong order
		hear(30*time.Millisecond, time.Duration(50+i)*time.Millisecond, float64(79+i), float64(19-i))
	}
	hear(55*time.Millisecond, 90*time.Millisecond, 78, 0)
	if j.Kind() != refill.Window {
		t.Errorf("kind %d", j.Kind())
	}
}

// What was accepted without a word is missing later.
func TestUnitsWithoutAWordAreCounted(t *testing.T) {
	for spent, want := range map[float64]refill.Kind{0: refill.Window, 4: refill.Bucket} {
		var j refill.Judge
		heard(&j, 10, 4, time.Hour, answer{left: 9})
		j.Spent(at(sec), spent)
		heard(&j, 10, 4, time.Hour, answer{left: 8, at: sec}, answer{left: 8 - spent, at: sec + 40*time.Millisecond})
		if spent == 4 { // known once a round trip later
			heard(&j, 10, 4, time.Hour, answer{left: 7, at: 2 * sec})
		}
		if j.Kind() != want {
			t.Errorf("%v without a word: kind %d, want %d", spent, j.Kind(), want)
		}
	}
}

// A server's word for a kind holds until answers contradict it.
func TestAWordIsTakenUntilItIsContradicted(t *testing.T) {
	for k := range refill.Kind(4) {
		var j refill.Judge
		if j.Lean(k); j.Kind() != k || !j.Sure() {
			t.Errorf("kind %d, sure %t, want %d", j.Kind(), j.Sure(), k)
		}
	}
	var j refill.Judge
	j.Lean(refill.Bucket)
	if heard(&j, 100, 10, time.Hour, each(90, 89, 88, 87, 86, 85, 84)...); j.Kind() != refill.Window {
		t.Errorf("kind %d, though nothing came back", j.Kind())
	}
	if j.Lean(refill.Bucket); j.Kind() != refill.Window {
		t.Error("a word goes before what answers have shown")
	}
}

// However long it was borne out, some answers change a verdict; one does not.
func TestAVerdictIsNeverFinal(t *testing.T) {
	var j refill.Judge
	window, log := [4]float64{refill.Bucket: 3, refill.Log: 3, refill.Counter: 3}, [4]float64{refill.Window: math.Inf(1), refill.Bucket: 9, refill.Counter: 9}
	for range 1000 {
		j.Weigh(window)
	}
	for i := range 4 {
		if i < 2 && j.Kind() != refill.Window {
			t.Fatalf("after %d: kind %d", i, j.Kind())
		}
		j.Weigh(log)
	}
	if j.Kind() != refill.Log {
		t.Errorf("kind %d", j.Kind())
	}
}

// What was foreseen is taken in as any answer is, whatever the server is, and in whatever order answers come.
func TestWhatWasForeseenIsTakenInAsAnyAnswer(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 35))
	any := func(list ...float64) float64 { return list[rng.IntN(len(list))] }
	seen, all := 0, 0
	for range 2000 {
		var j refill.Judge
		if rng.IntN(4) == 0 {
			j.Lean(refill.Kind(rng.IntN(3)))
		}
		size, rate, left := any(0, 1, 10, 1e5, 1e18), any(0, 0, .1, 1, 30, 1e6), any(0, 1, 9, 1e5)
		now, reset, per := time.Duration(0), time.Duration(any(0, 1e9, 1e10, 1e13)), time.Duration(any(0, 5e9, 6e9, 1e10))
		steps := any(1, 1, 6)
		for range 60 {
			now += time.Duration(any(0, 1, 1e6, 1e9) * rng.Float64() * steps)
			if per > 0 && now > reset && reset > 0 {
				reset += per
				left = any(left, size)
			}
			cost := any(0, 1, 1, 1, 1, .3, 7)
			a := refill.Answer{
				Sent: at(now - time.Duration(any(0, 0, 1e7, 2e9))), Heard: at(now), Cost: cost, Open: any(0, 0, 0, 1, 9),
				Refused: rng.IntN(16) == 0, Size: size, Rate: rate, Doubt: sec, Per: per,
			}
			left -= any(cost, cost, cost, cost, cost, 0, -1, 3, -size, 1e19*(rng.Float64()-.5))
			if a.Left = left; rng.IntN(16) == 0 {
				left, a.Left = any(0, size, 5), any(0, 1.8e19)
			}
			if reset > 0 {
				a.Reset = at(reset)
			}
			if rng.IntN(16) == 0 {
				a.Log, a.Logged = refill.Span{Least: left - 1, Most: left + 1}, true
			}
			was, short := j, j
			foresaw := refill.Foresaw(&short, &a)
			refill.Weighed(&j, &a)
			if foresaw && short != j || !foresaw && short != was {
				t.Fatalf("%+v made\n%+v of\n%+v, want\n%+v", a, short, was, j)
			}
			if all++; foresaw {
				seen++
			}
		}
	}
	if seen < all/20 {
		t.Errorf("%d of %d were foreseen", seen, all)
	}
}

// TestRate: a bucket that lacks a fifth of its units and is full after two seconds fills
// in ten. What is full, or whose reset has passed, tells nothing.
func TestRate(t *testing.T) {
	for _, test := range []struct {
		size, left float64
		full       time.Duration
		want       float64
	}{{100, 80, 2 * time.Second, 10}, {100, 100, time.Second, 0}, {100, 120, time.Second, 0}, {100, 0, 0, 0}, {100, 0, -time.Second, 0}, {0, 0, time.Second, 0}} {
		if got := refill.Rate(test.size, test.left, test.full); got != test.want {
			t.Errorf("%v of %v left, full after %v: %v a second, want %v", test.left, test.size, test.full, got, test.want)
		}
	}
}
