package queue

import (
	"context"
	"math/rand/v2"
	"strconv"
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

// BenchmarkExtend is the cost of one more account for so many that wait.
func BenchmarkExtend(b *testing.B) {
	s := newShop(rateOf(1, 1))
	s.mu.Lock() // the timers find it locked
	defer s.mu.Unlock()
	s.Enter(1, s.Needs(1, nil), s.request(0))
	for i := range 10000 {
		s.join(1, s.request(uint64(i+1)))
	}
	for b.Loop() {
		s.Extend(1, &s.group, meter.Instant(time.Hour))
	}
}

// BenchmarkPriorities is the cost of one grant with that many waiting, each of a
// priority of its own.
func BenchmarkPriorities(b *testing.B) {
	for _, n := range []int{1000, 16000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			benchGrants(b, n, func(q *Request) { q.Priority = int(q.Seq * 7919 % 1_000_003) })
		})
	}
}

// BenchmarkQueue is the cost of one grant with that many waiting.
func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{100, 10000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) { benchGrants(b, n, func(*Request) {}) })
	}
}

// benchGrants makes one grant an hour while n wait, each as set says.
func benchGrants(b *testing.B, n int, set func(*Request)) {
	s := newShop(rateOf(1, 1))
	s.Enter(1, s.Needs(1, nil), s.request(0))
	seq := uint64(0)
	join := func(now meter.Instant) {
		seq++
		q := s.request(seq)
		set(q)
		s.join(now, q)
	}
	for range n {
		join(1)
	}
	b.ReportAllocs()
	now := meter.Instant(1)
	for b.Loop() {
		now += meter.Instant(time.Hour)
		join(now)
		s.Mark(s.accounts[0])
		s.Run(now)
	}
}
