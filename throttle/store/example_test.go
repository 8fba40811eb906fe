package store_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/store"
)

// Two Limiters that are given one Store spend one budget. Processes do the same
// with a Store of redisstore or filestore.
func ExampleNewMemory() {
	st := store.NewMemory()
	limiter := func() *throttle.Limiter {
		l, err := throttle.NewLimiter(throttle.LimiterConfig{
			Default: throttle.MustParseBudget("3/h burst 3"),
			MaxWait: -1, // do not wait
			Store:   st,
			Fleet:   throttle.FleetConfig{Members: 2, Deadline: time.Minute},
		})
		if err != nil {
			panic(err)
		}
		return l
	}
	a, b := limiter(), limiter()
	defer a.Close()
	defer b.Close()
	for i := range 4 {
		l := []*throttle.Limiter{a, b}[i%2]
		_, err := l.Take(context.Background(), "reports", nil)
		fmt.Println(err == nil)
	}
	// Output:
	// true
	// true
	// true
	// false
}

// What a Store does with a booking, it does by the rules of Ledger.
func ExampleBook() {
	limit := store.Limit{ID: "1s", Kind: store.MeterLimit, Size: 2, Rate: 10}
	booking := store.Booking{
		MaxWait: time.Second,
		Draws: []store.Draw{{
			Key:    "api.example.com",
			Limits: []store.Limit{limit},
			Units:  []store.UnitCost{{Unit: "requests", First: 1, All: 1}},
		}},
	}
	state := []store.Ledger{{}}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 4 {
		next, booked := store.Book(now, state, booking)
		fmt.Println(booked.Wait)
		state = next
	}
	// Output:
	// 0s
	// 0s
	// 100ms
	// 200ms
}
