package filestore_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/weirhttp/weir/filestore"
	"github.com/weirhttp/weir/throttle"
)

// A job that runs now and then under a quota of 3 a day: what one run has
// spent is spent for the next.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "budgets")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	run := func() {
		store, err := filestore.Open(dir, filestore.Config{Sync: true})
		if err != nil {
			panic(err)
		}
		l, err := throttle.NewLimiter(throttle.LimiterConfig{
			Default: throttle.Budget{Rates: []throttle.Rate{{Limit: 3, Per: 24 * time.Hour, Burst: 3}}},
			MaxWait: time.Second,
			Store:   store,
			Fleet:   throttle.FleetConfig{Members: 1, Deadline: 10 * time.Second},
		})
		if err != nil {
			panic(err)
		}
		defer l.Close()
		for range 2 {
			_, err := l.Take(context.Background(), "reports", nil)
			fmt.Println(err == nil)
		}
	}
	run()
	run()
	// Output:
	// true
	// true
	// true
	// false
}
