package throttle_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// Whatever changes while parts of a kind of request have limits of their own and many wait for them,
// budgets and pools, pauses, learning switched off and on, also if it is OnLearn that changes it, each
// request ends, and what was under way is given back everywhere.
func TestWhateverChangesPartsAreGivenBack(t *testing.T) {
	for seed := range uint64(testnet.Drawn(4, 1)) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			dice := rand.New(rand.NewPCG(seed, 1))
			draw := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return dice.IntN(n)
			}
			var tr *throttle.Transport
			change := func() {
				var err error
				switch draw(8) {
				case 0:
					err = tr.SetBudget("GET h/v0/app1/", throttle.Budget{Rates: []throttle.Rate{{Limit: 1 + draw(20), Per: time.Second}}})
				case 1:
					err = tr.SetBudget("h", throttle.Budget{Pool: "p", InFlight: 1 + draw(20)})
				case 2:
					tr.Pause("h", time.Now().Add(2*time.Second))
				case 3:
					tr.Resume("h")
				case 4:
					err = tr.SetHost("h", throttle.HostConfig{DisableLearning: true})
				case 5, 6:
					err = tr.SetHost("h", throttle.HostConfig{})
				case 7:
					tr.Learned()
				}
				tr.Stats()
				if err != nil {
					t.Error(err)
				}
			}
			serve, _ := holding(10 * time.Second)
			busy := false
			tr = newTransport(t, serve, throttle.Config{OnLearn: func(throttle.Learned) {
				if busy {
					change()
				}
			}})
			findParts(t, tr, 10*time.Second)
			busy = true
			end := time.Now().Add(3 * time.Minute)
			var wg sync.WaitGroup
			for g := range 64 {
				wg.Go(func() {
					for i := 0; time.Now().Before(end); i++ {
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+draw(20000))*time.Millisecond)
						if resp, err := testnet.Get(t, ctx, tr, fmt.Sprintf("http://h/v0/app%d/%d-%d", draw(4), g, i)); err == nil {
							resp.Body.Close()
						}
						cancel()
						time.Sleep(time.Duration(draw(2000)) * time.Millisecond)
					}
				})
			}
			for time.Now().Before(end) {
				time.Sleep(time.Duration(draw(3000)) * time.Millisecond)
				change()
			}
			wg.Wait()
			if err := tr.SetHost("h", throttle.HostConfig{}); err != nil {
				t.Fatal(err)
			}
			if n := throttle.Waiting(t, tr); n != 0 {
				t.Errorf("seed %d: %d wait, want none", seed, n)
			}
			noneUnderWay(t, tr, fmt.Sprint("seed ", seed))
			parts, _, evidence := throttle.PartsUnderWay(tr, "h")
			if all := throttle.EvidenceUnderWay(tr, "h"); evidence != 0 || all != 0 {
				t.Errorf("seed %d: by the evidence %d requests of %d parts are under way, and %d of all; want none", seed, evidence, parts, all)
			}
			if n := throttle.PartsAlone(tr, "h"); n != 0 {
				t.Errorf("seed %d: nothing leads to %d parts", seed, n)
			}
		})
	}
}
