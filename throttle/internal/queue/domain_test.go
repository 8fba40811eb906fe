package queue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// shop is a domain and a group of requests that need one unit of each of its
// accounts.
type shop struct {
	*Domain
	group    Group
	accounts []*Account
	asked    int // how often its needs
}

func newShop(meters ...meter.Meter) *shop {
	s := &shop{Domain: NewDomains().Shared}
	s.group.Gate = s.of.NewGate()
	s.group.Gate.Group = &s.group
	for _, m := range meters {
		s.accounts = append(s.accounts, &Account{Meter: m, Label: &Label{Unit: "requests", Text: "a limit"}, Group: &s.group})
	}
	return s
}

// rateOf is the meter of a rate per hour.
func rateOf(limit, burst int) *meter.Rated {
	return meter.NewRated(1, meter.NewRate(meter.Spec{Limit: limit, Per: time.Hour, Burst: burst, Unit: "requests"}), nil)
}

func (s *shop) Needs(_ meter.Instant, buf []Need) []Need {
	s.asked++
	for _, a := range s.accounts {
		buf = append(buf, Need{Account: a, N: 1})
	}
	return buf
}

func (s *shop) Doubts() bool { return false }

func (s *shop) Barred(now meter.Instant) (meter.Instant, *Account) { return now, nil }

func (s *shop) request(seq uint64) *Request {
	return &Request{Group: &s.group, Seq: seq, By: s}
}

// join lets q wait without end.
func (s *shop) join(now meter.Instant, q *Request) *Waiter {
	w := newWaiter(q, s.Needs(now, nil))
	s.list(now, w)
	s.try(now, w)
	return w
}

// TestTenThousandWaiters: exact order within a class, and one timer for all.
func TestTenThousandWaiters(t *testing.T) {
	s := newShop(rateOf(1, 1))
	s.mu.Lock() // the waitlist's timer finds it locked
	defer s.mu.Unlock()
	if !s.Enter(1, s.Needs(1, nil), s.request(0)) {
		t.Fatal("not idle")
	}
	var all []*Waiter
	for i := range 10000 {
		w := s.join(1, s.request(uint64(i+1)))
		if w.granted {
			t.Fatal("granted")
		}
		s.Run(1)
		all = append(all, w)
	}
	now := meter.Instant(1)
	for i, w := range all {
		if w.granted {
			t.Fatalf("number %d went early", i)
		}
		now += meter.Instant(time.Hour)
		s.Mark(s.accounts[0])
		s.Run(now)
		if !w.granted || i+1 < len(all) && all[i+1].granted {
			t.Fatalf("at %d: not exactly one more was granted, in order", i)
		}
	}
	if s.accounts[0].Waited() || s.Waiting != 0 {
		t.Errorf("%d still wait", s.Waiting)
	}
}

// TestEstimateKnowsItsPlace: a request that comes again, and so goes before
// those that came after it, is not refused for a wait that is theirs.
func TestEstimateKnowsItsPlace(t *testing.T) {
	s := newShop(rateOf(3600, 1))
	s.mu.Lock() // the waitlist's timer finds it locked
	defer s.mu.Unlock()
	if !s.Enter(1, s.Needs(1, nil), s.request(0)) {
		t.Fatal("not idle")
	}
	for i := range 100 {
		q := s.request(uint64(10 * (i + 1)))
		q.Lane = []string{"a", "b"}[i%2]
		if s.join(1, q).granted {
			t.Fatal("granted")
		}
	}
	for _, tt := range []struct {
		seq  uint64
		want time.Duration // its turn comes after the other lane's as many
	}{{5, 1}, {205, 21}, {0, 101}, {5000, 101}} {
		q := s.request(tt.seq)
		q.Lane = "a"
		at, _ := Estimate(1, q, s.Needs(1, nil))
		if got := at.Until(1).Round(time.Second); (got - tt.want*time.Second).Abs() > time.Second {
			t.Errorf("order %d: got %v, want about %v", tt.seq, got, tt.want*time.Second)
		}
	}
}

// tide is a meter that has room at times, whatever happens.
type tide struct {
	meter.Open
	turns []time.Duration // room from the first to the second, from the third on, ...
}

func (m tide) At(now meter.Instant, _ int64) meter.Instant {
	for i, t := range m.turns {
		if at := meter.Instant(1 + t); now < at {
			if i%2 == 0 {
				return at
			}
			return now
		}
	}
	return now
}

func (tide) Regain(int64) time.Duration { return time.Minute } // places in waitlist are held

// Who waits for two accounts is let in as soon as both have room, though one
// that had it first may have none when the other gets it.
func TestRoomThatGoesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(tide{turns: []time.Duration{time.Second, 3 * time.Second, 5 * time.Second}}, tide{turns: []time.Duration{4 * time.Second}})
		start, p := time.Now(), &Patience{Ctx: t.Context(), Most: time.Minute, Full: time.Minute, Queue: 1}
		s.mu.Lock()
		now := s.Now()
		w, f, refused := s.Queue(now, s.request(0), s.Needs(now, nil), p)
		s.mu.Unlock()
		if refused != nil {
			t.Fatalf("%+v", refused)
		}
		w.Await(p)
		s.mu.Lock()
		defer s.mu.Unlock()
		if end := s.Finish(s.Now(), w, p); !end.Granted || time.Since(start) != 5*time.Second {
			t.Errorf("waited for %v of %+v: %+v, want 5s", time.Since(start), f, end)
		}
	})
}

// Whatever an account is waited for or paused by keeps its record.
func TestAWaitOrAPauseKeepsARecord(t *testing.T) {
	for name, test := range map[string]struct {
		a    Account
		idle bool
	}{
		"at rest":       {Account{Meter: meter.Open{}}, true},
		"paused":        {Account{Meter: meter.Open{}, Paused: 11}, false},
		"paused by now": {Account{Meter: meter.Open{}, Paused: 10}, true},
		"waited for":    {Account{Meter: meter.Open{}, waitlist: &waitlist{}}, false},
	} {
		if got := test.a.Idle(10); got != test.idle {
			t.Errorf("%s: idle %t", name, got)
		}
	}
}

// A wait is over when it is granted and when it is refused.
func TestWaitersThatAreOver(t *testing.T) {
	for _, w := range []*Waiter{{granted: true}, {refused: &Refusal{}}} {
		if !w.over() {
			t.Errorf("granted %t, %v: not over", w.granted, w.refused)
		}
	}
	if (&Waiter{}).over() {
		t.Error("over before it ended")
	}
}

// stated is a meter that is spent until an instant, for certain.
type stated struct {
	meter.Open
	until meter.Instant
}

func (m stated) At(now meter.Instant, _ int64) meter.Instant { return max(now, m.until) }

func (m stated) ETA(now meter.Instant, _, _ int64) meter.Instant { return max(now, m.until) }

func (m stated) Sure(now, _ meter.Instant, _, _ int64) meter.Instant { return max(now, m.until) }

// When those that wait draw on one more account, only those are asked that it
// dooms, and the others when it is their turn. Then they wait for it in order.
func TestMoreToDrawOn(t *testing.T) {
	const hour = meter.Instant(time.Hour)
	s := newShop(rateOf(1, 1))
	s.mu.Lock() // the timers find it locked
	defer s.mu.Unlock()
	s.Enter(1, s.Needs(1, nil), s.request(0))
	var all []*Waiter
	for i := range 1000 {
		w := s.join(1, s.request(uint64(i+1)))
		if i%100 == 99 {
			w.expires = 2*hour - 1
		}
		all = append(all, w)
	}
	s.accounts = append(s.accounts, &Account{Meter: stated{until: 2 * hour}, Label: &Label{Text: "more"}, Group: &s.group})
	s.asked = 0
	s.Extend(1, &s.group, 2*hour)
	if s.asked > 12 {
		t.Errorf("%d were asked what they draw on, want the 10 that are doomed and those whose turn it is", s.asked)
	}
	for i, w := range all {
		if doomed := i%100 == 99; doomed != (w.refused != nil) || doomed && w.refused.Account != s.accounts[1] {
			t.Fatalf("number %d: refused %+v", i, w.refused)
		}
	}
	s.Mark(s.accounts[0])
	s.Run(1 + hour) // there is room, but not at the new account
	if all[0].granted || !s.accounts[1].Waited() {
		t.Error("the first went without what it draws on now")
	}
	s.Mark(s.accounts[1])
	s.Run(2 * hour)
	if !all[0].granted || all[1].granted {
		t.Errorf("the first is granted: %t, the second: %t", all[0].granted, all[1].granted)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// When an account has changed, those that wait for it are planned anew at once.
func TestThoseWhoWaitArePlannedAnew(t *testing.T) {
	slow := rateOf(1, 1)
	s := newShop(slow)
	s.mu.Lock() // the timers find it locked
	defer s.mu.Unlock()
	s.Enter(1, s.Needs(1, nil), s.request(0))
	first, second := s.join(1, s.request(1)), s.join(1, s.request(2))
	s.Run(1)
	slow.Change(1, meter.NewRate(meter.Spec{Limit: 2, Per: time.Hour, Burst: 2, Unit: "requests"}))
	s.Replan(1, &s.group)
	if !first.granted || second.granted {
		t.Errorf("at a limit of two instead of one, the first is granted: %t, the second: %t", first.granted, second.granted)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// One that may not wait hears when it could go after all that do, unless only an event
// makes room for these.
func TestBehindIsAfterAllThatWait(t *testing.T) {
	const hour = meter.Instant(time.Hour)
	s := newShop(rateOf(1, 1))
	s.mu.Lock() // the timers find it locked
	defer s.mu.Unlock()
	needs := s.Needs(1, nil)
	if got := Behind(1, 1, needs); got != 1 {
		t.Errorf("where nobody waits: in %v, want now", got.Until(1))
	}
	s.Enter(1, needs, s.request(0))
	for i := range 3 {
		s.join(1, s.request(uint64(i+1)))
	}
	if got, want := Behind(1, 1, needs), 1+4*hour; got != want {
		t.Errorf("behind three: in %v, want %v", got.Until(1), want.Until(1))
	}
	if got := Behind(1, 1+9*hour, needs); got != 1+9*hour {
		t.Errorf("where another time is known: in %v, want that", got.Until(1))
	}
	full := newShop(&meter.InFlight{Limit: 1})
	full.mu.Lock()
	defer full.mu.Unlock()
	full.Enter(1, full.Needs(1, nil), full.request(0))
	full.join(1, full.request(1))
	if got := Behind(1, 1, full.Needs(1, nil)); got != 1 {
		t.Errorf("where only an event makes room: in %v, want now, as no time is known", got.Until(1))
	}
}

// until is room for everybody from an instant on.
type until struct {
	meter.Open
	at meter.Instant
}

func (u *until) At(now meter.Instant, _ int64) meter.Instant     { return max(now, u.at) }
func (u *until) ETA(now meter.Instant, _, _ int64) meter.Instant { return max(now, u.at) }
func (u *until) Regain(int64) time.Duration                      { return time.Hour } // nobody makes room for others here

// A waiter that waits for itself again, while it stood in another waitlist, is
// woken when it need no longer.
func TestAWaiterIsWokenWhenItWaitsForItselfAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, alone := &until{}, &until{}
		s := newShop(limit)
		q := s.request(1)
		q.Alone = &Account{Meter: alone, Label: s.accounts[0].Label}
		at := func(change func(now meter.Instant)) {
			s.Lock()
			defer s.Unlock()
			now := s.Now()
			change(now)
			s.Run(now)
		}
		var w *Waiter
		at(func(now meter.Instant) {
			alone.at, limit.at = now.Add(time.Second), now.Add(time.Minute)
			w = s.join(now, q)
		})
		time.Sleep(2 * time.Second) // now it waits for the limit
		at(func(now meter.Instant) {
			alone.at, limit.at = now.Add(time.Second), now
			s.Mark(s.accounts[0])
		})
		time.Sleep(2 * time.Second)
		at(func(meter.Instant) {
			if !w.granted {
				t.Error("it still waits")
			}
		})
	})
}

// A waiter that waits for itself goes on doing so when it draws on more accounts than before.
func TestAWaiterForItselfThatDrawsOnMore(t *testing.T) {
	const minute = meter.Instant(time.Minute)
	limit, alone := &until{}, &until{at: minute}
	s := newShop(limit)
	q := s.request(1)
	q.Alone = &Account{Meter: alone, Label: s.accounts[0].Label}
	s.mu.Lock() // the timers find it locked
	defer s.mu.Unlock()
	w := s.join(1, q)
	s.Extend(1, &s.group, 1)
	s.Mark(q.Alone)
	s.Run(2)
	if w.granted || !q.Alone.Waited() {
		t.Fatal("it does not wait any more")
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	s.Mark(q.Alone)
	if s.Run(minute); !w.granted {
		t.Error("it still waits")
	}
}

// The order of arrival is strict where time stands still, follows it where it
// passes, and goes on when domains are joined.
func TestArrivalsAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDomains()
		a, b := d.New(), d.New()
		last := uint64(0)
		next := func(e *Domain) {
			t.Helper()
			e = e.Lock()
			defer e.Unlock()
			if n := e.Arrive(e.Now()); n <= last {
				t.Errorf("%d after %d", n, last)
			} else {
				last = n
			}
		}
		for range 1000 {
			next(a)
		}
		time.Sleep(time.Millisecond)
		next(b)
		time.Sleep(time.Millisecond)
		for range 1000 {
			next(a)
		}
		Join(a, b)
		next(b)
		next(a)
	})
}
