package population

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestAThirdWorksForLong holds how servers that work for long are drawn, and that test has kinds
// and means that train has not.
func TestAThirdWorksForLong(t *testing.T) {
	kinds, longest := map[Set]map[string]bool{Train: {}, Test: {}}, map[Set]time.Duration{}
	for _, set := range []Set{Train, Test} {
		n, of := 0, 0
		for i := range 600 {
			c := Draw(set, 1, i)
			if c.slots {
				if c.Works.kind != "" {
					t.Errorf("%s: %v", c.Replay(), c)
				}
				continue
			}
			if of++; c.Works.kind != "" {
				n++
				kinds[set][c.Works.kind], longest[set] = true, max(longest[set], c.Works.mean)
			}
		}
		if n < of*28/100 || n > of*38/100 {
			t.Errorf("%s: %d of %d work for long", set, n, of)
		}
	}
	if len(kinds[Train]) != 2 || len(kinds[Test]) != 4 {
		t.Errorf("kinds: %v", kinds)
	}
	if longest[Train] > 3*time.Second || longest[Test] < 10*time.Second {
		t.Errorf("longest means: %v", longest)
	}
}

// TestWorksHaveTheirMean holds that the mean is what is said, as far as nothing is cut, and that no
// work lasts longer than an attempt may.
func TestWorksHaveTheirMean(t *testing.T) {
	for i := range 200 {
		w := newDice(Test, 1, i).works()
		sum, cut := 0., false
		const n = 4000
		for k := range uint64(n) {
			took := w.takes(1, k)
			cut = cut || took == worksMost
			if sum += took.Seconds() / n; took < 0 || took > worksMost {
				t.Fatalf("%v: works for %v on call %d", &w, took, k)
			}
		}
		if mean := w.mean.Seconds(); sum > 1.15*mean || sum < .85*mean && !cut {
			t.Errorf("%v: the mean is %.3f s", &w, sum)
		}
	}
}

// TestWorkLeavesTheRestOfACase holds that a case whose server works for long is otherwise the one
// that it would be if it did not, and that only calls are left out that would wait too long.
func TestWorkLeavesTheRestOfACase(t *testing.T) {
	n, cut, dense := 0, 0, 0
	some(150, func(slow *Case) {
		c := drawn(slow.Set, slow.Seed, slow.Index)
		if slow.Works.kind == "" {
			if c.String() != slow.String() {
				t.Errorf("%v became %v", c, slow)
			}
			return
		}
		if n++; slow.Demand.Workers > c.Demand.Workers {
			dense++
		} else if c.Demand.describe() != slow.Demand.describe() {
			cut++
		}
		calls := min(c.Demand.Calls, slow.Demand.Calls)
		if c.Kind != slow.Kind || c.Limit != slow.Limit || c.Dialect.name != slow.Dialect.name || c.RTT != slow.RTT || c.Wait != slow.Wait ||
			!slices.Equal(c.Demand.Routes[:calls], slow.Demand.Routes[:calls]) {
			t.Errorf("%v became %v", c, slow)
		}
	})
	if n < 60 || cut > n/10 || dense < n/20 {
		t.Errorf("of %d cases %d want less and %d have more goroutines", n, cut, dense)
	}
}

// TestRefusalsTakeNoWork holds that a server refuses at once, and that an all-knowing client gets
// the answers of a server that works for long when the work is done.
func TestRefusalsTakeNoWork(t *testing.T) {
	c := Draw(Train, 1, 0)
	c.limiter, _ = fixed(newDice(Train, 1, 1), windowed{2, time.Minute}, true)
	w := works{"constant", 7 * s, func(*rand.Rand) float64 { return 1 }}
	c.Works, c.work = w, func(call int) time.Duration { return w.takes(1, uint64(call)) }
	c.Dialect, c.RTT, c.Jitter, c.Skew = plain()[0], s, 0, 0
	c.Demand = Demand{Kind: "batch", Calls: 4, Workers: 4, Routes: make([]int, 4)}
	if p := c.Ideal(); p.Span != 68*s { // the second two arrive when the window has ended, a minute and a half after the start
		t.Errorf("the plan takes %v, want 1m8s", p.Span)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(c)
		for k, want := range []struct {
			status int
			after  time.Duration
		}{{200, 8 * s}, {200, 8 * s}, {429, s}} {
			begin := w.now()
			resp, err := w.RoundTrip(request(context.Background(), &call{number: k}))
			if after := w.now() - begin; err != nil || resp.StatusCode != want.status || after != want.after {
				t.Errorf("call %d: %v, %v after %v; want %v", k, resp, err, after, want)
				continue
			}
			if got, want := resp.Header.Get("Date"), time.Now().Add(-s/2).UTC().Format(http.TimeFormat); got != want {
				t.Errorf("call %d: Date %s, want %s, when the answer went", k, got, want)
			}
		}
	})
}
