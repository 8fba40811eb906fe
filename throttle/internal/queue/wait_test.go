package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

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
					if f.At != now.Add(10*time.Second) || f.Account != a || f.Ahead != 0 || f.Why != "1/10s is spent" {
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

// guess is a meter that lets nobody go, but not for certain.
type guess struct{ meter.Open }

func (guess) At(now meter.Instant, _ int64) meter.Instant     { return now.Add(time.Hour) }
func (guess) ETA(now meter.Instant, _, _ int64) meter.Instant { return now.Add(time.Hour) }

// What is not certain refuses nobody before its time is over: MaxWait, the deadline,
// or when no answer can come before the deadline.
func TestWaitsThatAreGuessedEndWhenTheyAreOver(t *testing.T) {
	for _, test := range []struct {
		name           string
		deadline, trip time.Duration
		cancel         time.Duration
		want           time.Duration
		late, refused  bool
	}{
		{"the time it may wait", 0, 0, 0, time.Minute, false, true},
		{"a deadline after that", 2 * time.Minute, 0, 0, time.Minute, false, true},
		{"a deadline before that", 10 * time.Second, 0, 0, 10 * time.Second, true, false},
		{"an answer that would be late", 10 * time.Second, time.Second, 0, 9 * time.Second, false, true},
		{"a caller who goes", 0, 0, 5 * time.Second, 5 * time.Second, false, false},
		{"a caller with a deadline who goes", 10 * time.Second, 0, 5 * time.Second, 5 * time.Second, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlay(t)
				a := p.account(guess{}, &queue.Label{Text: "a guess"})
				ctx, cancel := context.WithCancel(t.Context())
				if test.deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, test.deadline)
				}
				defer cancel()
				if test.cancel > 0 {
					time.AfterFunc(max(1, test.cancel), cancel)
				}
				start, pa := time.Now(), minute(ctx)
				pa.Trip = test.trip
				p.e.Lock()
				now := p.e.Now()
				q := p.player(now, a)
				w, f, r := p.e.Queue(now, &q.Request, q.Needs(now, nil), pa)
				p.e.Unlock()
				if r != nil || f.Account != a || f.At != now.Add(time.Hour) {
					t.Fatalf("refused %+v, told %+v", r, f)
				}
				w.Await(pa)
				took := time.Since(start)
				p.e.Lock()
				defer p.e.Unlock()
				end := p.e.Finish(p.e.Now(), w, pa)
				if end.Granted || (took-test.want).Abs() > time.Millisecond || (end.Late != nil) != test.late {
					t.Errorf("ended after %v: %+v, want %v", took, end, test.want)
				}
				if r := end.Late; r != nil && (r.Account != a || !r.Deadline || r.Wait != time.Hour) {
					t.Errorf("late: %+v", r)
				}
				if r := end.Refused; test.refused && (r == nil || r.Account != a || r.Wait != time.Hour || r.Bound.Round(time.Second) != test.want) {
					t.Errorf("refused: %+v", r)
				}
				if p.e.Waiting != 0 || a.Waited() {
					t.Error("it still waits")
				}
			})
		})
	}
}

// A pause refuses those that cannot wait for it, as far as it is certain, also those
// that wait already, and says its reason. Others wait until it is over.
func TestPausesRefuseWhatIsCertain(t *testing.T) {
	for _, test := range []struct {
		name    string
		gate    bool
		sure    time.Duration
		refused bool
	}{
		{"certain", false, 2 * time.Minute, true},
		{"guessed", false, 0, false},
		{"certain for less", false, time.Minute, false},
		{"certain for all of the group", true, 2 * time.Minute, true},
		{"guessed for all of the group", true, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlay(t)
				a, other := p.rate(1, 10*time.Second), p.rate(1, 10*time.Second)
				p.e.Lock()
				p.enters(a)
				w := p.waits(a)
				at := a
				if test.gate {
					at = &p.group.Gate
				}
				now := p.e.Now()
				p.e.Pause(now, at, now.Add(2*time.Minute), now.Add(test.sure), "told so")
				end := func(w *queue.Waiter) queue.Ending {
					p.e.Unlock()
					w.Await(minute(t.Context()))
					p.e.Lock()
					return p.e.Finish(p.e.Now(), w, minute(t.Context()))
				}
				q := p.player(now, a)
				late, _, r := p.e.Queue(now, &q.Request, q.Needs(now, nil), minute(t.Context()))
				if (r != nil) != test.refused || r != nil && (r.Reason != queue.Paused || r.Account != at || r.Why != "told so" || r.Wait != 2*time.Minute) {
					t.Errorf("a newcomer is refused: %+v, want it %t", r, test.refused)
				}
				if waits := p.enters(other) == nil; waits != test.gate {
					t.Errorf("one that draws on another account waits: %t", waits)
				}
				start := time.Now()
				got := end(w)
				if r := got.Refused; r == nil || (time.Since(start) == 0) != test.refused || r.Reason != queue.Paused || r.Account != at || r.Why != "told so" {
					t.Errorf("one that waits is refused after %v: %+v", time.Since(start), r)
				}
				if !test.refused {
					p.e.Pause(p.e.Now(), at, p.e.Now(), 0, "") // it ends early
					if got := end(late); !got.Granted && time.Since(start) < time.Minute {
						t.Errorf("after the pause: %+v", got)
					}
				}
				p.e.Unlock()
			})
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

// doubter is a request for which what was learned of others may not hold.
type doubter struct {
	*player
	until meter.Instant // Barred
}

func (d doubter) Doubts() bool { return true }

func (d doubter) Barred(now meter.Instant) (meter.Instant, *queue.Account) {
	return max(now, d.until), d.accounts[0]
}

// For one that has doubts only what is configured is certain, and what bars itself.
func TestDoubtsLeaveWhatIsConfigured(t *testing.T) {
	for _, test := range []struct {
		name       string
		configured bool
		barred     time.Duration
		refused    bool
	}{{"learned", false, 0, false}, {"configured", true, 0, true}, {"barred", false, time.Hour, true}} {
		synctest.Test(t, func(t *testing.T) {
			p := newPlay(t)
			a := p.rate(1, time.Hour)
			if !test.configured {
				a.Label = &queue.Label{Unit: meter.Requests, Text: "learned"}
			}
			p.e.Lock()
			defer p.e.Unlock()
			p.enters(a)
			now := p.e.Now()
			for _, doubts := range []bool{true, false} {
				q := p.player(now, a)
				if doubts {
					q.By = doubter{q, now.Add(test.barred)}
				}
				w, _, r := p.e.Queue(now, &q.Request, q.Needs(now, nil), minute(t.Context()))
				if want := test.refused || !doubts; (r != nil) != want {
					t.Errorf("%s: with doubts %t refused %+v, want it %t", test.name, doubts, r, want)
				}
				if w != nil {
					p.e.Abandon(now, w)
				}
			}
		})
	}
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
			w, f, _ := p.e.Queue(now, &q.Request, q.Needs(now, nil), minute(t.Context()))
			if f.Why != "1/1s is spent" {
				t.Errorf("it waits as %q", f.Why)
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
