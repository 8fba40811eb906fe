package attribution_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A host is a server whose answers an Overload hears, one at a time.
type host struct {
	attribution.Overload
	now    meter.Instant
	served float64
	waits  time.Duration // of its callers
}

func newHost() *host { return &host{now: zero, waits: time.Hour} }

// good is called n times at equal distances, and serves all.
func (h *host) good(n int, during time.Duration) {
	for range n {
		h.now = h.now.Add(during / time.Duration(n))
		h.Heard(h.now, h.now-1, attribution.Reply{})
		h.Served(h.now, h.now-1)
		h.served++
	}
}

// bad says 503 once, and reports whether that is put down to a limit.
func (h *host) bad(after time.Duration) bool {
	h.now = h.now.Add(after)
	limited := h.Limited(h.now, attribution.Past{Since: zero, Served: h.served, Waits: h.waits})
	h.Heard(h.now, h.now-1, attribution.Reply{Busy: true, Bare: true})
	return limited
}

// badFor says 503 so often, and returns with which answer that was put down to a
// limit; zero: with none.
func (h *host) badFor(n int) (limited int) {
	for i := range n {
		if h.bad(time.Millisecond) {
			return i + 1
		}
	}
	return 0
}

// A host that is new and then refuses all is a limiter, after fewer refusals the more it
// has served, because it is the less likely to be bad luck. One that was called for long
// is down, and one that served nobody is no limiter.
func TestWhoBeginsToLimit(t *testing.T) {
	for _, test := range []struct {
		served  int
		during  time.Duration
		refused int // until it is called a limiter; zero: it is not by a hundred
	}{
		{0, 0, 0}, {1, sec / 2, 15}, {3, sec / 2, 7}, {5, sec / 2, 6}, {20, sec / 2, 3}, {1000, sec / 2, 5},
		{20, 4990 * time.Millisecond, 3}, {20, 5 * time.Second, 0}, {1000, time.Hour, 0},
	} {
		h := newHost()
		h.good(test.served, test.during)
		if got := h.badFor(100); got != test.refused {
			t.Errorf("%d served in %v: a limiter by refusal %d, want %d", test.served, test.during, got, test.refused)
		}
	}
}

// A host that fails at random from the first call on is hardly ever taken for a limiter.
func TestChanceIsSeldomALimit(t *testing.T) {
	for _, p := range []float64{.3, .5, .8} {
		wrong := 0
		for seed := range uint64(200) {
			h, r := newHost(), rand.New(rand.NewPCG(seed, 1))
			limited := false
			for range 450 { // 100 a second
				if r.Float64() >= p {
					h.good(1, 10*time.Millisecond)
				} else {
					limited = h.bad(10*time.Millisecond) || limited
				}
			}
			if limited {
				wrong++
			}
		}
		if wrong > 6 {
			t.Errorf("p = %v: %d of 200 hosts are taken for limiters", p, wrong)
		}
	}
}

// A limiter accepts again, as it did before. If it refuses for far longer than it did so
// far, the host is down; and if it has not refused for ten minutes, nothing is known.
func TestALimiterAcceptsAgain(t *testing.T) {
	for _, test := range []struct {
		name   string
		before time.Duration // the second run
		lasts  time.Duration
		want   bool
	}{
		{"at once", time.Minute, 0, true},
		{"as long as before", time.Minute, 2 * time.Second, true},
		{"as long as a window may last", time.Minute, 12 * time.Second, true},
		{"longer", time.Minute, 12*time.Second + 5, false},
		{"not for ten minutes", attribution.Remembered - 2*time.Second, 0, false},
	} {
		h := newHost()
		if h.good(20, sec/2); h.badFor(100) == 0 || !h.Doubtful() {
			t.Fatal("no limiter")
		}
		h.good(1, 2*time.Second+2)
		if h.Doubtful() {
			t.Errorf("%s: doubtful although it accepted again", test.name)
		}
		h.good(100, test.before)
		if got := h.bad(0) && (test.lasts == 0 || h.bad(test.lasts)); got != test.want {
			t.Errorf("%s: limited %t", test.name, got)
		}
	}
}

// A host that has not accepted again for as long as anybody waits for it is taken to be
// down: then its callers hear so at once.
func TestALimiterAcceptsAgainWhileSomebodyWaits(t *testing.T) {
	for after, want := range map[time.Duration]bool{74 * time.Second: true, 76 * time.Second: false} {
		h := newHost()
		h.waits = 75 * time.Second
		if h.good(20, sec/2); h.badFor(100) == 0 {
			t.Fatal("no limiter")
		}
		if got := h.bad(after); got != want {
			t.Errorf("%v after the first refusal: limited %t", after, got)
		}
	}
}

// An answer to a request that went before those that were refused does not end a run:
// the answers of a flight come in any order.
func TestLateAnswersEndNoRun(t *testing.T) {
	h := newHost()
	h.good(5, sec/2)
	for range 2 {
		h.bad(0)
		h.Served(h.now, h.now-2)
	}
	if got := h.badFor(100); got != 2 {
		t.Errorf("a limiter by refusal %d, want 2: the run began anew", got)
	}
}

// The first good answer after a run that was put down to a limit says that the host is
// back; later ones say nothing new.
func TestTheFirstRunThatEndsIsNews(t *testing.T) {
	h := newHost()
	h.good(20, sec)
	back := func() bool {
		h.now = h.now.Add(time.Second)
		h.Heard(h.now, h.now-1, attribution.Reply{})
		return h.Served(h.now, h.now-1)
	}
	if back() {
		t.Error("back before it was away")
	}
	for run, want := range []bool{true, false} {
		if h.badFor(10) == 0 {
			t.Fatal("no limiter")
		}
		if h.Doubtful() != want {
			t.Errorf("run %d: doubtful %t", run, !want)
		}
		if back() != want {
			t.Errorf("run %d: back %t", run, !want)
		}
		if back() {
			t.Errorf("run %d: back twice", run)
		}
	}
}
