package redisstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/weirhttp/weir/redisstore"
	"github.com/weirhttp/weir/throttle"
)

// Two processes, here two Limiters, share 3 requests an hour.
func ExampleNew() {
	server, err := miniredis.Run() // in production, Redis
	if err != nil {
		panic(err)
	}
	defer server.Close()
	process := func() *throttle.Limiter {
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
		store, err := redisstore.New(client, redisstore.Config{})
		if err != nil {
			panic(err)
		}
		l, err := throttle.NewLimiter(throttle.LimiterConfig{
			Default: throttle.MustParseBudget("3/h burst 3"),
			MaxWait: -1, // do not wait
			Store:   store,
			Fleet:   throttle.FleetConfig{Members: 2, Deadline: 10 * time.Second},
		})
		if err != nil {
			panic(err)
		}
		return l
	}
	a, b := process(), process()
	defer a.Close()
	defer b.Close()
	for i := range 4 {
		l := []*throttle.Limiter{a, b}[i%2]
		_, err := l.Take(context.Background(), "api.example.com", nil)
		fmt.Println(err == nil)
	}
	// Output:
	// true
	// true
	// true
	// false
}
