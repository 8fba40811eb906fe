package scenario

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// BenchmarkCallersOfOneProcess compares the grants per second that one process gets through Redis,
// with room for all, with those of redis_rate: one caller gets at least 0.7 of them, 256 callers at
// least 10 times as many. Each iteration is a round of all four, in an order that
// changes, as machines do not keep their speed. The medians of at least nine rounds are judged:
//
//	go test ./scenario -run '^$' -bench CallersOfOneProcess -benchtime 21x
func BenchmarkCallersOfOneProcess(b *testing.B) {
	const part = 300 * time.Millisecond
	path, err := exec.LookPath("redis-server")
	if err != nil {
		b.Fatal(err)
	}
	addr, stop, err := startRedis(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	admin := redis.NewClient(&redis.Options{Addr: addr})
	defer admin.Close()
	kinds := fleetKinds()
	weir, rival := kinds[0], kinds[2]
	perSecond := func(k fleetKind, callers int) float64 {
		if err := admin.FlushAll(b.Context()).Err(); err != nil {
			b.Fatal(err)
		}
		m, err := k.make(addr, 10_000_000, 10_000_000)
		if err != nil {
			b.Fatal(err)
		}
		defer m.close()
		if err := m.wait(b.Context()); err != nil { // connects
			b.Fatal(err)
		}
		return m.grants(b, callers, part) / part.Seconds()
	}
	callers := []int{1, 256}
	got, ratios := make([][]float64, 4), make([][]float64, 2)
	for round := 0; b.Loop(); round++ {
		for i, n := range callers {
			var ours, theirs float64
			if round%2 == 0 {
				ours, theirs = perSecond(weir, n), perSecond(rival, n)
			} else {
				theirs, ours = perSecond(rival, n), perSecond(weir, n)
			}
			got[2*i], got[2*i+1] = append(got[2*i], ours), append(got[2*i+1], theirs)
			ratios[i] = append(ratios[i], ours/theirs)
		}
	}
	one, many := median(ratios[0]), median(ratios[1])
	b.ReportMetric(one, "of-theirs/1")
	b.ReportMetric(many, "of-theirs/256")
	b.ReportMetric(median(got[0]), "grants/s/1")
	b.ReportMetric(median(got[1]), "theirs/s/1")
	b.ReportMetric(median(got[2]), "grants/s/256")
	b.ReportMetric(median(got[3]), "theirs/s/256")
	b.ReportMetric(0, "ns/op") // a round takes as long as it is told to
	if len(ratios[0]) >= 9 && (one < .7 || many < 10) {
		b.Errorf("one caller gets %.2f of redis_rate's grants, 256 get %.1f times as many, want .7 and 10", one, many)
	}
}

// grants is how many m gives to so many callers within d.
func (m member) grants(b *testing.B, callers int, d time.Duration) float64 {
	ctx, cancel := context.WithTimeout(b.Context(), d)
	defer cancel()
	var n atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for {
				switch err := m.wait(ctx); {
				case err == nil:
					n.Add(1)
				case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
					return
				default:
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return float64(n.Load())
}

func median(fs []float64) float64 {
	fs = slices.Sorted(slices.Values(fs))
	return fs[len(fs)/2]
}
