package fleet

import (
	"context"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// Add charges units to ts, which are kept under key. No request waits for it; what comes
// while a call is on its way is told together by the next. ts always stand together.
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

// add notes units that the store may tell of before it answers.
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
				t.heard(r.Keys[0], r.Keys[0].Levels[i], 0)
			} else {
				t.gave(d.Units[i].All)
			}
		}
	}
}
