package learn

import (
	"math"
	"slices"
	"sort"
	"time"
)

const (
	// maxEntries is the most entries of a log, which then takes 5 KB. With 128, a Learner takes
	// 7.5 KB on the heap, but servers with plain windows refused 117 requests of a thousand
	// instead of 99.
	maxEntries = 160
	// keptEntries are left when a full log is compacted: compacting passes over all entries, so
	// it must not happen with each request.
	keptEntries = maxEntries * 3 / 4
	// maxEpochs is how many epochs are remembered. What one of them says against a candidate
	// counts the less the more epochs followed it, see replay.weight. A replay has a slot for each.
	maxEpochs = 24
	// leastGrain is the shortest grain, see record. Arrivals are in doubt by twice as much at
	// least, see trips.slack, so a finer log would say no more.
	leastGrain = Instant(time.Millisecond / 4)
)

// An entry of the log is what was sent within a short time, and what became of it. All
// numbers are units, except busy and gone, which are requests.
type entry struct {
	at, last Instant // when the first and the last of them were sent
	under    uint16  // still under way: nothing is known of their answers
	taken    uint16  // accepted
	refused  uint16
	epoch    uint16 // the epoch of the refused ones; zero: none was refused
	against  uint16 // bit i: candidate i had no room for one of them
	busy     uint16 // requests under way when the last of them was sent
	uneven   uint16 // how unevenly they were sent, in quarters of a unit, see unevenWith
	gone     uint8  // so many of busy, or more, were not at the server when the last of them arrived, see left
	theirs   uint8  // which part of busy other processes sent, perhaps later than is assumed; 255 is all
}

// units is how many count at the server. refusedToo says that it counts refused ones, too.
func (r *entry) units(refusedToo bool) float64 {
	n := float64(r.under) + float64(r.taken)
	if refusedToo {
		n += float64(r.refused)
	}
	return n
}

// An epoch is one event: the refusals of requests that were sent before the first of these
// refusals was heard. Only the first of them counts in full, because whoever sent the others
// did not know of it.
type epoch struct {
	id     uint16
	streak uint8   // how many epochs in a row there were without an acceptance between them, with this one
	outage bool    // it stands for a row of refusals that was taken for an outage
	heard  Instant // when the first refusal was heard
	sent   Instant // when the earliest of the refused requests was sent
	hint   Instant // for how long the server asked to wait, the longest of all its refusals; -1: it did not
}

// A record is what a learner remembers: its log and its epochs.
type record struct {
	log    []entry // oldest first, at most maxEntries
	grain  Instant // requests that are sent within this time share an entry
	epochs []epoch // oldest first, at most maxEpochs
	lastID uint16  // of the epochs
	apart  bool    // the next request gets an entry of its own
	cut    bool    // the oldest entries were dropped
	passed uint32  // entries that replays have passed over, so that work can be counted
	since  Instant // the end of the last row that was taken for an outage, see reopened; zero: none was
}

// sent notes a request of n units, sent while busy others were under way, of which other
// processes sent theirs. It returns the request's entry.
func (r *record) sent(now Instant, n, busy, theirs int) *entry {
	if k := len(r.log); k > 0 {
		l := &r.log[k-1]
		if !r.apart && now-l.at < r.grain && l.refused == 0 && l.under < 1<<15 && l.taken < 1<<15 {
			l.last, l.busy, l.theirs, l.gone = max(l.last, now), uint16(busy), part(theirs, busy), 0
			l.under += uint16(n)
			return l
		}
		now = max(now, l.last)
	}
	r.log = append(r.log, entry{at: now, last: now, under: uint16(n), busy: uint16(busy), theirs: part(theirs, busy)})
	return &r.log[len(r.log)-1]
}

// part is n of all, in 255ths.
func part(n, all int) uint8 {
	return uint8(math.MaxUint8 * max(0, min(n, all)) / max(1, all))
}

// find returns the entry of a request that was sent at sent and is still under way; nil: it is
// forgotten.
func (r *record) find(sent Instant) *entry {
	last := r.last(sent)
	for i := last; i >= max(0, last-2); i-- { // neighbours may begin at the same instant
		if r.log[i].under > 0 {
			return &r.log[i]
		}
	}
	return nil
}

// last returns the index of the last entry that begins no later than then; -1: there is none.
func (r *record) last(then Instant) int {
	k := len(r.log)
	for ; k > 0 && k > len(r.log)-8; k-- { // most that are looked for are among the last
		if r.log[k-1].at <= then {
			return k - 1
		}
	}
	return sort.Search(k, func(i int) bool { return r.log[i].at > then }) - 1
}

// refused notes that a request was refused which was sent at sent and has entry l (nil: that is
// forgotten), and reports whether this begins an epoch. hint is as in epoch.
func (r *record) refused(l *entry, now, sent, hint Instant) (begins bool) {
	if k := len(r.epochs); k > 0 && sent < r.epochs[k-1].heard { // it is of an earlier epoch
		e := &r.epochs[k-1]
		for i := k - 2; i >= 0 && sent < r.epochs[i].heard; i-- {
			e = &r.epochs[i]
		}
		e.hint, e.sent = max(e.hint, hint), min(e.sent, sent)
		if l != nil {
			l.epoch = e.id
		}
		return false
	}
	if len(r.epochs) == maxEpochs {
		i := r.dispensable()
		r.epochs = slices.Delete(r.epochs, i, i+1)
	}
	if r.epochs == nil {
		r.epochs = make([]epoch, 0, maxEpochs) // append would take a third more memory
	}
	r.lastID++
	streak := uint8(1)
	if k := len(r.epochs); k > 0 && !r.takenSince(r.epochs[k-1].heard) {
		streak = min(r.epochs[k-1].streak+1, 200) // so that it does not overflow; shutOutFrom is far less
	}
	r.epochs = append(r.epochs, epoch{id: r.lastID, streak: streak, heard: now, sent: sent, hint: hint})
	if l != nil {
		l.epoch = r.lastID
	}
	return true
}

// dispensable is the epoch that is forgotten next: the oldest between two others of its row, as
// these say more of where the limit ends and begins again, or else the oldest. From shutOutFrom on
// those of a row say nothing of a size, so the last one before that is kept, too.
func (r *record) dispensable() int {
	for i := 1; i+1 < len(r.epochs); i++ {
		this, next := r.epochs[i].streak, r.epochs[i+1].streak
		if this > 1 && next > 1 && (next < shutOutFrom || this >= shutOutFrom) {
			return i
		}
	}
	return 0
}

// row is the first epoch of the last row.
func (r *record) row() int {
	i := max(0, len(r.epochs)-1)
	for i > 0 && r.epochs[i].streak > 1 {
		i--
	}
	return i
}

// reopened notes that the request which was sent then ended a row of refusals that no limit
// explains. What came before says something of shapes with a ban alone: others are judged on
// what came since.
func (r *record) reopened(sent Instant) {
	if k := len(r.epochs); k > 0 { // one epoch stands for the whole row
		row := r.row()
		first, heard := &r.epochs[row], r.epochs[k-1].heard
		for i := range r.log {
			if l := &r.log[i]; l.refused > 0 && l.at >= first.heard && l.at < heard {
				l.epoch = first.id
			}
		}
		first.outage, first.heard = true, heard
		r.epochs = r.epochs[:row+1]
	}
	if r.since = sent; len(r.log) > 0 {
		r.since = min(sent, r.log[len(r.log)-1].at)
	}
}

// from is the index of the first entry of the log on which a shape is judged.
func (r *record) from(s *shape) int {
	if s.ban > 0 || r.since == 0 {
		return 0
	}
	return max(0, r.last(r.since))
}

// recent is how many epochs there were since the last row that was taken for an outage.
func (r *record) recent() (n int) {
	for n < len(r.epochs) && r.epochs[len(r.epochs)-1-n].heard >= r.since {
		n++
	}
	return n
}

// unexplained is how much is against shapes that have no ban, for the rows in the log that were
// taken for outages.
func (r *record) unexplained() (x float64) {
	for i := range r.epochs {
		if e := &r.epochs[i]; e.outage && len(r.log) > 0 && e.heard >= r.log[0].at {
			x += otherOdds
		}
	}
	return x
}

// takenSince reports whether a request that was sent at t or later was accepted.
func (r *record) takenSince(t Instant) bool {
	return slices.ContainsFunc(r.log, func(x entry) bool { return x.at >= t && x.taken > 0 })
}

// reopen notes that n units which counted as accepted are under way.
func (r *record) reopen(sent Instant, n int) {
	if i := r.last(sent); i >= 0 {
		x := &r.log[i]
		k := min(x.taken, uint16(n))
		x.taken -= k
		x.under += k
	}
}

// within reports whether a request that was sent at sent is one of those whose refusal would be
// of a known epoch: it was sent before the first refusal of the last one was heard.
func (r *record) within(sent Instant) bool {
	k := len(r.epochs)
	return k > 0 && sent < r.epochs[k-1].heard
}

// A finder finds epochs of a record by the IDs that its log has, from the oldest entry on.
type finder struct {
	epochs []epoch
	known  uint64 // bit x%64: one has ID x, or one that differs by a multiple of 64
	next   int    // the index of the one after the last that was found
}

func (r *record) finder() finder {
	f := finder{epochs: r.epochs}
	for i := range f.epochs {
		f.known |= 1 << (f.epochs[i].id % 64)
	}
	return f
}

// find returns the epoch with that ID; nil: it is forgotten.
func (f *finder) find(id uint16) *epoch {
	if f.known>>(id%64)&1 == 0 {
		return nil
	}
	if f.next >= len(f.epochs) || f.epochs[f.next].id != id {
		f.next = slices.IndexFunc(f.epochs, func(e epoch) bool { return e.id == id })
	}
	if f.next++; f.next == 0 {
		return nil
	}
	return &f.epochs[f.next-1]
}
