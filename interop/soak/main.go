// Soak runs weir for a while against a server of 200 hosts that limit, refuse,
// fail, stall and go away, while budgets change and Redis is restarted, and
// says at the end what did not hold.
//
//	go run ./interop/soak -minutes 10
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	minutes := flag.Float64("minutes", 10, "how long to run")
	workers := flag.Int("workers", 64, "callers at a time")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the workload")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s := settings{
		length: time.Duration(*minutes * float64(time.Minute)), workers: *workers, seed: *seed,
		redis: redisServer(), log: func(format string, a ...any) { fmt.Printf(format+"\n", a...) },
	}
	s.log("seed %d, %v, %d workers, redis-server: %q", s.seed, s.length, s.workers, s.redis)
	failures := run(ctx, s)
	for _, f := range failures {
		fmt.Fprintln(os.Stderr, "FAIL", f)
	}
	if len(failures) > 0 {
		os.Exit(1)
	}
	fmt.Println("everything held")
}
