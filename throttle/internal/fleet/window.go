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
// how many it can serve: the processes learn it together. It is like InFlight, but its units
// are not renewed. So a request that takes longer than the patience, like a long poll, takes
// no place from others. How many places there are is a word in the store: a mark that is only
// raised. Its upper bits are the number of the change, so a later change is a larger word; of
// two changes at the same time the smaller window is. It is safe for concurrent use.
type Window struct {
	mark *Tally // the word

	mu    sync.Mutex
	word  int64         // the largest word that was heard or told; zero: none was
	level int64         // places taken, as far as was heard
	short bool          // the store had no place left, as far as was heard
	heard bool          // see Heard
	trip  time.Duration // see Lasts
}

// A word has, from its lowest bit on, the patience, the size of the window, and the number
// of the change. 2^32 changes fit below store.MaxAmount.
const (
	patienceBits = 4                     // for exponents up to mostPatience
	windowBits   = 13                    // for the size, and one bit for Shown
	mostWindow   = 1<<(windowBits-1) - 1 // stands for any number of requests

	firstPatience = 3  // the exponent of the patience before anybody told one: 8 s
	mostPatience  = 12 // the largest exponent: more than an hour
)

// A Width is how many requests may be under way at a time.
type Width struct {
	Most     int           // zero: any number
	Shown    bool          // the host refused one request more
	Patience time.Duration // for how long a request counts, rounded up to a power of two seconds
}

// NewWindow returns a window; id names it in all processes. Until the store has said how wide
// it is, one request may be under way.
func NewWindow(id string) *Window { return &Window{mark: NewTally("f"+id, "mark")} }

// Tallies are what Key.Tallies must be in a Key that has the Window.
func (w *Window) Tallies() []*Tally { return []*Tally{w.mark} }

// wordOf is the word for x as change n. For a smaller window it is larger.
func wordOf(n int64, x Width) int64 {
	v := int64(mostWindow)
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

// widthOf is the Width that a word stands for.
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

// Width is the width that was last heard or told, and its word, which changes when the width
// does; a word of zero: none was.
func (w *Window) Width() (x Width, word int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return widthOf(w.word), w.word
}

// Level is how many places all processes had when the store was last asked for one, and
// whether none was left.
func (w *Window) Level() (n int, full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := widthOf(w.word)
	return int(w.level), w.short || x.Most > 0 && w.level >= int64(x.Most)
}

// Heard reports whether the store has answered how wide w is, even if nobody has told it.
func (w *Window) Heard() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heard
}

// limit is how many requests may be under way, and for how long each counts.
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

// Lasts notes about how long a request has its place; see flight.seldom.
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

// hears notes how many places are taken, and reads the mark.
func (w *Window) hears(level int64, short bool) {
	w.mark.mu.Lock()
	word := w.mark.count - w.mark.shift
	w.mark.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.level, w.short, w.heard = level, short, true
	w.word = max(w.word, word)
}

// Widen tells all processes that w, which is kept under key, has the width x from now on. It
// does not wait for the call. The patience is never shortened, because the grain of the Log
// depends on it, by which the store finds units that are given back.
func (f *Fleet) Widen(key string, w *Window, x Width) {
	w.mu.Lock()
	x.Patience = max(x.Patience, widthOf(w.word).Patience)
	w.word = wordOf(w.word>>(windowBits+patienceBits)+1, x)
	w.mu.Unlock()
	f.Keep(key, w)
}

// Keep tells the store how wide w is, if it has an older word or has forgotten it. It does not
// wait for the call.
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

// Among is how many requests had a place of the Window when g got its own, including g; zero:
// g has none.
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
