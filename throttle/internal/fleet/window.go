package fleet

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// A Window is how many requests may be under way at a time to a host that does not say
// how many it bears: the processes learn it together. It is a flight whose places nobody
// dates anew, so that a request which takes longer than the patience, like a long poll,
// takes no place from others. How many places there are stands in the store as a mark that
// only rises: the number of the change above what it changed to. Of two changes at once
// the smaller window counts. It is safe for concurrent use.
type Window struct {
	mark *Tally

	mu    sync.Mutex
	word  int64 // the last that was heard or told; zero: none
	level int64 // places taken, as far as was heard
	short bool  // the store had none left, likewise
	heard bool
	trip  time.Duration // see Lasts
}

// A word is, from its lowest bits on, the patience, how large the window is, and the number
// of the change. 2^32 changes of it are below store.MaxAmount.
const (
	patienceBits = 4
	windowBits   = 13
	mostWindow   = 1<<(windowBits-1) - 1

	firstPatience = 3  // of a window that nobody has said more of
	mostPatience  = 12 // longer than an hour
)

// A Width is how many requests may be under way at a time; zero: any number. Shown says
// that the host refused one more. A request that takes longer than Patience takes no place
// any more.
type Width struct {
	Most     int
	Shown    bool
	Patience time.Duration
}

// NewWindow returns a window; id names it in all processes. As long as nothing was heard of
// it, one request may be under way: if one is, the store's refusal says how many may.
func NewWindow(id string) *Window { return &Window{mark: NewTally("f"+id, "mark")} }

// Tallies are those of a Key that has the Window.
func (w *Window) Tallies() []*Tally { return []*Tally{w.mark} }

// wordOf is what the mark says after n changes: a smaller window is the higher word.
func wordOf(n int64, x Width) int64 {
	v := int64(mostWindow) // any number
	if x.Most > 0 {
		v = min(int64(x.Most), mostWindow-1)
	}
	v = (mostWindow - v) << 1
	if x.Shown {
		v |= 1
	}
	e := int64(math.Ceil(math.Log2(max(1, x.Patience.Seconds()))))
	return (n<<windowBits|v)<<patienceBits | min(e, mostPatience)
}

// widthOf is what a word says.
func widthOf(word int64) (x Width) {
	if word == 0 {
		return Width{Patience: time.Second << firstPatience}
	}
	x.Patience = time.Second << (word & (1<<patienceBits - 1))
	v := word >> patienceBits & (1<<windowBits - 1)
	x.Shown = v&1 != 0
	if n := mostWindow - v>>1; n < mostWindow {
		x.Most = int(n)
	}
	return x
}

// Width is what was last heard or told, and the word that changes with it; zero: nothing was.
func (w *Window) Width() (x Width, word int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return widthOf(w.word), w.word
}

// Level is how many places all processes had taken when the store was last asked for one,
// and whether none was left.
func (w *Window) Level() (n int, full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := widthOf(w.word)
	return int(w.level), w.short || x.Most > 0 && w.level >= int64(x.Most)
}

// Heard reports whether the store has said how wide w is, if anybody had told it.
func (w *Window) Heard() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heard
}

// limit is the most that may be under way, and for how long they count.
func (w *Window) limit() (most int64, per time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch x := widthOf(w.word); {
	case x.Most > 0:
		return int64(x.Most), x.Patience
	case !w.heard:
		return 1, x.Patience
	default:
		return store.MaxAmount, x.Patience
	}
}

// Lasts notes for about how long a request takes its place.
func (w *Window) Lasts(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trip = d
}

func (w *Window) lasts() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trip
}

// hears takes in how many places are taken, and what the mark says.
func (w *Window) hears(level int64, short bool) {
	w.mark.mu.Lock()
	word := w.mark.count - w.mark.shift
	w.mark.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.level, w.short, w.heard = level, short, true
	w.word = max(w.word, word)
}

// Widen tells all processes that w, which is kept under key, is that wide from now on. No
// request waits for it. The patience is never shortened: the store finds a place again by
// how exactly it is dated, which depends on it.
func (f *Fleet) Widen(key string, w *Window, x Width) {
	w.mu.Lock()
	x.Patience = max(x.Patience, widthOf(w.word).Patience)
	w.word = wordOf(w.word>>(windowBits+patienceBits)+1, x)
	w.mu.Unlock()
	f.Keep(key, w)
}

// Keep tells the store how wide w is, if it knows less: it may have forgotten.
func (f *Fleet) Keep(key string, w *Window) {
	_, word := w.Width()
	w.mark.mu.Lock()
	defer w.mark.mu.Unlock()
	if word == 0 || w.mark.adding || w.mark.known && word <= w.mark.count-w.mark.shift || !f.guard.allows(time.Now()) {
		return
	}
	w.mark.adding = f.start(func(ctx context.Context) { f.lift(ctx, key, w.mark, word) })
}

// Windowed reports whether g draws on a Window.
func (g *Grant) Windowed() bool {
	return g != nil && slices.ContainsFunc(g.q.keys, func(k Key) bool { return k.Window != nil })
}

// Among is how many had a place of a Window when g got its own, itself included; zero: it
// has none.
func (g *Grant) Among() int {
	if g == nil || g.batch == nil {
		return 0
	}
	for i, k := range g.q.keys {
		if k.Window != nil {
			return int(g.batch.booked.Keys[i].Levels[g.q.flight.limit[i]])
		}
	}
	return 0
}
