package throttle_test

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/store"
)

// A spentStore says of each limit that a server states that nothing is left.
type spentStore struct{ throttle.Store }

func (s spentStore) Book(ctx context.Context, b store.Booking) (store.Booked, error) {
	d := b.Draws[0]
	for i, l := range d.Limits {
		for _, mark := range d.Limits {
			if mark.ID == "~m"+l.ID && !b.Force && d.Units[l.Unit].First > 0 {
				return store.Booked{Keys: []store.Standing{{Gen: 1, At: 1, Levels: make([]float64, len(d.Limits))}}, Limit: i}, nil
			}
		}
	}
	return s.Store.Book(ctx, b)
}

// If the Store says that a limit is spent, and nobody knows how long its window lasts, as the
// server states no reset, a request waits at most as long as three do without the Store: then
// it sees for itself. (It waited until MaxWait was over.)
func TestASpentLimitWithoutAResetHoldsNobodyUp(t *testing.T) {
	const size, per, workers, each = 5, 5 * time.Second, 4, 10
	var took [2]time.Duration
	for i := range took {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			window, used := int64(0), 0
			c := throttle.Config{MaxWait: time.Hour}
			if i > 0 {
				c.Store, c.Fleet = spentStore{store.NewMemory()}, throttle.FleetConfig{Members: 2}
			}
			begin := time.Now()
			tr, err := throttle.New(newBase(func(*http.Request) (*http.Response, error) {
				time.Sleep(10 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				if n := int64(time.Since(begin) / per); n != window {
					window, used = n, 0
				}
				status := 429
				if used < size {
					status, used = 200, used+1
				}
				return answer(status, "X-RateLimit-Limit", strconv.Itoa(size), "X-RateLimit-Remaining", strconv.Itoa(size-used)), nil
			}), c)
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			var all sync.WaitGroup
			for range workers {
				all.Go(func() {
					for range each {
						if err := visit(t, tr, "https://api.example/items"); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			took[i] = time.Since(begin)
		})
	}
	if took[1] > 3*took[0] {
		t.Errorf("took %v, and without the Store %v", took[1], took[0])
	}
}
