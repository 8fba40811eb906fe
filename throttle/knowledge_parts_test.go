package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// fivePerPart is a server that serves of each part five calls in any 10 s, and says of others no more than
// that it refuses them.
type fivePerPart struct {
	part    func(r *http.Request) string
	mu      sync.Mutex
	served  map[string][]time.Time
	refused int
}

func (s *fivePerPart) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(20 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	p, now := s.part(r), time.Now()
	log := s.served[p]
	if len(log) >= 5 && now.Sub(log[len(log)-5]) < 10*time.Second {
		s.refused++
		return testnet.Answer(r, 429, nil, nil), nil
	}
	if s.served == nil {
		s.served = map[string][]time.Time{}
	}
	s.served[p] = append(log, now)
	return testnet.Answer(r, 200, nil, nil), nil
}

// draws are random numbers below n, for several who draw at a time.
func draws(seed uint64) func(n int) int {
	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(seed, 1))
	return func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return dice.IntN(n)
	}
}

// callParts makes n calls, each until it is served, 24 at a time with pauses between them, to one of so
// many parts by chance. It returns how long that took.
func callParts(t *testing.T, tr *throttle.Transport, draw func(n int) int, n, parts int, path func(part, i int) string) time.Duration {
	start := time.Now()
	var wg sync.WaitGroup
	var turn atomic.Int32
	for range 24 {
		wg.Go(func() {
			for i := int(turn.Add(1)); i <= n; i = int(turn.Add(1)) {
				url := "http://h/" + path(draw(parts), i)
				time.Sleep(time.Duration(draw(3000)) * time.Millisecond)
				for status := 0; status != 200; {
					if resp, err := testnet.Get(t, t.Context(), tr, url); err == nil { // else it waited for MaxWait
						resp.Body.Close()
						status = resp.StatusCode
					}
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// What parts of a kind of request were found to bear, and how they are told apart, outlives a run: the
// next one is refused less than one that starts from nothing, and takes hardly longer.
func TestLimitsOfPartsOutliveRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		path func(p, i int) string
		part func(r *http.Request) string
	}{
		"objects": {
			func(p, i int) string { return fmt.Sprintf("v0/app%d/%d", p, i%7) },
			func(r *http.Request) string { return strings.Split(r.URL.Path, "/")[2] },
		},
		"URLs": {
			func(p, _ int) string { return fmt.Sprintf("v0/a/u%d", p) },
			func(r *http.Request) string { return r.URL.Path },
		},
	} {
		var refused [2]int
		var took [2]time.Duration
		for seed := range uint64(testnet.Drawn(12, 1)) { // one in ten does not find out that there are parts
			synctest.Test(t, func(t *testing.T) {
				draw := draws(seed)
				first := newTransport(t, &fivePerPart{part: tt.part}, throttle.Config{})
				callParts(t, first, draw, 600, 6, tt.path)
				for i, c := range []throttle.Config{{}, {Learned: restarted(t, first)}} {
					s := &fivePerPart{part: tt.part}
					took[i] += callParts(t, newTransport(t, s, c), draw, 200, 8, tt.path)
					refused[i] += s.refused
				}
			})
		}
		t.Logf("%s: refused from nothing %d in %v, from what was learned %d in %v", name, refused[0], took[0], refused[1], took[1])
		testnet.Judge(t, refused[1] < refused[0]*2/3 && took[1] < took[0]*5/4, "%s: want less than two thirds of them in hardly longer", name)
	}
}

// What is known of parts from another run is kept though they were not called, or not found wrong, and is
// forgotten when answers refute it. Broken knowledge of them is none.
func TestKnownPartsAreNoMoreThanAGuess(t *testing.T) {
	known := func(parts string, routes ...string) throttle.Config {
		return throttle.Config{Learned: throttle.Knowledge{Version: 1, Salt: make([]byte, 16), Hosts: []throttle.KnownHost{{
			Host: "h", At: time.Now(), Limits: []throttle.KnownLimit{{Kind: throttle.LearnedRate, Routes: routes, Parts: parts, Unit: "requests", Limit: 5, Per: 10 * time.Second}},
		}}}}
	}
	kept := func(tr *throttle.Transport) (parts []string) {
		for _, h := range tr.Learned().Hosts {
			for _, l := range h.Limits {
				if l.Parts != "" {
					parts = append(parts, fmt.Sprint(l.Parts, " of ", l.Routes, ": ", l.Limit, " per ", l.Per))
				}
			}
		}
		return parts
	}
	path := func(p, i int) string { return fmt.Sprintf("v0/app%d/%d", p, i) }
	for parts, want := range map[string]string{
		"each object":  "[each object of [GET /v0]: 5 per 10s]",
		"some objects": "[some objects of [GET /v0]: 5 per 10s]",
		"each apple":   "[]",
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := newTransport(t, testnet.NewStub(testnet.Slow(20*time.Millisecond)), known(parts, "GET /v0"))
			if got := fmt.Sprint(kept(tr)); got != want {
				t.Errorf("%s: before a call the next run would know %s, want %s", parts, got, want)
			}
			callParts(t, tr, draws(1), 10, 2, path)
			if got := fmt.Sprint(kept(tr)); got != want {
				t.Errorf("%s: after good answers the next run would know %s, want %s", parts, got, want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, testnet.NewStub(testnet.Slow(20*time.Millisecond)), known("each URL", "GET /v0", "GET /b"))
		if got := kept(tr); got != nil {
			t.Errorf("parts of two kinds: the next run would know %s, want nothing", got)
		}
	})
	var wrong []string
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			tr := newTransport(t, &fivePerPart{part: func(*http.Request) string { return "" }}, known("each URL", "GET /v0"))
			took := callParts(t, tr, draws(seed), 300, 4, func(p, _ int) string { return fmt.Sprintf("v0/u%d", p) })
			if got := fmt.Sprint(kept(tr)); strings.Contains(got, "each") || strings.Contains(got, "some") {
				wrong = append(wrong, got)
			}
			if took > 300*3*time.Second { // half as fast again as the limit
				t.Errorf("300 calls, of which 5 in 10 s are served, took %v", took)
			}
		})
	}
	if len(wrong) > 2 { // by chance it is one of forty
		t.Errorf("after answers of a limit of all, of five next runs some would know %s, want nothing of single parts", wrong)
	}
}
