// Package scenario has what weir and its rivals are measured by, one scenario
// a file. Each runs in three sizes; the smallest only shows that it works.
package scenario

import (
	"context"
	"math"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/weirhttp/weir/bench/result"
	"github.com/weirhttp/weir/bench/rival"
)

// A Size is how much is measured.
type Size int

// The sizes: a test, 90 s for all, ten minutes for all.
const (
	Tiny Size = iota
	Quick
	Full
)

// pick returns what belongs to s.
func pick[T any](s Size, tiny, quick, full T) T { return [...]T{tiny, quick, full}[s] }

// A Scenario measures all rivals in one situation.
type Scenario struct {
	Name  string
	About string
	Run   func(context.Context, Size) ([]result.Table, []result.Plot, error)
}

// All returns the scenarios in the order in which they run.
func All() []Scenario {
	return []Scenario{overhead(), loopback(), limiters(), quotas(), outage(), brownout(), herd(), fleet()}
}

// A cost is what one call took.
type cost struct{ ns, bytes, allocs float64 }

// timed runs f n times on each of so many goroutines.
func timed(n, parallel int, f func(i int)) cost {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	if parallel == 1 {
		for i := range n {
			f(i)
		}
	} else {
		var wg sync.WaitGroup
		for g := range parallel {
			wg.Go(func() {
				for i := range n {
					f(g*n + i)
				}
			})
		}
		wg.Wait()
	}
	took := time.Since(begin)
	runtime.ReadMemStats(&after)
	calls := float64(n * parallel)
	return cost{float64(took) / calls, float64(after.TotalAlloc-before.TotalAlloc) / calls, float64(after.Mallocs-before.Mallocs) / calls}
}

// interleave measures all fs in turns, so that a busy moment of the machine
// meets all of them, and returns the medians. The first round warms up. Each
// begins with a clean heap, and n should be large enough for several
// collections: everybody pays for his own garbage.
func interleave(rounds, n, parallel int, fs []func(i int)) []cost {
	all := make([][]cost, len(fs))
	for round := range rounds + 1 {
		for i, f := range fs {
			runtime.GC()
			if c := timed(n, parallel, f); round > 0 {
				all[i] = append(all[i], c)
			}
		}
	}
	out := make([]cost, len(fs))
	for i, cs := range all {
		of := func(field func(cost) float64) float64 {
			vs := make([]float64, len(cs))
			for j, c := range cs {
				vs[j] = field(c)
			}
			return quantile(vs, .5)
		}
		out[i] = cost{of(func(c cost) float64 { return c.ns }), of(func(c cost) float64 { return c.bytes }), of(func(c cost) float64 { return c.allocs })}
	}
	return out
}

// quantile sorts vs and returns its q-quantile; zero for none.
func quantile[T ~int | ~int64 | ~float64](vs []T, q float64) T {
	if len(vs) == 0 {
		return 0
	}
	slices.Sort(vs)
	return vs[min(len(vs)-1, int(math.Round(q*float64(len(vs)-1))))]
}

// heap is how much memory is in use.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// finish takes an answer as a program would.
func finish(resp *http.Response, err error) bool {
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var b [512]byte
	for {
		if _, err := resp.Body.Read(b[:]); err != nil {
			break
		}
	}
	return resp.StatusCode == http.StatusOK
}

// row begins a rival's row.
func row(r rival.Rival, cells ...result.Cell) result.Row {
	return result.Row{Name: r.Name, Ours: r.Name == rival.Weir().Name, Aside: r.Name == rival.Bare().Name, Cells: cells}
}

// less and more are columns by what is better in them.
func less(name string, digits int, slack float64) result.Column {
	return result.Column{Name: name, Better: -1, Digits: digits, Slack: slack}
}

func more(name string, digits int, slack float64) result.Column {
	return result.Column{Name: name, Better: 1, Digits: digits, Slack: slack}
}

func plain(name string, digits int) result.Column { return result.Column{Name: name, Digits: digits} }
