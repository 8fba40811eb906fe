package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// A trial is one check of a Setup. What is not as it should be ends it: then its methods
// panic with a failure, which do returns.
type trial struct {
	Setup
	ctx   context.Context
	where string // of a table's step; "": of none
}

type failure struct{ err error }

// do runs c and returns what failed.
func (c check) do(s Setup) (err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			err = f.err
		default:
			panic(f)
		}
	}()
	c.run(trial{Setup: s, ctx: context.Background()})
	return nil
}

// check ends the trial with err, unless that is nil.
func (t trial) check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func (t trial) failf(format string, args ...any) { t.check(fmt.Errorf(format, args...)) }

// book books b with one of the handles.
func (t trial) book(handle int, b store.Booking) store.Booked {
	r, err := t.Stores[handle].Book(t.ctx, b)
	if err != nil {
		t.failf("%sBook: %w", t.where, err)
	}
	return r
}

// want is book, and compares outcome and wait.
func (t trial) want(handle int, b store.Booking, o store.Outcome, wait time.Duration) store.Booked {
	r := t.book(handle, b)
	if r.Outcome != o || r.Wait != wait {
		t.failf("%sBook of %d to %d on %q: got outcome %d after %v, want %d after %v", t.where,
			b.Draws[0].Units[0].First, b.Draws[0].Units[0].All, b.Draws[0].Key, r.Outcome, r.Wait, o, wait)
	}
	return r
}

// A step is one want of a table.
type step struct {
	advance time.Duration
	handle  int
	book    store.Booking
	outcome store.Outcome
	wait    time.Duration
}

func (t trial) walk(steps []step) {
	for i, st := range steps {
		if st.advance != 0 {
			t.Advance(st.advance)
		}
		t.where = fmt.Sprintf("step %d: ", i)
		t.want(st.handle, st.book, st.outcome, st.wait)
	}
}

func (t trial) refund(handle int, f store.Refund) {
	if err := t.Stores[handle].Refund(t.ctx, f); err != nil {
		t.failf("Refund: %w", err)
	}
}

// tell tells n of key k.
func (t trial) tell(handle int, n store.News) {
	if err := t.Stores[handle].Tell(t.ctx, "k", n); err != nil {
		t.failf("Tell: %w", err)
	}
}
