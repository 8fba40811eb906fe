package learn

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
)

const (
	second = Instant(time.Second)
	trip   = 20 * Instant(time.Millisecond)
	zero   = 1000 * second
)

func waits(d time.Duration) Refusal {
	return Refusal{Hint: cooldown.Hint{Wait: d, Known: true}}
}

// TestHealthyServersCostLittle: a server that never refuses gets few bytes and
// no garbage.
func TestHealthyServersCostLittle(t *testing.T) {
	if n := unsafe.Sizeof(Learner{}); n > 256 {
		t.Errorf("a Learner is %d bytes, want at most 256", n)
	}
	var l Learner
	now := zero
	allocs := testing.AllocsPerRun(5000, func() {
		if p := l.Next(now, 1); p.At != now {
			t.Fatalf("waits until %v", p.At)
		}
		l.Sent(now)
		now += trip
		l.Accepted(now, now-trip)
	})
	if allocs > 0 || l.mind != nil {
		t.Errorf("%v allocations, mind %v", allocs, l.mind)
	}
}

// TestAnAskedPauseIsCertain: nothing goes before it ends, and a longer one of a
// later answer counts, too.
func TestAnAskedPauseIsCertain(t *testing.T) {
	var l Learner
	l.Sent(zero)
	l.Sent(zero)
	l.Refused(zero+trip, zero, waits(2*time.Second))
	l.Refused(zero+2*trip, zero, waits(5*time.Second))
	want := zero + 2*trip + 5*second
	if p := l.Next(zero+3*trip, 1); p.At != want || p.Reason != Asked {
		t.Errorf("got %+v, want until %v", p, want)
	}
}

// A refusal whose wait is for what was refused alone is evidence of a limit, but holds up
// nobody else: nor does it shorten a pause of all.
func TestAPauseOfOneAloneIsNotKeptByOthers(t *testing.T) {
	var l Learner
	alone := waits(time.Minute)
	alone.Alone = true
	l.Sent(zero)
	l.Refused(zero+trip, zero, alone)
	if p := l.Next(zero+second, 1); p.Reason == Asked || p.At > zero+15*second {
		t.Errorf("others wait until %+v", p)
	}
	l.Sent(zero + 20*second)
	l.Refused(zero+20*second+trip, zero+20*second, waits(2*time.Second))
	l.Sent(zero + 21*second)
	l.Refused(zero+21*second+trip, zero+21*second, alone)
	if p, want := l.Next(zero+22*second-2*trip, 1), zero+22*second+trip; p.At != want || p.Reason != Asked {
		t.Errorf("others wait until %+v, want %v, as they were asked to", p, want)
	}
}

// TestOneAnswerDoesNotBearOutItself: a wait of a day is believed for MaxPause,
// until another answer names the same instant.
func TestOneAnswerDoesNotBearOutItself(t *testing.T) {
	var l Learner
	l.Sent(zero)
	l.Refused(zero, zero, waits(24*time.Hour))
	if got, want := l.Next(zero, 1).At, zero+300*second; got != want {
		t.Errorf("believes until %v, want %v", got, want)
	}
	later := zero + 301*second
	l.Sent(later)
	l.Refused(later, later, waits(24*time.Hour-301*time.Second))
	if got, want := l.Next(later, 1).At, zero+24*3600*second; got != want {
		t.Errorf("borne out it is believed until %v, want %v", got, want)
	}
}

// TestHostileServers: whatever is said and answered, in whatever order, memory
// stays bounded, weights are numbers, and Next keeps its word.
func TestHostileServers(t *testing.T) {
	for seed := range uint64(15) {
		hostile(t, rand.New(rand.NewPCG(seed, 1)), 400)
	}
}

func FuzzLearner(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { hostile(t, rand.New(rand.NewPCG(a, b)), 300) })
}

// hostile plays a server that makes everything up.
func hostile(t *testing.T, r *rand.Rand, steps int) {
	t.Helper()
	var l Learner
	now := zero
	var sent []Instant
	for range steps {
		now += Instant(r.ExpFloat64() * math.Pow(10, 4+5*r.Float64()))
		if k := len(sent); k > 0 && r.IntN(3) > 0 {
			i := r.IntN(k)
			s := sent[i]
			sent = append(sent[:i], sent[i+1:]...)
			answer(&l, r, now, s)
		}
		waiting := 1 + r.IntN(100)
		p := l.Next(now, waiting)
		keepsItsWord(t, &l, now, p, waiting, len(sent))
		if p.At <= now || r.IntN(20) == 0 { // some do not ask
			if r.IntN(50) == 0 {
				l.Supposed(now, r.IntN(1<<20))
			}
			l.Sent(now)
			sent = append(sent, now)
		}
		bounded(t, &l)
	}
}

func answer(l *Learner, r *rand.Rand, now, sent Instant) {
	var a Refusal
	if r.IntN(4) == 0 {
		a.Hint = cooldown.Hint{Wait: time.Duration(r.Int64() >> r.IntN(60)), Known: true}
	}
	switch r.IntN(8) {
	case 0:
		l.Lost(sent)
	case 1:
		l.Unsent(sent)
	case 2, 3:
		l.Refused(now, sent, a)
	default:
		l.Accepted(now, sent)
	}
}

// keepsItsWord: who comes back at the instant that Next named may go then,
// if nothing happened. Only answers are waited for without an instant.
func keepsItsWord(t *testing.T, l *Learner, now Instant, p Plan, waiting, under int) {
	t.Helper()
	switch {
	case p.At < now:
		t.Fatalf("at %v Next says %v", now, p.At)
	case p.At == never && under == 0:
		t.Fatalf("waits for an answer, and none is under way: %+v", p)
	case p.At > now && p.At != never:
		then := *l
		if l.mind != nil {
			m := *l.mind
			m.bank.of = append([]candidate(nil), m.bank.of...)
			m.bank.log = append([]entry(nil), m.bank.log...)
			then.mind = &m
		}
		at := p.At
		var trail []Plan
		for range 30 { // one reason after the other may hold it
			q := then.Next(at, waiting)
			if q.At <= at || q.At == never {
				return
			}
			at = q.At
			trail = append(trail, q)
		}
		t.Fatalf("Next recedes for ever: %v, %+v, then %+v", now, p, trail)
	}
}

func bounded(t *testing.T, l *Learner) {
	t.Helper()
	m := l.mind
	if m == nil {
		return
	}
	size := unsafe.Sizeof(*l) + unsafe.Sizeof(*m) +
		uintptr(cap(m.bank.log))*unsafe.Sizeof(entry{}) + uintptr(cap(m.bank.epochs))*unsafe.Sizeof(epoch{}) +
		uintptr(cap(m.bank.of))*unsafe.Sizeof(candidate{})
	if size > 9<<10 {
		t.Fatalf("%d bytes: log %d, epochs %d, candidates %d", size, cap(m.bank.log), cap(m.bank.epochs), cap(m.bank.of))
	}
	for _, c := range m.bank.of {
		if math.IsNaN(c.weight) || math.IsNaN(c.against) {
			t.Fatalf("%+v", c)
		}
	}
}

// TestADoubtfulRefusalIsAskedAboutSoon: while the host may be down, it is asked after a
// second or a quarter of the time for which it has refused, whatever is believed.
func TestADoubtfulRefusalIsAskedAboutSoon(t *testing.T) {
	for _, doubtful := range []bool{true, false} {
		var l Learner
		now, longest := zero, Instant(0)
		ask := func(a *Refusal) {
			at := l.Next(now, 50).At
			longest = max(longest, at-now-max(second, (now-zero)/4))
			now = at
			l.Sent(now)
			if now += trip; a == nil {
				l.Accepted(now, now-trip)
			} else {
				l.Refused(now, now-trip, *a)
			}
		}
		for range 30 {
			ask(nil)
		}
		for range 12 {
			ask(&Refusal{Doubtful: doubtful})
		}
		if late := longest > trip; late == doubtful {
			t.Errorf("doubtful %t: asked %v later", doubtful, time.Duration(longest))
		}
	}
}

// TestALearnerIsSmall: what a Learner takes on the heap that knows a server's limit.
func TestALearnerIsSmall(t *testing.T) {
	const many, most = 400, 9 << 10 // so many that what else is on the heap hardly counts
	all := make([]*Learner, many)
	var before, then runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	full := 0
	for i := range all {
		all[i], _ = after(600)
		full = max(full, len(all[i].mind.bank.log))
	}
	runtime.GC()
	runtime.ReadMemStats(&then)
	if full < maxEntries*3/4 {
		t.Errorf("a log has %d records at most, so that nothing is shown", full)
	}
	each := (int64(then.HeapAlloc) - int64(before.HeapAlloc)) / many
	if t.Logf("%d bytes a Learner", each); each > most || each < 1<<10 {
		t.Errorf("%d bytes a Learner, want at most %d", each, most)
	}
	runtime.KeepAlive(all)
}

// TestWeightsAreShares: whatever is seen, candidates are ordered by weight, and weigh one
// together.
func TestWeightsAreShares(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 8))
		var l Learner
		now := zero
		for range 50 + r.IntN(150) {
			now += Instant(r.ExpFloat64() * math.Pow(10, 6+3*r.Float64()))
			l.Sent(now)
			sent := now
			if now += trip; r.IntN(4) > 0 {
				l.Accepted(now, sent)
			} else {
				var a Refusal
				if r.IntN(3) == 0 {
					a = waits(time.Duration(r.IntN(30)) * time.Second)
				}
				l.Refused(now, sent, a)
			}
			l.Next(now, 1)
		}
		if l.mind == nil {
			t.Fatalf("seed %d: nothing was refused", seed)
		}
		sum, last := 0.0, 1.0
		for _, c := range l.mind.bank.of {
			if sum += c.weight; c.weight > last || c.weight < 0 {
				t.Errorf("seed %d: %+v after one of weight %v", seed, c, last)
			}
			last = c.weight
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("seed %d: %d candidates weigh %v together", seed, len(l.mind.bank.of), sum)
		}
	}
}
