package throttle

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/queue"
)

// TestMain makes properties look at the same schedules in every run, so that a
// run that fails can be repeated. To look at others: -rapid.seed=n.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.seed"); f != nil && f.Value.String() == "0" {
		flag.Set("rapid.seed", "20260101")
	}
	os.Exit(m.Run())
}

const (
	sec      = time.Second
	share    = 8  // of so many grants one is a lower class's
	mayYield = 16 // so often a waiter makes room for others
)

// waitFor lets somebody wait for a, until left is called.
func waitFor(a *queue.Account) (leave func()) {
	d, g := queue.NewDomain(), new(queue.Group)
	g.Gate = d.NewGate()
	paused := a.Paused
	a.Paused = never
	p := &queue.Patience{Ctx: context.Background(), Most: time.Minute, Queue: 1}
	d.Lock()
	defer d.Unlock()
	w, _, _ := d.Queue(d.Now(), &queue.Request{Group: g}, []queue.Need{{Account: a, N: 1}}, p)
	a.Paused = paused
	return func() {
		d.Lock()
		defer d.Unlock()
		d.Abandon(d.Now(), w)
	}
}
