package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/store"
	"github.com/weirhttp/weir/throttle/storetest"
)

// open returns a handle on the database in path, with connections of its own.
func open(t *testing.T, path string, now func() time.Time) *Store {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s, err := New(t.Context(), db, now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Setup {
		path := filepath.Join(t.TempDir(), "budgets")
		var mu sync.Mutex
		clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		now := func() time.Time { mu.Lock(); defer mu.Unlock(); return clock }
		a, b := open(t, path, now), open(t, path, now)
		return storetest.Setup{
			Stores:  []store.Store{a, b},
			Advance: func(d time.Duration) { mu.Lock(); defer mu.Unlock(); clock = clock.Add(d) },
			Back:    true,
			Now:     now,
			Lose: func() {
				if _, err := a.db.Exec(`DELETE FROM budgets`); err != nil {
					t.Error(err)
				}
			},
		}
	})
}

// Processes that share the table spend one budget, and rows do not pile up.
func TestLimitersShareATable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "budgets")
	const size, processes = 20, 4
	var wg sync.WaitGroup
	var mu sync.Mutex
	allowed := 0
	for range processes {
		l, err := throttle.NewLimiter(throttle.LimiterConfig{
			Default: throttle.MustParseBudget(fmt.Sprintf("%d/h burst %d", size, size)),
			MaxWait: -1, // do not wait
			Store:   open(t, path, time.Now),
			Fleet:   throttle.FleetConfig{Members: processes, Deadline: time.Minute},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		wg.Go(func() {
			for range size {
				if _, err := l.Take(context.Background(), "reports", nil); err == nil {
					mu.Lock()
					allowed++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if allowed != size {
		t.Errorf("%d processes were allowed %d, want %d", processes, allowed, size)
	}
}

// Rows of keys that are idle are deleted while others are used.
func TestIdleRowsGo(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := open(t, filepath.Join(t.TempDir(), "budgets"), func() time.Time { return now })
	book := func(key string) {
		t.Helper()
		_, err := s.Book(t.Context(), store.Booking{Draws: []store.Draw{{
			Key: key, Units: []store.UnitCost{{Unit: "requests", First: 1, All: 1}},
			Limits: []store.Limit{{ID: "1s", Kind: store.MeterLimit, Size: 1, Rate: 1}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 50 {
		book(fmt.Sprint(i))
	}
	now = now.Add(time.Minute)
	book("a")
	book("b")
	var rows int
	if err := s.db.QueryRow(`SELECT count(*) FROM budgets`).Scan(&rows); err != nil || rows != 2 {
		t.Errorf("%d rows are left, %v; want the two in use", rows, err)
	}
}
