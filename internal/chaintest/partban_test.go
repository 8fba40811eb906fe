package chaintest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// bannedBases is a host that serves five requests a second to each base below /v0, and shuts a base
// out for half a minute that is asked for more: from the first refusal on or, if again, from the
// last. It says no more than that it refuses. Everything follows from its seed.
type bannedBases struct {
	again         bool
	bases, calls  int
	lost, refused int
	windows       map[string]*windowed
	shut          map[string]time.Time
	mu            sync.Mutex
	dice          *rand.Rand
}

func newBannedBases(seed uint64, again bool) *bannedBases {
	dice := rand.New(rand.NewPCG(seed, 94))
	n := 3 + dice.IntN(8)
	return &bannedBases{again: again, bases: n, calls: n * 5 * 120, windows: map[string]*windowed{}, shut: map[string]time.Time{}, dice: dice}
}

func (h *bannedBases) serves(base string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	w, now := h.windows[base], time.Now()
	if w == nil {
		w = &windowed{kind: []string{"first", "log", "clock"}[len(h.windows)%3], size: 5, per: time.Second}
		h.windows[base] = w
	}
	banned := now.Before(h.shut[base])
	if !banned && w.draw(now) {
		return true
	}
	if h.refused++; !banned || h.again {
		h.shut[base] = now.Add(30 * time.Second)
	}
	return false
}

func (h *bannedBases) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	way := time.Duration(10+h.dice.IntN(60)) * time.Millisecond
	h.mu.Unlock()
	if err := testnet.Wait(r.Context(), way); err != nil {
		return nil, err
	}
	ok := h.serves(r.URL.Path[:len("/v0/app0")])
	if err := testnet.Wait(r.Context(), way); err != nil {
		return nil, err
	}
	if !ok {
		return testnet.Answer(r, 429, nil, nil), nil
	}
	return stub(r)
}

// run lets 64 callers call one base each, or if mixed any base, one call after the other.
func (h *bannedBases) run(t *testing.T, rt http.RoundTripper, mixed bool) {
	left := h.calls
	var wg sync.WaitGroup
	for who := range 64 {
		wg.Go(func() {
			for {
				h.mu.Lock()
				base := who % h.bases
				if mixed {
					base = h.dice.IntN(h.bases)
				}
				path := fmt.Sprintf("/v0/app%d/tasks/rec%d", base, h.dice.IntN(1000))
				left--
				done := left < 0
				h.mu.Unlock()
				if done {
					return
				}
				resp, err := rt.RoundTrip(get(t, "http://h"+path))
				if err == nil {
					resp.Body.Close()
				}
				if err != nil || resp.StatusCode != 200 {
					h.mu.Lock()
					h.lost++
					h.mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
}

// What a part of a kind has found about bans is the first guess for the others, so that not each of
// them is shut out for as long. Whether callers have bases of their own or not, fewer are lost.
func TestPartsLearnBansFromOneAnother(t *testing.T) {
	for _, test := range []struct {
		again bool
		lost  float64 // of all calls, at most: .03 and .07 to .1 were seen; .16 to .18 where parts learn alone and each refusal begins the ban anew
	}{{false, .05}, {true, .155}} {
		lost, refused, calls, took := 0, 0, 0, time.Duration(0)
		for i := range uint64(testnet.Drawn(20, 2)) {
			synctest.Test(t, func(t *testing.T) {
				h, begun := newBannedBases(i/2, test.again), time.Now()
				h.run(t, must(weir.New(h, weir.Config{}))(t), i%2 == 1)
				lost, refused, calls, took = lost+h.lost, refused+h.refused, calls+h.calls, took+time.Since(begun)
			})
		}
		words := fmt.Sprintf("anew %t: of %d calls %.3f were lost, and %.3f refused for each, in %v", test.again, calls, float64(lost)/float64(calls), float64(refused)/float64(calls), took)
		t.Log(words)
		testnet.Judge(t, float64(lost) <= test.lost*float64(calls), "%s; want at most %v", words, test.lost)
	}
}
