package chaintest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestALimitOfAllPathsBindsNewPaths: a limit that all paths draw on binds paths that were
// never seen, too: it is not asked about again and again.
func TestALimitOfAllPathsBindsNewPaths(t *testing.T) {
	for _, form := range []string{"/repos/%d/issues", "/repos/name%dx/issues", "/%d"} {
		for _, callers := range []int{1, 20} {
			s := &perName{of: func(*http.Request) string { return "" }, make: func(string) *counter {
				return &counter{size: 100, per: 40 * time.Second}
			}}
			shared(t, fmt.Sprint(form[1:], callers), s, func(t *testing.T, rt http.RoundTripper) {
				start := time.Now()
				var lost atomic.Int64
				var wg sync.WaitGroup
				for c := range callers {
					wg.Go(func() {
						for i := c; i < 300; i += callers {
							if status, _ := visit(t, rt, fmt.Sprintf(form, i)); status != 200 {
								lost.Add(1)
							}
						}
					})
				}
				wg.Wait()
				if took := time.Since(start); lost.Load() > 0 || s.refused > 3 || took > 95*time.Second {
					t.Errorf("%s, %d callers: %d lost, %d refused, %v; want none, at most 3, 80s", form, callers, lost.Load(), s.refused, took)
				}
			})
		}
	}
}

// TestALimitOfAllPathsIsFoundInAnyOrderOfAnswers: a limit of all paths is not taken for
// several if answers overtake one another: all of it is used, and hardly anything is refused.
func TestALimitOfAllPathsIsFoundInAnyOrderOfAnswers(t *testing.T) {
	sent, refused := 0, 0
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 2))
		paths, callers, spread := 2+r.IntN(40), 1+r.IntN(30), 5+r.IntN(100)
		size, per := 20+r.IntN(100), time.Duration(5+r.IntN(30))*time.Second
		s := &perName{of: func(*http.Request) string { return "" }, make: func(string) *counter {
			return &counter{size: size, per: per}
		}, delay: func() time.Duration { return time.Duration(1+r.IntN(spread)) * time.Millisecond }}
		shared(t, fmt.Sprint(seed), s, func(t *testing.T, rt http.RoundTripper) {
			var lost atomic.Int64
			var wg sync.WaitGroup
			start := time.Now()
			calls := 3 * size
			for c := range callers {
				wg.Go(func() {
					for i := c; i < calls; i += callers {
						if status, _ := visit(t, rt, fmt.Sprintf("/%d", i%paths)); status != 200 {
							lost.Add(1)
						}
					}
				})
			}
			wg.Wait()
			sent, refused = sent+calls, refused+s.refused
			if took, most := time.Since(start), 3*per+20*time.Second; lost.Load() > 0 || took > most {
				t.Errorf("%d per %v of %d paths, %d callers, answers within %d ms: %d lost, %d refused, %v; want none lost, within %v",
					size, per, paths, callers, spread, lost.Load(), s.refused, took, most)
			}
		})
	}
	if refused > sent/50 {
		t.Errorf("%d of %d refused, want at most one in fifty", refused, sent)
	} else {
		t.Logf("%d of %d refused", refused, sent)
	}
}

// TestLimitsThatBecomeOneAreFound: a server that counted each resource for itself counts all
// together from now on. That is found out by a few refusals.
func TestLimitsThatBecomeOneAreFound(t *testing.T) {
	one := false
	s := &perName{of: func(r *http.Request) string {
		if one {
			return ""
		}
		return r.URL.Path
	}, make: func(string) *counter { return &counter{size: 20, per: 10 * time.Second} }}
	shared(t, "", s, func(t *testing.T, rt http.RoundTripper) {
		lost := 0
		for i := range 600 {
			one = i >= 200
			if status, _ := visit(t, rt, fmt.Sprint("/items/", i%40)); status != 200 {
				lost++
			}
		}
		if lost > 0 || s.refused > 20 {
			t.Errorf("%d lost, %d refusals of 400 calls; want none, at most 20", lost, s.refused)
		}
	})
}
