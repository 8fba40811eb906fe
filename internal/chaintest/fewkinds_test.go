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

// A fewKinds is a random host that refuses some of its kinds of request, which share a window
// or have one each, and says little about for how long. Everything follows from its seed.
type fewKinds struct {
	seed   uint64
	kinds  int
	rate   float64 // calls a second
	status int
	hint   string // of refusals; "mixed": one of these, or the truth
	many   bool   // each request has its own URL, else each kind has one
	limits []*spending

	free, served, bound, refused float64 // calls of kinds without a limit, and those served; calls of others that were served, and refusals
}

// newFewKinds draws a host. A share of its kinds draws on limits, and together says on one.
func newFewKinds(seed uint64, share float64, together bool) *fewKinds {
	dice := rand.New(rand.NewPCG(seed, 81))
	h := &fewKinds{
		seed: seed, kinds: 3 + dice.IntN(18), rate: 2 * math.Pow(10, dice.Float64()), many: dice.IntN(2) == 0,
		status: []int{429, 429, 503}[dice.IntN(3)], hint: []string{"", "1", "2", "mixed"}[dice.IntN(4)],
	}
	n := int(math.Ceil(share * float64(h.kinds)))
	for i := range n {
		demand := h.rate / float64(h.kinds)
		if together {
			demand *= float64(n)
		}
		s := &spending{per: time.Duration(math.Pow(10, 2*dice.Float64()) * float64(time.Second)), hints: 1}
		s.size = int(max(1, demand*(.1+.8*dice.Float64())*s.per.Seconds()))
		if together && i > 0 {
			s = h.limits[0]
		}
		h.limits = append(h.limits, s)
	}
	return h
}

func (h *fewKinds) says(dice *rand.Rand, wait time.Duration) http.Header {
	hint := h.hint
	if hint == "mixed" {
		hint = []string{"", "1", "2", strconv.Itoa(int(math.Ceil(wait.Seconds())))}[dice.IntN(4)]
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
		if kind := kindOf(r.URL.Path); kind < len(h.limits) {
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
			return fmt.Sprint("/", kind, "/", i)
		}
		return fmt.Sprint("/", kind)
	}
	gap := func() time.Duration { return time.Duration(dice.ExpFloat64() / h.rate * 1e9) }
	callForTenMinutes(t, rt, path, gap, func(path string, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case kindOf(path) >= len(h.limits):
			if h.free++; ok {
				h.served++
			}
		case ok:
			h.bound++
		}
	})
}

func kindOf(path string) int {
	first, _, _ := strings.Cut(path[1:], "/")
	kind, _ := strconv.Atoi(first)
	return kind
}

// Which kinds of request a limit binds is found out, however many these are and whether or not
// refusals say for how long: all others are served, and a limit of all is no dearer for that.
func TestWhatBindsSomeKindsHoldsUpNoOther(t *testing.T) {
	for _, test := range []struct {
		name     string
		share    float64 // of the kinds have limits
		together bool
		served   float64 // at least, of calls of the others: .95, .91 and .98 is the least of three runs
		refused  float64 // at most, for each of the first that is served
	}{
		{"some share a limit", .5, true, .85, .6},
		{"most share a limit", .75, true, .65, .6},
		{"some have limits", .5, false, .9, .8},
		{"all share a limit", 1, true, 0, .25},
	} {
		free, served, bound, refused := 0., 0., 0., 0.
		for seed := range uint64(testnet.Drawn(20, 3)) {
			h := newFewKinds(seed, test.share, test.together)
			synctest.Test(t, h.call)
			free, served, bound, refused = free+h.free, served+h.served, bound+h.bound, refused+h.refused
		}
		t.Logf("%s: %.3f of %.0f others served, %.2f refused for each of %.0f", test.name, served/max(1, free), free, refused/bound, bound)
		testnet.Judge(t, served >= test.served*free && refused <= test.refused*bound, "%s: %.3f of others were served, want %v, and %.2f refused for each, want at most %v", test.name, served/max(1, free), test.served, refused/bound, test.refused)
	}
}
