package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// unsent is news of a key for which a call is under way.
type unsent struct {
	pending store.News // what the next call tells
	waiting bool       // there is something in pending
}

// Tell tells the other processes n, through the store. It does not wait for the call. One call
// per key is under way at a time; what is told meanwhile goes together in the next one. If the
// store cannot be asked, n is dropped.
func (f *Fleet) Tell(key string, n store.News) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.news[key]
	if w != nil {
		w.pending, w.waiting = join(w.pending, n), true
		return
	}
	if f.closed || len(f.news) >= mostKeys || !f.guard.allows(time.Now()) {
		return
	}
	f.news[key] = &unsent{}
	f.calls.Add(1)
	go f.telling(key, n)
}

func (f *Fleet) telling(key string, n store.News) {
	defer f.calls.Done()
	for {
		ctx, cancel := context.WithTimeout(f.ctx, f.patience())
		begin := time.Now()
		err := f.store.Tell(ctx, key, n)
		cancel()
		f.guard.heard(err, time.Since(begin), false)
		f.mu.Lock()
		w := f.news[key]
		if err != nil || !w.waiting {
			delete(f.news, key)
			f.mu.Unlock()
			return
		}
		n = w.pending
		w.pending, w.waiting = store.News{}, false
		f.mu.Unlock()
	}
}

// join adds later news to n, except for refills. It asks a ledger what both say, because all
// stores keep news as a ledger does.
func join(n, later store.News) store.News {
	at := time.UnixMicro(0) // any time will do
	l := store.Ledger{}.AfterNews(at, n).AfterNews(at, later)
	micros := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	n = store.News{Resume: n.Resume || later.Resume, Pause: micros(l.Pause), Guess: micros(l.Guess)}
	for _, s := range l.Stated {
		n.Stated = append(n.Stated, store.Stated{ID: s.ID, Unit: s.Unit, Remaining: int64(s.Remaining), Reset: micros(s.Ends)})
	}
	return n
}

// Pause tells the other processes of a pause; a time that has passed ends the pause. sooner
// says that the pause before would have ended later: it is ended with the same news, because
// the store keeps the later end.
func (f *Fleet) Pause(key string, until time.Time, sooner bool) {
	d := time.Until(until)
	f.Tell(key, store.News{Resume: sooner || d <= 0, Pause: min(max(0, d), store.MaxHorizon)})
}

// Refill gives units of k back for all processes, as a user asked: of each rate as many as of
// returns for its unit. It waits for the store. After an error it is not known whether they were
// given back.
func (f *Fleet) Refill(k Key, of func(unit string) int64) error {
	ls, units := storeLimits(k.Rates, f.c, time.Now())
	var n store.News
	for _, l := range ls {
		n.Refill = append(n.Refill, store.Refill{Kind: l.Kind, ID: l.ID, Units: min(of(units[l.Unit]), store.MaxAmount)})
	}
	begin := time.Now()
	done := make(chan error, 1)
	if !f.start(func(ctx context.Context) {
		err := f.store.Tell(ctx, k.ID, n)
		f.guard.heard(err, time.Since(begin), false)
		done <- err
	}) {
		return errors.New("after Close")
	}
	if err := <-done; err != nil {
		return fmt.Errorf("the store has not confirmed it: %w", err)
	}
	f.again(k.ID)
	return nil
}

// again forgets what was heard of a key, so that requests which were told to wait ask again.
func (f *Fleet) again(id string) {
	f.mu.Lock()
	delete(f.seen, id)
	var qs []*queue
	for _, q := range f.queues {
		if slices.ContainsFunc(q.keys, func(k Key) bool { return k.ID == id }) {
			qs = append(qs, q)
		}
	}
	f.mu.Unlock() // before q.mu is locked: the order is q.mu, f.mu
	for _, q := range qs {
		q.mu.Lock()
		now := time.Now()
		q.notBefore, q.refused = now, shortage{}
		q.pump(now)
		q.mu.Unlock()
	}
}
