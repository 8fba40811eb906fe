package fleet

import (
	"context"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// Add charges units to ts, which are kept under key. It does not wait for the call. What is
// added while a call is under way goes together in the next one. ts must be the same tallies
// in each call that has one of them.
func (f *Fleet) Add(key string, ts []*Tally, units []int64) {
	for i, t := range ts {
		t.add(units[i])
	}
	t := ts[0]
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.adding {
		t.adding = f.start(func(ctx context.Context) { f.add(ctx, key, ts) })
	}
}

// add notes units before the call, as the store may say them in the answer to another one.
func (t *Tally) add(units int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own += units
	t.adds += units
}

func (f *Fleet) add(ctx context.Context, key string, ts []*Tally) {
	for {
		d := store.Draw{Key: key}
		for i, t := range ts {
			l, _ := t.limit(i)
			t.mu.Lock()
			d.Limits = append(d.Limits, l)
			d.Units = append(d.Units, store.UnitCost{Unit: t.unit, First: t.adds, All: t.adds})
			t.adds = 0
			if i == 0 && d.Units[0].All == 0 || ctx.Err() != nil {
				t.adding = false
				t.mu.Unlock()
				return
			}
			t.mu.Unlock()
		}
		begin := time.Now()
		r, err := f.store.Book(ctx, store.Booking{Force: true, Draws: []store.Draw{d}})
		f.guard.heard(err, time.Since(begin), false)
		for i, t := range ts {
			if err == nil {
				t.heard(r.Keys[0], r.Keys[0].Levels[i], 0, begin)
			} else {
				t.gave(d.Units[i].All)
			}
		}
	}
}

// Raise raises mark, which is kept under key, so that all processes know that the count of t
// may go up to n; if t is nil, n is another number. A mark is not lowered until the store
// counts from zero again; if several processes raise it, the highest value stays. Raise does
// not wait for the call.
func (f *Fleet) Raise(key string, t, mark *Tally, n int64) {
	if t != nil {
		t.mu.Lock()
		n -= t.shift
		t.mu.Unlock()
	}
	mark.mu.Lock()
	defer mark.mu.Unlock()
	if mark.adding || !f.guard.allows(time.Now()) || mark.known && n <= mark.count-mark.shift {
		return
	}
	mark.adding = f.start(func(ctx context.Context) { f.lift(ctx, key, mark, n) })
}

// lift raises mark to n, as the store counts it.
func (f *Fleet) lift(ctx context.Context, key string, mark *Tally, n int64) {
	defer func() {
		mark.mu.Lock()
		mark.adding = false
		mark.mu.Unlock()
	}()
	for ctx.Err() == nil { // it is repeated if others have raised the mark meanwhile
		l, level := mark.limit(0)
		l.Size = float64(n)
		more := n - int64(level)
		if more <= 0 {
			return
		}
		d := store.Draw{Key: key, Limits: []store.Limit{l}, Units: []store.UnitCost{{Unit: mark.unit, First: more, All: more}}}
		begin := time.Now()
		r, err := f.store.Book(ctx, store.Booking{Draws: []store.Draw{d}})
		f.guard.heard(err, time.Since(begin), false)
		if err != nil {
			return
		}
		if mark.heard(r.Keys[0], r.Keys[0].Levels[0], 0, begin); r.Keys[0].Levels[0] == level {
			return // others have not raised it: the key is paused
		}
	}
}

// Raised is how far mark says that the count of t may go.
func (t *Tally) Raised(mark *Tally) (n int64, known bool) {
	mark.mu.Lock()
	n, known = mark.count-mark.shift, mark.known
	mark.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	return n + t.shift, known && t.known && n > 0
}

// Number is what mark says if it was raised without a tally.
func (mark *Tally) Number() (n int64, known bool) {
	mark.mu.Lock()
	defer mark.mu.Unlock()
	n = mark.count - mark.shift
	return n, mark.known && n > 0
}
