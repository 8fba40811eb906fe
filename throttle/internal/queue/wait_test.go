package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// Those who wait behind the one that is first in a waitlist are in its backlog, wherever they wait.
func TestABacklogIsOfAllWhoComeToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t)
		a, b := p.rate(1, time.Second), p.rate(1, 10*time.Second)
		p.e.Lock()
		p.enters(a)
		for range 5 {
			p.waits(a, b) // for a alone
		}
		p.e.Unlock()
		time.Sleep(1500 * time.Millisecond) // one has gone, and the next one is short of b, too
		p.e.Lock()
		defer p.e.Unlock()
		if n, all := b.Queued(), b.Backlog(); n != 1 || all != 4 {
			t.Errorf("%d wait for it, with a backlog of %d, want 1 and 4", n, all)
		}
		if a, b := p.rate(1, time.Second).Backlog(), a.Backlog(); a != 0 || b != 4 {
			t.Errorf("backlogs of %d and %d, want none and 4", a, b)
		}
		for _, w := range p.waiting() {
			p.e.Abandon(p.e.Now(), w)
		}
	})
}

// A wait that certainly cannot end in time is refused at once, for what it says.
func TestWaitsThatCannotEndInTime(t *testing.T) {
	const trip = 300 * time.Millisecond
	for _, test := range []struct {
		name     string
		most     time.Duration
		deadline time.Duration // zero: none
		trip     time.Duration
		queue    int
		refused  bool
		want     queue.Refusal // Account is not compared
	}{
		{"in time", 10 * time.Second, 0, 0, 9, false, queue.Refusal{}},
		{"too long", 10*time.Second - 1, 0, 0, 9, true, queue.Refusal{Reason: queue.Late, Wait: 10 * time.Second, Bound: 10*time.Second - 1}},
		{"not at all", -1, 0, 0, 9, true, queue.Refusal{Reason: queue.Late, Wait: 10 * time.Second}},
		{"its deadline is before", time.Minute, 9 * time.Second, 0, 9, true, queue.Refusal{Reason: queue.Late, Wait: 10 * time.Second, Deadline: true, Bound: 9 * time.Second}},
		{"its deadline is later", time.Minute, 11 * time.Second, 0, 9, false, queue.Refusal{}},
		{"its answer would be late", time.Minute, 10*time.Second + trip - 1, trip, 9, true, queue.Refusal{Reason: queue.Late, Wait: 10 * time.Second, Deadline: true, Bound: 10*time.Second - 1}},
		{"its answer would be in time", time.Minute, 10*time.Second + trip, trip, 9, false, queue.Refusal{}},
		{"too many wait", time.Minute, 0, 0, 0, true, queue.Refusal{Reason: queue.Full, Wait: 10 * time.Second}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlay(t)
				a := p.rate(1, 10*time.Second)
				p.e.Lock()
				defer p.e.Unlock()
				now := p.e.Now()
				p.e.Answered(now, p.enters(a), true)
				ctx := t.Context()
				if test.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.deadline)
					defer cancel()
				}
				q := p.player(now, a)
				w, f, got := p.e.Queue(now, &q.Request, q.Needs(now, nil), &queue.Patience{Ctx: ctx, Most: test.most, Full: test.most, Trip: test.trip, Queue: test.queue})
				if (got != nil) != test.refused {
					t.Fatalf("refused: %+v, want it %t", got, test.refused)
				}
				if !test.refused {
					if f.At != now.Add(10*time.Second) || f.Account != a || f.Ahead != 0 || a.Reason(now) != "1/10s is spent" {
						t.Errorf("it was told %+v", f)
					}
					p.e.Abandon(now, w)
					return
				}
				if got.Account != a {
					t.Errorf("for %q", got.Account.Label.Text)
				}
				if got.Account = nil; test.most < 0 {
					got.Bound = 0
				}
				if *got != test.want {
					t.Errorf("got %+v, want %+v", *got, test.want)
				}
			})
		})
	}
}

// fickle is a meter that says that there is no room as often as it is told to, and then
// that there is.
type fickle struct {
	meter.Open
	times *int
}

func (f fickle) At(now meter.Instant, _ int64) meter.Instant {
	if *f.times--; *f.times >= 0 {
		return now.Add(250 * time.Millisecond)
	}
	return now
}

// Who waits for a meter that changes its word within an instant is let through soon
// after it has room.
func TestNobodyWaitsForEverForAFickleMeter(t *testing.T) {
	for times := range 6 {
		synctest.Test(t, func(t *testing.T) {
			p, began := newPlay(t), time.Now()
			a := &queue.Account{Meter: fickle{times: &times}, Label: &queue.Label{Text: "fickle"}, Group: &p.group}
			p.e.Lock()
			now := p.e.Now()
			q := p.player(now, a)
			patience := &queue.Patience{Ctx: t.Context(), Most: time.Hour, Full: time.Hour, Queue: 9}
			w, _, refusal := p.e.Queue(now, &q.Request, q.Needs(now, nil), patience)
			p.e.Unlock()
			if refusal != nil {
				t.Fatal(refusal)
			}
			w.Await(patience)
			if waited := time.Since(began); waited > 2*time.Second {
				t.Errorf("it waited for %v", waited)
			}
		})
	}
}

// Those that cannot wait for a pause are refused when it begins, also if they wait for
// another account, behind one that does not draw on what is paused.
func TestAPauseRefusesThoseThatWaitForSomethingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t)
		a, spent := p.rate(100, 10*time.Second), p.rate(1, 10*time.Second)
		p.e.Lock()
		p.enters(a, spent)
		first, behind := p.waits(spent), p.waits(a, spent)
		now := p.e.Now()
		p.e.Pause(now, a, now.Add(2*time.Minute), now.Add(2*time.Minute), "told so")
		p.e.Unlock()
		start := time.Now()
		behind.Await(minute(t.Context()))
		if waited := time.Since(start); waited != 0 {
			t.Errorf("one that draws on what is paused is refused after %v, want at once", waited)
		}
		first.Await(minute(t.Context()))
		p.e.Lock()
		defer p.e.Unlock()
		if got := p.e.Finish(p.e.Now(), behind, minute(t.Context())); got.Refused == nil || got.Refused.Reason != queue.Paused || got.Refused.Account != a {
			t.Errorf("one that draws on what is paused: %+v", got)
		}
		if got := p.e.Finish(p.e.Now(), first, minute(t.Context())); !got.Granted || p.e.Now().Sub(now) != 11*time.Second { // ten, and the transit
			t.Errorf("one that does not: %+v after %v, want a grant after 11 s", got, p.e.Now().Sub(now))
		}
	})
}

// If a grant and the deadline come at the same moment, no account is the reason, and least of
// all a pause that there is not.
func TestAGrantAtTheDeadlineIsNoPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t)
		a := p.rate(1, 10*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 11*time.Second)
		defer cancel()
		p.e.Lock()
		p.enters(a)
		now := p.e.Now()
		q := p.player(now, a)
		w, _, r := p.e.Queue(now, &q.Request, q.Needs(now, nil), minute(ctx))
		p.e.Unlock()
		if r != nil {
			t.Fatalf("%+v", r)
		}
		time.Sleep(11 * time.Second) // ten, and the transit
		synctest.Wait()
		p.e.Lock()
		defer p.e.Unlock()
		if end := p.e.Finish(p.e.Now(), w, minute(ctx)); end.Late == nil || end.Late.Reason != queue.Late || end.Late.Account != nil {
			t.Errorf("%+v, late %+v", end, end.Late)
		}
	})
}

// What can never go is refused, also when that turns out while it waits.
func TestWhatCanNeverGoIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t)
		a, small, none := p.rate(5, time.Hour), p.rate(2, time.Hour), p.rate(1, time.Hour)
		needs := []queue.Need{{Account: none}, {Account: a, N: 5}, {Account: small, N: 3}}
		if got := queue.NeverFits(1, needs); got != small {
			t.Errorf("%v never fits", got)
		}
		if got := queue.NeverFits(1, needs[:2]); got != nil {
			t.Errorf("%v never fits, and it does", got.Label.Text)
		}
		p.e.Lock()
		defer p.e.Unlock()
		p.enters(a)
		now := p.e.Now()
		q := p.player(now, a)
		for range 4 {
			p.enters(a)
		}
		w, _, r := p.e.Queue(now, &q.Request, q.Needs(now, nil), &queue.Patience{Ctx: t.Context(), Most: 2 * time.Hour, Queue: 1})
		if r != nil {
			t.Fatalf("%+v", r)
		}
		small.Meter = meter.NewRated(1, meter.NewRate(meter.Spec{Limit: 0, Per: time.Hour, Burst: 1}), nil)
		q.accounts = append(q.accounts, small)
		p.e.Redraw(now, &p.group)
		if end := p.e.Finish(now, w, minute(t.Context())); end.Refused == nil || end.Refused.Reason != queue.Unfit || end.Refused.Account != small {
			t.Errorf("%+v", end.Refused)
		}
	})
}

// It is known on which accounts without a group somebody draws who waits, also for
// another.
func TestAccountsThatThoseWhoWaitDrawOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t)
		own, pool := p.rate(1, 20*time.Second), p.rate(1, time.Second)
		pool.Group = nil
		p.e.Lock()
		defer p.e.Unlock()
		if p.e.Drawn(pool) {
			t.Error("drawn on where nobody waits")
		}
		p.enters(own)
		w := p.waits(own, pool)
		p.waits(own)
		if !p.e.Drawn(pool) || pool.Waited() {
			t.Errorf("drawn on: %t, want it; waited for: %t", p.e.Drawn(pool), pool.Waited())
		}
		p.e.Abandon(p.e.Now(), w)
		if p.e.Drawn(pool) {
			t.Error("drawn on once it has gone")
		}
	})
}

// One that waits for a place holds up nobody at the gate, however many pauses it has
// lived through: what passes there meanwhile takes nothing from it.
func TestAGateIsHeldForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t)
		taken, free := p.places(1, false), p.places(1, false)
		p.e.Lock()
		p.enters(taken)
		now := p.e.Now()
		q := p.player(now, taken)
		p.e.Queue(now, &q.Request, q.Needs(now, nil), &queue.Patience{Ctx: t.Context(), Most: time.Hour, Queue: 9})
		p.e.Unlock()
		for range 40 {
			p.e.Lock()
			now := p.e.Now()
			p.e.Pause(now, &p.group.Gate, now.Add(time.Second), 0, "a pause")
			w := p.waits(free)
			p.e.Unlock()
			start := time.Now()
			w.Await(minute(t.Context()))
			if d := time.Since(start); (d - time.Second).Abs() > time.Millisecond {
				t.Fatalf("it waited for %v, the pause was 1s", d)
			}
			p.e.Lock()
			p.e.Abandon(p.e.Now(), w)
			p.e.Unlock()
		}
	})
}

// A grant that nobody waits for any more is given back, whether it awaits an answer
// or not.
func TestAGrantOfOneWhoHasGoneIsGivenBack(t *testing.T) {
	for _, held := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newPlay(t)
			a := p.rate(1, time.Second)
			p.e.Lock()
			p.e.Answered(p.e.Now(), p.enters(a), true)
			now := p.e.Now()
			q := p.player(now, a)
			q.Held = held
			w, _, _ := p.e.Queue(now, &q.Request, q.Needs(now, nil), minute(t.Context()))
			if a.Reason(now) != "1/1s is spent" {
				t.Errorf("it waits as %q", a.Reason(now))
			}
			p.e.Unlock()
			time.Sleep(3 * time.Second / 2)
			p.e.Lock()
			defer p.e.Unlock()
			if got := p.left(a); got != 0 {
				t.Errorf("held %t: %d left, want none as it was granted", held, got)
			}
			p.e.Abandon(p.e.Now(), w)
			if got := p.left(a); got != 1 {
				t.Errorf("held %t: %d left once it has gone, want 1", held, got)
			}
		})
	}
}
