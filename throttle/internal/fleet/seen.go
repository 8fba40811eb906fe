package fleet

import (
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// heardOf is what the store last said of a key, and when.
type heardOf struct {
	store.Standing
	when  time.Time
	sent  time.Time // the call
	clock int64     // what the store's clock read then, in microseconds; zero: unknown
	ticks ticks
}

// now is what the store's clock should read now; zero: unknown. A process that was suspended
// with its machine finds out by the wall clock how long that was. If the store's clock
// has stepped with that of this machine, nobody finds out.
func (h heardOf) now(now time.Time) int64 {
	if h.clock == 0 {
		return 0
	}
	return h.clock + max(now.Sub(h.sent), now.Round(0).Sub(h.sent.Round(0)), 0).Microseconds()
}

// unheard reports whether k is of another state than h, and the call for d did not say h, because
// it was sent before. The store may have lost h then, and would not hear of it if h were forgotten.
func (h heardOf) unheard(d store.Draw, k store.Standing) bool {
	return h.Gen != k.Gen && len(h.Levels) == ratedLimits(d) && (d.Seen.Gen != h.Gen || d.Seen.At < h.At)
}

// mostKeys is for how many keys it is remembered what the store last said. That is sent with
// later calls, by which a store that has lost its state gets it back; keys that are forgotten
// do not help with that.
const mostKeys = 10000

// recall returns what the store last said of key, if that was about so many limits.
func (f *Fleet) recall(key string, limits int, now time.Time) store.Seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.seen[key]
	if !ok || len(s.Levels) != limits {
		return store.Seen{}
	}
	return store.Seen{Standing: s.Standing, Age: max(0, now.Sub(s.when)), Clock: s.now(now)}
}

// heard remembers what a call said of each key that was sent then. Of two calls at the same
// time, the one that the store served later counts.
func (f *Fleet) heard(b store.Booking, r store.Booked, sent time.Time) {
	now := time.Now()
	if f.remember(b, r, sent, now) {
		f.guard.staggers(now)
	}
}

// remember is heard at now. It reports whether the clock of a key steps again and again.
func (f *Fleet) remember(b store.Booking, r store.Booked, sent, now time.Time) (staggers bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, d := range b.Draws {
		k, clock := r.Keys[i], clockOf(b, r, i)
		old, ok := f.seen[d.Key]
		staggers = old.ticks.hears(clock, sent, now) || staggers
		if ok {
			f.seen[d.Key] = old
		}
		if k.Gen == 0 || !possible(k.At, clock) || ok && (old.Gen == k.Gen && old.At > k.At || old.unheard(d, k)) {
			continue
		}
		for key := range f.seen {
			if ok || len(f.seen) < mostKeys {
				break
			}
			delete(f.seen, key) // any: the map's order is random
		}
		if n := ratedLimits(d); n < len(d.Limits) {
			k.Levels = k.Levels[:n] // tallies remember their own
		}
		if n := slices.IndexFunc(d.Limits, func(l store.Limit) bool { return l.ID == startID }); n >= 0 {
			k.Levels = slices.Clone(k.Levels)
			k.Levels[n] = 0 // a store that loses this count need not heal because of that
		}
		f.seen[d.Key] = heardOf{k, now, sent, clock, old.ticks}
	}
	return staggers
}
