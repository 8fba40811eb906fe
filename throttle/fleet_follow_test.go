package throttle_test

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/internal/farstore"
)

// Processes that were refused together, most of them once, and are asked to wait for long hear
// during the wait how all ended that they had sent. So all of them find the limit at once.
func TestAPausedFleetFindsItsLimit(t *testing.T) {
	const processes, size, per = 16, 80, 30 * time.Second
	synctest.Test(t, func(t *testing.T) {
		b := newBudgeted(11, "log", "retry-after")
		b.size, b.per = size, per
		ctx, cancel := context.WithCancel(t.Context())
		ts := sharedTransports(t, farstore.New(time.Millisecond), throttle.Config{MaxWait: time.Hour}, processes, b)
		var all sync.WaitGroup
		for _, tr := range ts {
			for range 4 {
				all.Go(func() { busy(t, ctx, tr) })
			}
		}
		time.Sleep(5 * time.Second)
		b.mu.Lock()
		served, refused := b.served, b.refused
		b.mu.Unlock()
		if served != size || refused < processes/2 {
			t.Errorf("%d served and %d refused at first", served, refused)
		}
		known := 0
		for _, tr := range ts {
			if slices.ContainsFunc(tr.Stats().Hosts[0].Learned, func(x throttle.LearnedLimit) bool {
				return x.Kind == throttle.LearnedRate && math.Abs(x.Limit-size) <= size/10 && x.Per >= per
			}) {
				known++
			}
		}
		if known < processes*3/4 {
			t.Errorf("%d of %d processes know the limit", known, processes)
		}
		cancel()
		all.Wait()
	})
}

// A fleet is refused hardly more often than a process by servers of which that finds the limit at
// once: one refusal in all, and not one of each process, is taken for that of a request alone.
func TestAFleetSparesOneRefusal(t *testing.T) {
	f := measure(t, "log", "retry-after", true, 1000, 1001, 1016)
	if f.many > 1.2*f.one+16 {
		t.Errorf("%+v", f)
	}
}
