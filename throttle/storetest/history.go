package storetest

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// histories runs the same generated operations on the store and on ledgers.
func histories(t trial) { t.check(Histories(t.ctx, t.Setup, 1, 400)) }

// Histories runs steps generated operations on s and on store.Ledger, and
// returns the first difference. The same seed makes the same history, which
// does not need a fresh state.
func Histories(ctx context.Context, s Setup, seed uint64, steps int) error {
	h := &history{r: rand.New(rand.NewPCG(seed, 8)), ledgers: make(map[string]store.Ledger), prefix: fmt.Sprintf("h%d ", seed)}
	for i := range steps {
		if err := h.step(ctx, s); err != nil {
			return fmt.Errorf("seed %d, step %d: %w", seed, i, err)
		}
	}
	return nil
}

type history struct {
	r       *rand.Rand
	prefix  string
	ledgers map[string]store.Ledger
	last    [2]store.Booking
	booked  [2]store.Booked
	when    [2]time.Time
	saved   map[string]store.Ledger
	restore func() // of saved
}

func (h *history) step(ctx context.Context, s Setup) error {
	h.advance(s)
	st := s.Stores[h.r.IntN(len(s.Stores))]
	switch n := h.r.IntN(20); {
	case n < 15:
		return h.book(ctx, s, st)
	case n < 17:
		return h.refund(ctx, s, st)
	case n == 17 && s.Save != nil:
		h.saveOrRestore(s)
		return nil
	default:
		return h.tell(ctx, s, st)
	}
}

func (s Setup) era() int64 {
	if s.Era == nil {
		return 0
	}
	return s.Era()
}

func (h *history) ledger(s Setup, key string) store.Ledger {
	l := h.ledgers[key]
	l.Era = s.era()
	return l
}

func (h *history) saveOrRestore(s Setup) {
	if h.restore == nil || h.r.IntN(2) == 0 {
		h.saved, h.restore = maps.Clone(h.ledgers), s.Save()
		return
	}
	h.restore()
	h.ledgers = maps.Clone(h.saved)
	maps.DeleteFunc(h.ledgers, func(_ string, l store.Ledger) bool { return l.Idle(s.Now()) })
}

// advance moves the clock, mostly a little, sometimes past everything, and
// never to within two milliseconds of a state's end, as some stores expire in
// milliseconds.
func (h *history) advance(s Setup) {
	switch n := h.r.IntN(200); n % 10 {
	case 0, 1, 2, 3:
		if n < 14 && s.Back {
			most := []time.Duration{time.Minute, 2 * time.Second}[n%2]
			s.Advance(-time.Duration(h.r.Int64N(int64(most))).Truncate(time.Microsecond))
		}
	case 9:
		s.Advance(time.Duration(h.r.Int64N(int64(90 * time.Second))).Truncate(time.Microsecond))
	default:
		s.Advance(time.Duration(h.r.Int64N(int64(400 * time.Millisecond))).Truncate(time.Microsecond))
	}
	for again := true; again; {
		again = false
		for _, l := range h.ledgers {
			if d := l.Expires - s.Now().UnixMicro(); l.Gen != 0 && d > -2000 && d < 2000 {
				s.Advance(5 * time.Millisecond)
				again = true
			}
		}
	}
	for key, l := range h.ledgers {
		if l.Idle(s.Now()) {
			delete(h.ledgers, key) // for good, should the clock step back
		}
	}
}

func (h *history) key() string { return h.prefix + string('a'+rune(h.r.IntN(4))) }

// usual reports whether key mostly has what most keys have: the same meters, of one
// unit. Stores may have a shorter way for them.
func (h *history) usual(key string) bool { return strings.HasSuffix(key, "d") && h.r.IntN(100) > 0 }

func (h *history) draw(s Setup, key string) store.Draw {
	limits := []store.Limit{
		{ID: "m", Kind: store.MeterLimit, Size: 10, Rate: 7.3},
		{ID: "safe", Kind: store.MeterLimit, Size: 4, Rate: 16.0 / 3, Credit: 16},
		{ID: "bucket", Kind: store.MeterLimit, Size: 6, Rate: 3, Credit: -1, Unit: 1},
		{ID: "log", Kind: store.LogLimit, Size: 12, Per: 2 * time.Second},
		{ID: "grain", Kind: store.LogLimit, Size: 300, Per: 20 * time.Second, Grain: 300 * time.Millisecond, Unit: 1},
		{ID: "cal", Kind: store.CalendarLimit, Size: 60, Per: 10 * time.Second, Ends: time.Unix(1_700_000_003, 0), Unit: h.r.IntN(2)},
	}
	h.r.Shuffle(len(limits), func(i, j int) { limits[i], limits[j] = limits[j], limits[i] })
	d := store.Draw{Key: key, Limits: limits[:h.r.IntN(4)], Units: []store.UnitCost{h.cost("requests", 4), h.cost("tokens", 9)}}
	if h.usual(key) {
		d.Units = d.Units[:1]
		d.Limits = []store.Limit{{ID: "u", Kind: store.MeterLimit, Size: 12, Rate: 7.3}, {ID: "v", Kind: store.MeterLimit, Size: 8, Rate: 16.0 / 3, Credit: 16}}
	}
	if h.r.IntN(6) == 0 { // a memory, true or not
		d.Seen = store.Seen{Age: time.Duration(h.r.IntN(3e6)) * time.Microsecond, Standing: store.Standing{
			Gen: s.Now().UnixMicro() - int64(h.r.IntN(1e7)), At: s.Now().UnixMicro() - int64(h.r.IntN(1e6)),
			Paused: time.Duration(h.r.IntN(2e6)) * time.Microsecond * time.Duration(h.r.IntN(2)),
		}}
		if h.r.IntN(2) == 0 {
			d.Seen.Gen = h.ledgers[key].Gen
		}
		if h.r.IntN(2) == 0 {
			d.Seen.Clock = s.Now().UnixMicro() - int64(h.r.IntN(3e6))
		}
		for range d.Limits {
			d.Seen.Levels = append(d.Seen.Levels, float64(h.r.IntN(15)))
		}
	}
	return d
}

func (h *history) cost(unit string, most int) store.UnitCost {
	first := int64(h.r.IntN(most))
	return store.UnitCost{Unit: unit, First: first, All: first * int64(1+h.r.IntN(4))}
}

func (h *history) book(ctx context.Context, s Setup, st store.Store) error {
	b := store.Booking{MaxWait: time.Duration(h.r.IntN(3)) * 700 * time.Millisecond, Force: h.r.IntN(25) == 0}
	b.Draws = append(b.Draws, h.draw(s, h.key()))
	if k := h.key(); h.r.IntN(4) == 0 && k != b.Draws[0].Key {
		b.Draws = append(b.Draws, h.draw(s, k))
	}
	for i := range b.Draws {
		h.move(s, &b.Draws[i])
	}
	var ls []store.Ledger
	for _, d := range b.Draws {
		ls = append(ls, h.ledgers[d.Key])
	}
	for i := range ls {
		ls[i].Era = s.era()
	}
	next, wantR := store.Book(s.Now(), ls, b)
	for i, l := range next {
		if err := l.Validate(); err != nil {
			return fmt.Errorf("Book %+v leads to a ledger of which %w", b, err)
		}
		h.ledgers[b.Draws[i].Key] = l
	}
	got, err := st.Book(ctx, b)
	if err != nil {
		return fmt.Errorf("Book: %w", err)
	}
	if err := differ(got, wantR); err != nil {
		return fmt.Errorf("Book %+v: %w", b, err)
	}
	if got.Outcome == store.BookedOne || got.Outcome == store.BookedAll {
		i := h.r.IntN(2)
		h.last[i], h.booked[i], h.when[i] = b, got, s.Now()
	}
	return nil
}

// move lets units of an earlier booking count from another time: of the same
// key, as a store is told, or of another.
func (h *history) move(s Setup, d *store.Draw) {
	i := h.r.IntN(8)
	if i >= len(h.last) || len(h.last[i].Draws) == 0 {
		return
	}
	for j, o := range h.last[i].Draws {
		k := h.booked[i].Keys[j]
		if len(d.Moved) > 0 || o.Key != d.Key && h.r.IntN(2) == 0 {
			continue
		}
		age := time.Duration(h.r.Int64N(1 + max(0, int64(s.Now().Sub(h.when[i]))))).Truncate(time.Microsecond)
		m := store.Moved{Gen: k.Gen, From: h.booked[i].Ready, Age: age}
		for i := range d.Units {
			m.Units = append(m.Units, int64(h.r.IntN(1+int(o.Units[min(i, len(o.Units)-1)].All))))
		}
		d.Moved = append(d.Moved, m)
	}
}

// differ allows a level its last bits: machines may fuse a multiplication and
// an addition.
func differ(got, want store.Booked) error {
	if got.Outcome != want.Outcome || got.Draw != want.Draw || got.Limit != want.Limit || got.Wait != want.Wait || got.Ready != want.Ready || len(got.Keys) != len(want.Keys) {
		return fmt.Errorf("got %+v, want %+v", got, want)
	}
	for i, k := range want.Keys {
		g := got.Keys[i]
		if g.Gen != k.Gen || g.At != k.At || g.Paused != k.Paused || len(g.Levels) != len(k.Levels) {
			return fmt.Errorf("key %d: got %+v, want %+v", i, g, k)
		}
		for j := range k.Levels {
			if math.Abs(g.Levels[j]-k.Levels[j]) > 1e-9*(1+math.Abs(k.Levels[j])) {
				return fmt.Errorf("key %d, level %d: got %v, want %v", i, j, g.Levels[j], k.Levels[j])
			}
		}
	}
	return nil
}

func (h *history) refund(ctx context.Context, s Setup, st store.Store) error {
	i := h.r.IntN(2)
	b, r := h.last[i], h.booked[i]
	if len(b.Draws) == 0 {
		return nil
	}
	h.last[i] = store.Booking{}
	k := h.r.IntN(len(b.Draws))
	var units []int64
	for _, u := range b.Draws[k].Units {
		units = append(units, u.First)
	}
	f := r.Refund(b, k, units, nil)
	h.ledgers[f.Key] = h.ledger(s, f.Key).AfterRefund(s.Now(), f)
	if err := st.Refund(ctx, f); err != nil {
		return fmt.Errorf("Refund: %w", err)
	}
	return nil
}

func (h *history) tell(ctx context.Context, s Setup, st store.Store) error {
	key := h.key()
	var n store.News
	switch h.r.IntN(5) {
	case 0:
		n.Pause = time.Duration(h.r.IntN(2e6)) * time.Microsecond
	case 1:
		n.Guess = time.Duration(h.r.IntN(2e6)) * time.Microsecond
	case 2:
		n.Resume = true
		n.Pause = time.Duration(h.r.IntN(2)*h.r.IntN(2e6)) * time.Microsecond
		n.Guess = time.Duration(h.r.IntN(2)*h.r.IntN(2e6)) * time.Microsecond
	default:
		ids := []string{"core", "search", "x y", "", "1", "2", "3", "4", "5", "6"}
		n.Stated = []store.Stated{{ID: ids[h.r.IntN(len(ids))], Unit: []string{"requests", "tokens"}[h.r.IntN(2)],
			Remaining: int64(h.r.IntN(40)), Reset: time.Duration(h.r.IntN(6e6)) * time.Microsecond}}
	}
	if h.r.IntN(4) == 0 {
		for _, l := range h.draw(s, key).Limits {
			n.Refill = append(n.Refill, store.Refill{Kind: l.Kind, ID: l.ID, Units: h.r.Int64N(12)})
		}
	}
	h.ledgers[key] = h.ledger(s, key).AfterNews(s.Now(), n)
	if err := st.Tell(ctx, key, n); err != nil {
		return fmt.Errorf("Tell: %w", err)
	}
	return nil
}
