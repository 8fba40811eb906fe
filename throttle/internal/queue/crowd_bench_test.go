package queue

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// BenchmarkCrowd lets 100000 requests wait for one limit, and then all give up or be
// granted. It reports the time for each of them.
func BenchmarkCrowd(b *testing.B) {
	const n = 100000
	for _, test := range []struct {
		name string
		end  func(s *shop, now meter.Instant, all []*Waiter)
	}{
		{"give up as they came", giveUp},
		{"give up in no order", func(s *shop, now meter.Instant, all []*Waiter) {
			rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
			giveUp(s, now, all)
		}},
		{"granted", func(s *shop, now meter.Instant, all []*Waiter) {
			for range all {
				now += meter.Instant(time.Hour)
				s.Mark(s.accounts[0])
				s.Run(now)
			}
		}},
	} {
		b.Run(test.name, func(b *testing.B) {
			var came, ended time.Duration
			for b.Loop() {
				s := newShop(rateOf(1, 1))
				s.mu.Lock() // the timers find it locked
				s.Enter(1, s.Needs(1, nil), s.request(0))
				p := &Patience{Ctx: context.Background(), Most: 1000000 * time.Hour, Queue: n}
				all := make([]*Waiter, n)
				began := time.Now()
				for i := range all {
					all[i], _, _ = s.Queue(meter.Instant(i+2), s.request(uint64(i+1)), s.Needs(1, nil), p)
				}
				came += time.Since(began)
				began = time.Now()
				test.end(s, n+2, all)
				ended += time.Since(began)
				if s.Waiting > 0 {
					b.Fatalf("%d wait still", s.Waiting)
				}
				s.mu.Unlock()
			}
			b.ReportMetric(float64(came)/float64(b.N)/n, "ns/arrival")
			b.ReportMetric(float64(ended)/float64(b.N)/n, "ns/end")
		})
	}
}

func giveUp(s *shop, now meter.Instant, all []*Waiter) {
	for _, w := range all {
		s.Abandon(now, w)
	}
}
