package store_test

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// A name of a state, by which it is known again, has all that makes a difference to what may
// follow, and nothing else: instants are relative to now, what is over is left out, generations
// are numbered in the order in which they are met, and processes may change places.
type namer struct {
	m    *model
	s    *modelState
	now  int64 // by the store's clock
	gens []int64
	old  []int64 // instants longer ago than past, in order
}

// past is for how long what happened makes a difference: a window or what a meter takes to drain,
// of units that were booked a second ahead, and the second that a key is kept longer. Only the
// order of what is older matters.
func (m *model) past() time.Duration {
	in := store.Ahead + 1250*time.Millisecond
	switch m.limit.Kind {
	case store.LogLimit:
		in += m.limit.Per
	case store.MeterLimit:
		in += time.Duration(m.limit.Size / m.limit.Rate * float64(time.Second))
	}
	return in
}

func (n *namer) at(at int64) int64 {
	if rel := at - n.now; rel > -n.m.past().Microseconds() {
		return rel
	}
	i, _ := slices.BinarySearch(n.old, at)
	return int64(i-len(n.old)) - n.m.past().Microseconds()
}

func (n *namer) gen(gen int64) (name int64) {
	if gen == 0 {
		return 0
	}
	i := slices.Index(n.gens, gen)
	if i < 0 {
		i, n.gens = len(n.gens), append(n.gens, gen)
	}
	if gen>>19 != n.s.era {
		return int64(-i - 1)
	}
	return int64(i + 1)
}

func (n *namer) ticks(at int) int64 { return int64(min(n.s.now-at, int(n.m.past()/modelTick))) }

// units are rounded, as they depend on how often a meter was read.
func (n *namer) units(w *word, us ...float64) {
	for _, u := range us {
		w.add(int64(math.Round(u * 1e6)))
	}
}

func (n *namer) ledger(w *word, l store.Ledger) {
	if l.Gen == 0 || l.Idle(time.UnixMicro(n.now)) {
		w.add(0)
		return
	}
	w.add(n.gen(l.Gen), n.at(l.At), max(0, l.Heals-n.now))
	for _, a := range l.Accounts {
		switch n.m.limit.Kind {
		case store.MeterLimit:
			n.units(w, max(0, a.Level-n.m.limit.Rate*float64(max(0, n.now-a.At))/1e6))
			w.add(max(0, a.At-n.now))
		case store.CalendarLimit:
			n.units(w, a.Level)
		default:
			for _, e := range a.Entries {
				if e.At+n.m.limit.Per.Microseconds() > n.now {
					w.add(e.At - n.now)
					n.units(w, e.Units)
				}
			}
		}
	}
}

func (n *namer) standing(w *word, s store.Standing) {
	w.add(n.gen(s.Gen), n.at(s.At))
	n.units(w, s.Levels...)
}

func (n *namer) message(w *word, m modelMessage) {
	w.add(int64(m.kind), n.ticks(m.at))
	w.say(m.era == n.s.era)
	switch m.kind {
	case 'a':
		n.standing(w, m.seen.Standing)
		w.add(min(int64(m.seen.Age/modelTick)+n.ticks(m.at), int64(n.m.past()/modelTick)), n.drift(m.seen.Clock, m.at), b2i(m.at < n.s.stepped))
	case 'r':
		w.add(int64(m.reply.Outcome), int64(m.reply.Wait), n.drift(m.reply.Ready-m.reply.Wait.Microseconds(), m.at))
		n.standing(w, m.reply.Keys[0])
		w.add(n.gen(m.seen.Gen), n.at(m.seen.At))
	case 'b':
		w.add(n.gen(m.refund.Gen), n.at(m.refund.At), n.at(m.refund.Ready))
		n.units(w, m.refund.Held...)
	}
}

// drift is how far a clock that read so much at that tick is from where it should be. If it is
// further ahead than the store's clock ever steps, that makes no difference.
func (n *namer) drift(clock int64, at int) int64 {
	if clock == 0 || n.m.still {
		return -1
	}
	return min(clock-modelStart.Add(time.Duration(at)*modelTick).UnixMicro(), modelStep*modelTick.Microseconds())
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// sent is what may still count of what was sent.
func (n *namer) sent(w *word) {
	sent := slices.Sorted(slices.Values(n.s.sent))
	w.add(int64(n.s.unknown))
	level, last := 0.0, 0
	for _, at := range sent {
		switch {
		case at > n.s.now || n.m.limit.Kind == store.LogLimit && time.Duration(n.s.now-at)*modelTick < n.m.limit.Per:
			w.add(int64(at - n.s.now))
		case n.m.limit.Kind == store.MeterLimit:
			level = max(0, level-n.m.limit.Rate*(time.Duration(at-last)*modelTick).Seconds()) + 1
			last = at
		case n.m.limit.Kind == store.CalendarLimit:
			level++
		}
	}
	if n.m.limit.Kind == store.MeterLimit {
		level = max(0, level-n.m.limit.Rate*(time.Duration(n.s.now-last)*modelTick).Seconds())
	}
	w.add(math.MaxInt32)
	n.units(w, level)
}

// name names s with its processes in that order.
func (n *namer) name(order []int) word {
	var w word
	s := n.s
	n.gens = n.gens[:0]
	w.say(s.kept, s.fault, s.lost, s.told, s.stepped > 0)
	if s.stepped > 0 {
		w.add(n.ticks(s.stepped))
	}
	n.sent(&w)
	n.ledger(&w, s.ledger)
	n.ledger(&w, s.saved)
	for _, i := range order {
		p := s.procs[i]
		n.standing(&w, p.seen)
		w.add(n.ticks(p.heard), n.drift(p.clock, p.told), int64(p.asks))
		w.say(p.spoke)
		var ms []modelMessage
		for _, m := range s.flight {
			if m.from == i {
				ms = append(ms, m)
			}
		}
		slices.SortFunc(ms, func(a, b modelMessage) int {
			return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.at, b.at), cmp.Compare(a.seen.At, b.seen.At), cmp.Compare(a.refund.At, b.refund.At),
				cmp.Compare(a.reply.Outcome, b.reply.Outcome), cmp.Compare(a.reply.Ready, b.reply.Ready))
		})
		w.add(int64(len(ms)))
		for _, m := range ms {
			n.message(&w, m)
		}
	}
	return w
}

// orders are those in which two or three processes may be named.
var orders = map[int][][]int{2: {{0, 1}, {1, 0}}, 3: {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}}

// hash is that of the name of s. Of ten million states two have the same by chance one time in
// a hundred thousand.
func (m *model) hash(seed maphash.Seed, s modelState) uint64 {
	n := &namer{m: m, s: &s, now: s.time().UnixMicro()}
	n.olden()
	var first word
	for _, o := range orders[len(s.procs)] {
		if w := n.name(o); first == nil || bytes.Compare(w, first) < 0 {
			first = w
		}
	}
	return maphash.Bytes(seed, first)
}

// olden finds the instants that are longer ago than past.
func (n *namer) olden() {
	note := func(ats ...int64) {
		for _, at := range ats {
			if at-n.now <= -n.m.past().Microseconds() {
				n.old = append(n.old, at)
			}
		}
	}
	note(n.s.ledger.At, n.s.saved.At)
	for _, p := range n.s.procs {
		note(p.seen.At)
	}
	for _, m := range n.s.flight {
		note(m.seen.At, m.refund.At, m.refund.Ready)
		for _, k := range m.reply.Keys {
			note(k.At)
		}
	}
	slices.Sort(n.old)
	n.old = slices.Compact(n.old)
}

// exhaust visits all states after s, each once, until nothing is left. It returns their number,
// and the first path that breaks the limit; "": none does.
func (m *model) exhaust(s modelState) (states int, broken string) {
	seed := maphash.MakeSeed()
	seen := map[uint64]struct{}{m.hash(seed, s): {}}
	var visit func(s modelState, path []string) bool
	visit = func(s modelState, path []string) (goes bool) {
		if err := m.check(s); err != nil {
			broken = err.Error() + ", after " + joined(path)
			return false
		}
		goes = true
		m.steps(s, func(next modelState, step string) {
			if !goes {
				return
			}
			key := m.hash(seed, next)
			if _, ok := seen[key]; ok {
				return
			}
			seen[key] = struct{}{}
			goes = visit(next, append(path, step))
		})
		return goes
	}
	visit(s, nil)
	return len(seen), broken
}
