package chaintest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// A spending is a limit on requests per window, which begins with the first request.
type spending struct {
	size  int
	per   time.Duration
	hints float64 // are so many times too long

	left int
	ends time.Duration
}

// take counts one request, or says how long to wait.
func (s *spending) take(now time.Duration) (wait time.Duration) {
	if now >= s.ends {
		s.left, s.ends = s.size, now+s.per
	}
	if s.left > 0 {
		s.left--
		return 0
	}
	return max(time.Millisecond, time.Duration(float64(s.ends-now)*s.hints))
}

// few says which of a random host's kinds of request draw on limits.
type few struct {
	share  float64 // of the kinds, do
	shared float64 // of these draw on one limit, the others each on one of its own
	below  string  // the path of all; "": each kind has one below the root
	long   bool    // windows last for up to an hour, and refusals say when they end, more or less; else up to 100 s, and they say little
}

// A fewKinds is a random host that refuses some of its kinds of request, or of its URLs.
// Everything follows from its seed.
type fewKinds struct {
	few
	seed   uint64
	kinds  int
	rate   float64 // calls a second
	status int
	hint   string // of refusals; "mixed": one of these, or the truth
	many   bool   // each request has its own URL, else each kind has one
	limits []*spending

	free, served, bound, refused float64 // calls of kinds without a limit, and those served; calls of others that were served, and refusals
}

// newFewKinds draws a host.
func newFewKinds(seed uint64, of few) *fewKinds {
	dice := rand.New(rand.NewPCG(seed, 81))
	h := &fewKinds{
		few: of, seed: seed, kinds: 3 + dice.IntN(18), rate: 2 * math.Pow(10, dice.Float64()), many: dice.IntN(2) == 0 && !of.long,
		status: []int{429, 429, 503}[dice.IntN(3)], hint: []string{"", "1", "2", "mixed"}[dice.IntN(4)],
	}
	n := int(math.Ceil(of.share * float64(h.kinds)))
	together := int(math.Ceil(of.shared * float64(n)))
	for i := range n {
		if i < together {
			h.limits = append(h.limits, h.limit(dice, together))
			h.limits[i] = h.limits[0]
		} else {
			h.limits = append(h.limits, h.limit(dice, 1))
		}
	}
	return h
}

// limit draws the limit of so many kinds, which bears a tenth to nine tenths of their calls, or
// from a hundredth on of those that wait for long.
func (h *fewKinds) limit(dice *rand.Rand, kinds int) *spending {
	s := &spending{per: time.Duration(math.Pow(10, 2*dice.Float64()) * float64(time.Second)), hints: 1}
	bears := .1 + .8*dice.Float64()
	if h.long {
		s.per, s.hints = s.per*36, []float64{.5, .9, 1, 1, 3}[dice.IntN(5)]
		bears = math.Pow(10, -2*dice.Float64())
	}
	s.size = int(max(1, h.rate*float64(kinds)/float64(h.kinds)*bears*s.per.Seconds()))
	return s
}

func (h *fewKinds) says(dice *rand.Rand, wait time.Duration) http.Header {
	hint, truth := h.hint, strconv.Itoa(int(math.Ceil(wait.Seconds())))
	switch {
	case h.long:
		hint = truth
	case hint == "mixed":
		hint = []string{"", "1", "2", truth}[dice.IntN(4)]
	}
	if hint == "" {
		return nil
	}
	return http.Header{"Retry-After": {hint}}
}

// call calls the kinds at random.
func (h *fewKinds) call(t *testing.T) {
	var mu sync.Mutex
	start, dice, said := time.Now(), rand.New(rand.NewPCG(h.seed, 82)), rand.New(rand.NewPCG(h.seed, 83))
	rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
		time.Sleep(roundTrip)
		mu.Lock()
		defer mu.Unlock()
		if kind := h.kindOf(r.URL.Path); kind < len(h.limits) {
			if wait := h.limits[kind].take(time.Since(start)); wait > 0 {
				h.refused++
				return testnet.Answer(r, h.status, h.says(said, wait), nil), nil
			}
		}
		return stub(r)
	}), weir.Config{}))(t)
	path := func(i int) string {
		kind := dice.IntN(h.kinds)
		if h.many {
			return fmt.Sprint(h.below, "/", kind, "/", i)
		}
		return fmt.Sprint(h.below, "/", kind)
	}
	gap := func() time.Duration { return time.Duration(dice.ExpFloat64() / h.rate * 1e9) }
	callForTenMinutes(t, rt, path, gap, func(path string, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case h.kindOf(path) >= len(h.limits):
			if h.free++; ok {
				h.served++
			}
		case ok:
			h.bound++
		}
	})
}

func (h *fewKinds) kindOf(path string) int {
	first, _, _ := strings.Cut(path[len(h.below)+1:], "/")
	kind, _ := strconv.Atoi(first)
	return kind
}

// Which kinds of request a limit binds is found out, however many these are and whether or not
// refusals say for how long: all others are served, and a limit of all is no dearer for that.
// Where refusals ask for long waits, that is so for URLs of one kind as well.
func TestWhatBindsSomeKindsHoldsUpNoOther(t *testing.T) {
	for _, test := range []struct {
		name string
		few
		served  float64 // at least, of calls of the others: .94, .89, .96, 1 and .97 were seen
		refused float64 // at most, for each of the first that is served: a few servers can make most of it, so .64 was seen once where .15 is usual
	}{
		{"some share a limit", few{share: .5, shared: 1}, .85, 1.2},
		{"most share a limit", few{share: .75, shared: 1}, .65, 1.2},
		{"some have limits", few{share: .5}, .9, .8},
		{"all share a limit", few{share: 1, shared: 1}, 0, .25},
		{"some wait for long", few{share: .5, shared: .5, long: true}, .99, .4},
		{"some URLs wait for long", few{share: .5, shared: .5, long: true, below: "/v1/items"}, .94, .4},
	} {
		free, served, bound, refused := 0., 0., 0., 0.
		for seed := range uint64(testnet.Drawn(20, 3)) {
			h := newFewKinds(seed, test.few)
			synctest.Test(t, h.call)
			free, served, bound, refused = free+h.free, served+h.served, bound+h.bound, refused+h.refused
		}
		t.Logf("%s: %.3f of %.0f others served, %.2f refused for each of %.0f", test.name, served/max(1, free), free, refused/bound, bound)
		testnet.Judge(t, served >= test.served*free && refused <= test.refused*bound, "%s: %.3f of others were served, want %v, and %.2f refused for each, want at most %v", test.name, served/max(1, free), test.served, refused/bound, test.refused)
	}
}
