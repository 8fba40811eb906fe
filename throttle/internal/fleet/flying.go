package fleet

import "slices"

// flying is what this process has under way of what draws on a key, in all queues.
type flying struct {
	n      int64    // requests
	lands  int      // calls that give some back
	queues []*queue // that wait for these
}

// flyingOf changes what is noted of k.
func (f *Fleet) flyingOf(k Key, change func(*flying)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.flying[k.ID]
	if x == nil {
		x = new(flying)
		f.flying[k.ID] = x
	}
	if change(x); x.n == 0 && x.lands == 0 {
		delete(f.flying, k.ID)
	}
}

// fly notes that n requests more are under way.
func (f *Fleet) fly(keys []Key, n int64) {
	for _, k := range keys {
		if k.bound() > 0 {
			f.flyingOf(k, func(x *flying) { x.n += n })
		}
	}
}

// flies is how many requests that draw on k are under way in this process.
func (f *Fleet) flies(k Key) (n int64) {
	f.flyingOf(k, func(x *flying) { n = x.n })
	return n
}

// Flies is how many requests that draw on k are under way in this process.
func (f *Fleet) Flies(k Key) int { return int(f.flies(k)) }

// lands notes that a call is on its way that gives back some of k.
func (f *Fleet) lands(k Key) { f.flyingOf(k, func(x *flying) { x.lands++ }) }

// landed notes that it has ended and gave n units of that limit back, and lets those
// ask that waited for it. No queue is locked.
func (f *Fleet) landed(k Key, limit int, n int64) {
	var queues []*queue
	f.flyingOf(k, func(x *flying) {
		x.lands--
		queues, x.queues = x.queues, nil
		if s, ok := f.seen[k.ID]; ok && limit < len(s.Levels) {
			s.Levels = slices.Clone(s.Levels) // those of a batch are its own
			s.Levels[limit] = max(0, s.Levels[limit]-float64(n))
			f.seen[k.ID] = s
		}
	})
	for _, q := range queues {
		q.ring()
	}
}

// awaits reports whether all that may be under way is, as far as was heard, and a call on
// its way gives some of it back: q is pumped when it has ended.
func (f *Fleet) awaits(q *queue) (awaits bool) {
	for i, k := range q.keys {
		if k.bound() == 0 {
			continue
		}
		f.flyingOf(k, func(x *flying) {
			s, at := f.seen[k.ID], q.flight.limit[i]
			if x.lands > 0 && at < len(s.Levels) && s.Levels[at] >= float64(k.bound()) {
				awaits = true
				if !slices.Contains(x.queues, q) {
					x.queues = append(x.queues, q)
				}
			}
		})
	}
	return awaits
}
