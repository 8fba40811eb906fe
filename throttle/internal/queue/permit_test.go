package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// enters grants one unit of each of these to a request that may not wait; nil: there
// is no room, or others go first.
func (p *play) enters(of ...*queue.Account) *queue.Permit {
	now := p.e.Now()
	q := p.player(now, of...)
	needs := q.Needs(now, nil)
	if !p.e.Enter(now, needs, &q.Request) {
		return nil
	}
	return &queue.Permit{Needs: needs, Granted: now}
}

// waits lets one that draws on these wait for a minute at most.
func (p *play) waits(of ...*queue.Account) *queue.Waiter {
	p.t.Helper()
	now := p.e.Now()
	q := p.player(now, of...)
	w, _, r := p.e.Queue(now, &q.Request, q.Needs(now, nil), minute(context.Background()))
	if r != nil {
		p.t.Fatalf("it may not wait: %+v", r)
	}
	return w
}

func minute(ctx context.Context) *queue.Patience {
	return &queue.Patience{Ctx: ctx, Most: time.Minute, Full: time.Minute, Queue: 100}
}

// left is how many of a's units may be granted.
func (p *play) left(a *queue.Account) int64 { return a.Meter.State(p.e.Now()).Units() }

// What a request holds ends with its headers, its body, its settlement or its loss,
// as the kind of account says; and who waits for it goes at that instant.
func TestWhatEndsAPermit(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(e *queue.Domain, now meter.Instant, p *queue.Permit)
		want [4]int64 // left of the 3 units of each: the rate, what was learned, the places until the headers, and until the body's end
	}{
		{"nothing", func(*queue.Domain, meter.Instant, *queue.Permit) {}, [4]int64{2, 2, 2, 2}},
		{"headers", func(e *queue.Domain, now meter.Instant, p *queue.Permit) { e.Answered(now, p, false) }, [4]int64{2, 2, 3, 2}},
		{"headers without a body", func(e *queue.Domain, now meter.Instant, p *queue.Permit) { e.Answered(now, p, true) }, [4]int64{2, 2, 3, 3}},
		{"headers and the body's end", func(e *queue.Domain, now meter.Instant, p *queue.Permit) {
			e.Answered(now, p, false)
			e.Free(now, p)
			e.Free(now, p)
			e.Answered(now, p, true)
		}, [4]int64{2, 2, 3, 3}},
		{"loss", func(e *queue.Domain, now meter.Instant, p *queue.Permit) { e.Lost(now, p) }, [4]int64{2, 2, 3, 3}},
		{"return", func(e *queue.Domain, now meter.Instant, p *queue.Permit) { e.Return(now, p); e.Return(now, p) }, [4]int64{3, 3, 3, 3}},
		{"a settlement", func(e *queue.Domain, now meter.Instant, p *queue.Permit) {
			e.Settle(now, p, map[string]int64{meter.Requests: 3, "": 3, "other": 3})
		}, [4]int64{0, 2, 2, 2}},
		{"a settlement of nothing", func(e *queue.Domain, now meter.Instant, p *queue.Permit) {
			e.Settle(now, p, map[string]int64{meter.Requests: -3})
		}, [4]int64{3, 2, 2, 2}},
		{"a settlement and a return", func(e *queue.Domain, now meter.Instant, p *queue.Permit) {
			e.Settle(now, p, map[string]int64{meter.Requests: 2, "tokens": 3})
			e.Return(now, p)
		}, [4]int64{3, 3, 3, 3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlay(t)
				rate := p.rate(3, time.Hour)
				learned := p.rate(3, time.Hour)
				learned.Label = &queue.Label{Unit: "tokens", Text: "learned"}
				all := []*queue.Account{rate, learned, p.places(3, true), p.places(3, false)}
				p.e.Lock()
				defer p.e.Unlock()
				permit := p.enters(all...)
				test.end(p.e, p.e.Now(), permit)
				for i, a := range all {
					if got := p.left(a); got != test.want[i] {
						t.Errorf("%s: %d left, want %d", a.Label.Text, got, test.want[i])
					}
				}
			})
		})
	}
}

// An answer dates what a rate counts: from then on for its time. What is lost may
// still be on its way, and counts as if it had no answer.
func TestAnswersDateWhatIsSpent(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(e *queue.Domain, now meter.Instant, p *queue.Permit)
		want time.Duration
	}{
		"answered": {func(e *queue.Domain, now meter.Instant, p *queue.Permit) { e.Answered(now, p, true) }, 10*time.Second + time.Second/2},
		"lost":     {func(e *queue.Domain, now meter.Instant, p *queue.Permit) { e.Lost(now, p) }, 11 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPlay(t)
			a := p.rate(1, 10*time.Second)
			start := time.Now()
			p.e.Lock()
			permit := p.enters(a)
			w := p.waits(a)
			p.e.Unlock()
			time.Sleep(time.Second / 2)
			p.e.Lock()
			test.end(p.e, p.e.Now(), permit)
			p.e.Unlock()
			w.Await(minute(t.Context()))
			if d := time.Since(start); (d - test.want).Abs() > time.Millisecond {
				t.Errorf("%s: the next went after %v, want %v", name, d, test.want)
			}
		})
	}
}

// One that is sent later than it was granted counts from then on.
func TestResumeDatesAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t)
		a, free := p.rate(2, 10*time.Second), p.places(2, false)
		p.e.Lock()
		permit := p.enters(a, free)
		p.e.Unlock()
		time.Sleep(4 * time.Second)
		p.e.Lock()
		defer p.e.Unlock()
		now := p.e.Now()
		permit.Resume(now)
		p.e.Answered(now, permit, false)
		if p.left(a) != 1 || p.left(free) != 1 || p.owed[a] != 1 || permit.Granted != now {
			t.Errorf("%d and %d are left, %d owed", p.left(a), p.left(free), p.owed[a])
		}
		if full := a.Meter.State(now).Full; full != now.Add(10*time.Second) {
			t.Errorf("it is back after %v, want 10 s", full.Until(now))
		}
	})
}

// A request for a part takes as much as there is of all its units, but a place is a
// place; one that has waited takes what there is then.
func TestPartsAreAsLargeAsThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t)
		a, b, place := p.rate(10, time.Second), p.rate(7, time.Second), p.places(9, false)
		p.e.Lock()
		now := p.e.Now()
		part := func(most int64) (*player, []queue.Need) {
			q := p.player(now, a, b, place)
			q.UpTo, q.Held = most, false
			return q, q.Needs(now, nil)[1:] // not the marker, which has units, too
		}
		q, needs := part(5)
		if !p.e.Enter(now, needs, &q.Request) || p.left(a) != 5 || p.left(b) != 2 || p.left(place) != 8 {
			t.Errorf("%d, %d and %d are left, want 5, 2 and 8", p.left(a), p.left(b), p.left(place))
		}
		q, needs = part(5)
		if !p.e.Enter(now, needs, &q.Request) || p.left(a) != 3 || p.left(b) != 0 || p.left(place) != 7 {
			t.Errorf("%d, %d and %d are left, want 3, 0 and 7", p.left(a), p.left(b), p.left(place))
		}
		q, needs = part(1000)
		w, _, _ := p.e.Queue(now, &q.Request, needs, minute(t.Context()))
		p.e.Unlock()
		w.Await(minute(t.Context()))
		p.e.Lock()
		defer p.e.Unlock()
		if p.left(b) != 0 || p.left(a) != 3 {
			t.Errorf("%d and %d are left, want 3 and 0", p.left(a), p.left(b))
		}
	})
}

// One that may not wait goes before those that rank behind it, and before nobody else. To ask whether it would costs nothing.
func TestWhoMayNotWaitMayRankFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t)
		a := p.rate(3, time.Minute)
		p.e.Lock()
		defer p.e.Unlock()
		p.enters(a)
		now := p.e.Now()
		large := p.player(now, a)
		large.units = 3
		p.e.Queue(now, &large.Request, large.Needs(now, nil), &queue.Patience{Ctx: t.Context(), Most: time.Hour, Queue: 9})
		for _, test := range []struct {
			priority int
			want     bool
		}{{0, false}, {-1, false}, {1, true}, {0, false}, {1, true}, {1, false}} {
			q := p.player(now, a)
			q.Priority = test.priority
			needs := q.Needs(now, nil)
			before, waiting := p.owed[a], p.e.Waiting
			passes := p.e.Passes(now, &q.Request, needs)
			if p.owed[a] != before || p.e.Waiting != waiting {
				t.Errorf("to ask costs %d units, %d wait", p.owed[a]-before, p.e.Waiting)
			}
			charged, ok := p.e.Overtake(now, &q.Request, needs)
			if ok != test.want || passes != ok || ok && len(charged) != len(needs) {
				t.Errorf("priority %d: granted %t, foretold %t, want %t; %d of %d needs are charged", test.priority, ok, passes, test.want, len(charged), len(needs))
			}
		}
	})
}
