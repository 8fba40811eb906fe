package throttle

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/histogram"
)

// These look inside, as what counting costs in memory, and how long Stats holds a lock,
// shows in no number that Stats returns.

// TestStatsGivesTheLockUp: once for each so many that wait. Each time the record is
// brought up to date, so it knows of budgets that were set while the lock was held.
func TestStatsGivesTheLockUp(t *testing.T) {
	for n, want := range map[int]bool{counted - 1: false, counted + 1: true} {
		synctest.Test(t, func(t *testing.T) {
			tr := newTransport(t, newBase(nil), Config{MaxQueue: 2 * n, MaxWait: 5 * time.Minute})
			tr.Pause("api.example", time.Now().Add(time.Minute))
			var done sync.WaitGroup
			for range n {
				done.Go(func() { mustGet(t, tr, "http://api.example/items") })
			}
			synctest.Wait()
			r := homeOf(tr, "api.example")
			e, _, _ := r.current()
			next, err := tr.budgets.Load().with("other.example", Budget{InFlight: 1})
			if err != nil {
				t.Fatal(err)
			}
			was := r.version
			next.version = was + 1
			tr.budgets.Store(next)
			_, e = r.census(e)
			if got := r.version != was; got != want {
				t.Errorf("the lock was given up while %d were counted: %t, want %t", n, got, want)
			}
			e.Unlock()
			tr.Resume("api.example")
			done.Wait()
		})
	}
}

// TestOneRouteTakesNoMemory: a host whose requests are all alike has no book.
func TestOneRouteTakesNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), Config{})
		for i := range 10 {
			r, _ := http.NewRequest("GET", "http://api.example/v1/x", nil)
			r.Header.Set("Authorization", fmt.Sprint(i))
			if _, err := tr.RoundTrip(r); err != nil {
				t.Fatal(err)
			}
		}
		tr.each(func(r *record) {
			if r.book != nil {
				t.Error("a book for one route")
			}
		})
	})
}

// TestStatsCost: counting an answer or a refusal needs memory the first time
// only.
func TestStatsCost(t *testing.T) {
	var c counters
	histogram.Add(&c.latency, time.Second)
	c.refuse(1, Paused)
	if n := testing.AllocsPerRun(100, func() {
		histogram.Add(&c.latency, time.Hour)
		c.refuse(1, QueueFull)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkStatsCount(b *testing.B) {
	var c counters
	b.ReportAllocs()
	for i := range b.N {
		histogram.Add(&c.latency, time.Duration(i&1023)*time.Millisecond)
	}
}
