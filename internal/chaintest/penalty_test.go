package chaintest

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
)

// penal lets size requests pass in a window, and shuts out who asks for more for that
// long: from the first refusal on, or from the last.
func penal(size int, window, ban time.Duration, again bool) func(*http.Request, time.Duration) bool {
	n, ends, shut := 0, time.Duration(0), time.Duration(0)
	return func(_ *http.Request, now time.Duration) bool {
		switch {
		case now < shut:
			if again {
				shut = now + ban
			}
			return false
		case now >= ends:
			n, ends = 0, now+window
		}
		if n++; n > size {
			shut, ends = now+ban, now
			return false
		}
		return true
	}
}

// TestBansAreFoundOut: a limiter that says nothing, and shuts out who asked for more,
// costs hardly a call, also if others were shut out before the first of them. In one run of
// two hundred a slow rate explains as much as the ban.
func TestBansAreFoundOut(t *testing.T) {
	const jobs = 100
	runs, all := 0, 0
	var lost atomic.Int64
	for _, size := range []int{20, 100} {
		for _, window := range []time.Duration{time.Second, 2 * time.Second} {
			for _, ban := range []time.Duration{window, 5 * time.Second} {
				for i := range 8 {
					again, crowd, way := i&1 == 0, 150*(i>>1&1), time.Millisecond
					if i&4 != 0 {
						way = 40 * time.Millisecond
					}
					t.Run(fmt.Sprintf("%d per %v, shut out for %v, again %t, %d before, %v away", size, window, ban, again, crowd, way), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							s := &limited{start: time.Now(), way: way, allow: penal(size, window, ban, again)}
							for range crowd {
								s.allow(nil, 0)
							}
							rt := must(weir.New(s, weir.Config{}))(t)
							var left atomic.Int64
							left.Store(jobs)
							var wg sync.WaitGroup
							for range 50 {
								wg.Go(func() {
									for left.Add(-1) >= 0 {
										if resp, err := rt.RoundTrip(get(t, "http://h/")); err != nil || resp.StatusCode != 200 {
											lost.Add(1)
										}
									}
								})
							}
							wg.Wait()
							runs, all = runs+1, all+s.refused
							t.Logf("%d refused in %v", s.refused, time.Since(s.start))
						})
					})
				}
			}
		}
	}
	if all > runs*jobs/4 || int(lost.Load()) > runs*jobs/64 {
		t.Errorf("%d refusals in %d runs and %d calls lost, want at most one in four calls, and one in 64", all, runs, lost.Load())
	}
	t.Logf("%d refusals in %d runs, %d calls lost", all, runs, lost.Load())
}
