package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/throttle"
)

type settings struct {
	length  time.Duration
	workers int
	seed    uint64
	redis   string // the program; "": none
	log     func(format string, a ...any)
}

// run returns what did not hold.
func run(ctx context.Context, s settings) []string {
	goroutines := runtime.NumGoroutine()
	books := new(ledger)
	srv, err := newServer(books)
	if err != nil {
		return []string{err.Error()}
	}
	defer srv.stalls.Watch()()
	base := newWire(srv.addr)
	rt, err := weir.New(base, config())
	if err != nil {
		return []string{err.Error()}
	}
	l := &load{weir: rt, seed: s.seed, ledger: books, problems: &srv.problems}

	ctx, cancel := context.WithTimeout(ctx, s.length)
	defer cancel()
	var wg sync.WaitGroup
	for i := range s.workers {
		wg.Go(func() { l.work(ctx, uint64(i)) })
	}
	wg.Go(func() { changeBudgets(ctx, rt, &srv.problems) })
	if s.redis != "" {
		wg.Go(func() { fleet(ctx, s, srv) })
	}
	memory := l.watch(ctx, s)
	wg.Wait()

	l.conserved(base)
	if err := rt.Close(); err != nil {
		srv.problems.add("Close: %v", err)
	}
	base.CloseIdleConnections()
	memory()
	srv.settle("sockets of ours", 0, base.sockets.Load)
	srv.settle("sockets of the server", 0, srv.conns.Load)
	srv.http.Close()
	srv.settle("goroutines", int64(goroutines)+2, func() int64 { return int64(runtime.NumGoroutine()) })
	s.log("%d calls, %d answers, %d errors; %d attempts, %d reached the server, %d of them refused with 429",
		l.calls.Load(), l.answers.Load(), l.failed.Load(), base.attempts.Load(), srv.requests.Load(), srv.refused.Load())
	if l.answers.Load() == 0 {
		srv.problems.add("no call was answered")
	}
	if srv.problems.more > 0 {
		srv.problems.all = append(srv.problems.all, fmt.Sprintf("and %d more", srv.problems.more))
	}
	return srv.problems.all
}

// settle waits up to 30 s for a count to come down.
func (s *server) settle(what string, most int64, count func() int64) {
	for range 300 {
		if count() <= most {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.problems.add("%d %s are left, not %d", count(), what, most)
}

func capOf(n int) throttle.Budget {
	return throttle.Budget{Rates: []throttle.Rate{{Limit: n, Per: window, Burst: n / 2}}}
}

func config() weir.Config {
	budgets := make(map[string]throttle.Budget)
	for i := range capped {
		budgets[hostName(i)] = capOf(limit)
	}
	for i := dying; i < narrow; i++ {
		budgets[hostName(i)] = throttle.Budget{InFlight: inFlight}
	}
	return weir.Config{Throttle: throttle.Config{Budgets: budgets}}
}

// changeBudgets halves and restores budgets, pauses hosts and lets them go on.
func changeBudgets(ctx context.Context, rt *weir.Transport, p *problems) {
	for every := time.NewTicker(300 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			every.Stop()
			return
		case <-every.C:
		}
		i := rand.IntN(capped)
		if err := rt.Throttle().SetBudget(hostName(i), capOf(limit>>rand.IntN(2))); err != nil {
			p.add("SetBudget: %v", err)
		}
		j := stating + rand.IntN(hosts-stating)
		rt.Throttle().Pause(hostName(j), time.Now().Add(time.Second))
		if rand.IntN(2) == 0 {
			rt.Throttle().Resume(hostName(j))
		}
	}
}

// watch measures what is kept after a third of the time, with nothing under
// way, and returns the comparison to make at the end.
func (l *load) watch(ctx context.Context, s settings) (compare func()) {
	var early uint64
	measured := make(chan struct{})
	go func() {
		defer close(measured)
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.length / 3):
		}
		l.paused.Lock()
		defer l.paused.Unlock()
		early = kept()
	}()
	return func() {
		<-measured
		late := kept()
		s.log("%d KB were kept after a third of the time, %d KB at the end", early>>10, late>>10)
		if early > 0 && late > early+early/4+8<<20 {
			l.problems.add("memory grew from %d KB to %d KB", early>>10, late>>10)
		}
	}
}

func kept() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// conserved holds that nothing waits or is in flight when nobody calls, that
// every grant was an attempt or was given back, and that after a window every
// budget is full again.
func (l *load) conserved(base *wire) {
	time.Sleep(window + window/4)
	for _, h := range l.weir.Stats().Throttle.Hosts {
		if h.Partition != "" {
			continue
		}
		if h.Queue != 0 || h.InFlight != 0 {
			l.problems.add("%s: %d wait, %d in flight, and nobody calls", h.Host, h.Queue, h.InFlight)
		}
		for _, b := range h.Budgets {
			full := float64(b.Limit)
			if b.Unit != "" {
				full /= 2 // the Burst
			}
			if b.Left != full {
				l.problems.add("%s: %s has %v of %v left after a window", h.Host, b.Text, b.Left, full)
			}
		}
		var i int
		if _, err := fmt.Sscanf(h.Host, "h%d.soak.test", &i); err != nil {
			continue
		}
		if sent := base.perHost[i].Load(); h.Granted-h.Refunded != sent {
			l.problems.add("%s: %d granted, %d refunded, %d sent", h.Host, h.Granted, h.Refunded, sent)
		}
	}
}
