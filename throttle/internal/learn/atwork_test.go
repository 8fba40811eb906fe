package learn

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
)

// A worked request is one of those that a server works on: when it was sent, and when its answer
// was heard.
type worked struct{ sent, heard Instant }

// atServer is how many of w, that were sent before, are at a server half a trip away at the
// instant at which a request arrives that is sent then.
func atServer(w []worked, then, half Instant) (n int) {
	for _, x := range w {
		if x.sent < then && x.heard > then+2*half {
			n++
		}
	}
	return n
}

// works draws how long a server works.
var works = map[string]func(dice *rand.Rand) float64{
	"always as long":    func(*rand.Rand) float64 { return 1 },
	"half to half more": func(dice *rand.Rand) float64 { return .5 + dice.Float64() },
	"by chance":         (*rand.Rand).ExpFloat64,
}

// workload is n requests, sent in bursts, to a server half a trip away that works for mean on one.
func workload(dice *rand.Rand, n int, half, mean Instant, works func(*rand.Rand) float64) (w []worked) {
	now := zeroHour
	for len(w) < n {
		now += Instant(dice.ExpFloat64() * float64(mean))
		for range 1 + dice.IntN(8) {
			now += Instant(1 + dice.IntN(1000))
			w = append(w, worked{now, now + 2*half + Instant(works(dice)*float64(mean))})
		}
	}
	return w
}

const zeroHour = Instant(1e15)

// What was sent when is known, and so is which answers came before a request arrived: so the
// number at the server is known afterwards, however requests were spaced.
func TestHowManyWereAtTheServerIsCounted(t *testing.T) {
	for name, long := range works {
		dice := rand.New(rand.NewPCG(1, 2))
		const half, mean = 2e7, 1e8
		w := workload(dice, 150, half, mean, long)
		byAnswer := append([]worked(nil), w...)
		sort.Slice(byAnswer, func(i, k int) bool { return byAnswer[i].heard < byAnswer[k].heard })
		r, busy := record{apart: true}, 0
		hear := func(until Instant) {
			for len(byAnswer) > 0 && byAnswer[0].heard <= until {
				r.left(byAnswer[0].heard, byAnswer[0].sent, half, false)
				r.find(byAnswer[0].sent).under--
				byAnswer, busy = byAnswer[1:], busy-1
			}
		}
		for _, x := range w {
			hear(x.sent)
			r.sent(x.sent, 1, busy, 0)
			busy++
		}
		hear(math.MaxInt64)
		for i := range r.log {
			if all, _, _ := r.log[i].level(&timing{}); int(all) != 1+atServer(w, r.log[i].at, half) {
				t.Fatalf("%s: %v were at the server, with the request itself, want 1 and %d", name, all, atServer(w, r.log[i].at, half))
			}
		}
	}
}

// The first refusal may come before any good answer, so that nobody knows for how long the server
// works. What was sent before the refused request, and is not answered yet, was at the server then.
func TestWhatIsUnansweredAtTheFirstRefusalWasAtTheServer(t *testing.T) {
	const gap, trip = 3e7, 4e7
	for n := 1; n < 8; n++ {
		var l Learner
		now := zeroHour
		for range n {
			l.Sent(now)
			now += gap
		}
		l.Sent(now)
		l.Refused(now+trip, now, Refusal{})
		log := l.mind.bank.log
		if all, _, _ := log[len(log)-1].level(&l.mind.bank.timing); int(all) != n {
			t.Errorf("%.1f were at the server, want %d", all, n)
		}
	}
}

// How many are at the server when the next one arrives is estimated without bias, also of those
// that were sent in a burst, and within the deviation that goes with it.
func TestHowManyAreAtTheServerIsEstimated(t *testing.T) {
	for name, long := range works {
		for _, half := range []Instant{1e6, 2e7, 1e8} {
			dice := rand.New(rand.NewPCG(3, 4))
			const mean = 1e8
			w := workload(dice, 4000, half, mean, long)
			var b bank
			b.half = half
			for _, x := range w {
				b.served.sample(float64(x.heard - x.sent))
			}
			b.served.into(&b.timing)
			is, estimated, variance, off, n := 0., 0., 0., 0., 0.
			for i := 200; i < len(w); i += 50 {
				now := w[i].sent + Instant(dice.IntN(2*mean))
				b.log = b.log[:0]
				for _, x := range w {
					if x.sent < now && x.heard > now {
						b.log = append(b.log, entry{at: x.sent, last: x.sent, under: 1})
					}
				}
				m, deviation := b.atWork(now, len(b.log))
				e := float64(atServer(w, now, half)) - m
				is, estimated, variance, off, n = is+m+e, estimated+m, variance+deviation*deviation, off+e*e, n+1
			}
			if math.Abs(is-estimated) > .1*is {
				t.Errorf("%s, %v away: %.2f are at the server in the mean, and %.2f were expected", name, half, is/n, estimated/n)
			}
			if off > 4*variance+n {
				t.Errorf("%s, %v away: off by %.2f, and %.2f were expected", name, half, math.Sqrt(off/n), math.Sqrt(variance/n))
			}
		}
	}
}

// atATime is how many a server works on.
const atATime = 12

// burst lets l send 40 requests at once to a server that serves atATime. What it refuses is to
// wait for a minute; l is told of these refusals for which told is true, in their order. It returns
// when the last answer came.
func burst(l *Learner, told func(i int) bool) Instant {
	const sent, trip, work = 40, 1e7, 1e8
	now := zeroHour
	for range 10 {
		l.Sent(now)
		now += trip + work
		l.Accepted(now, now-trip-work)
	}
	for range sent {
		l.Sent(now)
	}
	for i := range sent - atATime {
		if told(i) {
			l.Refused(now+trip, now, Refusal{Hint: cooldown.Hint{Wait: time.Minute, Known: true}, Alone: true})
		} else {
			l.Unsent(now)
		}
	}
	for range atATime {
		l.Accepted(now+trip+work, now)
	}
	return now + trip + work
}

// What was refused without being told of was not at work: those that were accepted were as many as
// the server works on, whether the others were refused before it was first told of one, or later.
func TestWhatIsNotToldOfWasNotAtWork(t *testing.T) {
	for name, told := range map[string]func(i int) bool{
		"all are told":     func(int) bool { return true },
		"the first alone":  func(i int) bool { return i == 0 },
		"the last alone":   func(i int) bool { return i == 40-atATime-1 },
		"one in the midst": func(i int) bool { return i == 10 },
	} {
		l := new(Learner)
		burst(l, told)
		b := &l.mind.bank
		b.refit()
		i := slices.IndexFunc(b.of, func(c candidate) bool { return c.family == atOnce })
		if i < 0 {
			t.Fatalf("%s: no limit on requests at a time is thought of", name)
		}
		if c := &b.of[i]; c.size != atATime || c.against > 1 {
			t.Errorf("%s: %v at a time, with %.2f against it, want %d and hardly anything", name, c.size, c.against, atATime)
		}
	}
}

// goAtOnce is how many l lets go beside one another.
func goAtOnce(l *Learner, now Instant) (n int) {
	for n < 100 && l.Beside(now) == now {
		l.Sent(now)
		n++
	}
	return n
}

// No more go at a time than were served, whatever limit is the likeliest, as long as that explains
// what was refused: after a wait that has passed in peace twice as many.
func TestNoMoreGoAtATimeThanWereServed(t *testing.T) {
	for wait, want := range map[time.Duration]int{time.Minute: atATime, 119 * time.Second: atATime, 121 * time.Second: 2 * atATime, time.Hour: 100} {
		l := new(Learner)
		burst(l, func(i int) bool { return i == 0 })
		if c := &l.mind.bank.of[0]; c.family == atOnce {
			t.Fatalf("%s is the likeliest limit, so this shows nothing", c)
		}
		if n := goAtOnce(l, zeroHour+11e8+11e7+Instant(wait)); n != want {
			t.Errorf("%d at a time after %v, want %d", n, wait, want)
		}
	}
}

// As many go at a time as wait if the refusal of one, when few were under way, has another reason.
func TestMoreGoAtATimeIfThatIsNotWhatIsLimited(t *testing.T) {
	l, now := new(Learner), zeroHour
	for range 40 {
		l.Sent(now)
	}
	for range 40 {
		l.Accepted(now+1e8, now)
	}
	for range 3 {
		now += 2e8
		l.Sent(now)
		l.Refused(now+1e7, now, Refusal{Hint: cooldown.Hint{Wait: time.Second, Known: true}})
	}
	if n := goAtOnce(l, now+1e9); n < 100 {
		t.Errorf("%d at a time, want as many as wait, as 40 were served at a time, and one alone was refused", n)
	}
}
