// Fleet runs several processes that use one API key. They share its quota through
// Redis, which is killed after a third of the time and is started again, without its
// data, after two thirds.
//
//	go run ./examples/fleet -workers 8
//
// The API allows 50 requests in any second and refuses the rest. The program prints,
// for each of the three phases, how many requests the API saw, how many it refused, and
// the most in any second.
// It needs redis-server (Debian: apt-get install redis-server).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"time"
)

// workerEnv makes a copy of this program a worker.
const workerEnv = "WEIR_FLEET_WORKER"

func main() {
	if os.Getenv(workerEnv) != "" {
		if err := work(os.Stdin); err != nil {
			log.Fatal(err)
		}
		return
	}
	workers := flag.Int("workers", 4, "processes")
	phase := flag.Duration("phase", 4*time.Second, "length of each of the three phases")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *workers, *phase); err != nil {
		log.Fatal(err)
	}
}

var errNoRedis = errors.New("redis-server is not installed (Debian: apt-get install redis-server)")

// run is the program: an API, a Redis, and workers that use the one through
// the other.
func run(ctx context.Context, out io.Writer, workers int, phase time.Duration) error {
	server, err := startRedis()
	if err != nil {
		return err
	}
	defer server.kill()
	api := newAPI(50, time.Second)
	defer api.close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var running []*exec.Cmd
	for range workers {
		w, err := startWorker(ctx, job{API: api.url(), Redis: server.addr, Members: workers})
		if err != nil {
			return err
		}
		running = append(running, w)
	}
	fmt.Fprintf(out, "%d processes share 50 requests a second\n\n%-28s %9s %9s %18s\n", workers, "phase", "requests", "refused", "most in a second")
	row := func(name string) {
		sleep(ctx, phase)
		p := api.next()
		fmt.Fprintf(out, "%-28s %9d %9d %18d\n", name, p.requests, p.refused, p.most)
	}
	row("Redis is up")
	server.kill()
	row("Redis is gone")
	if err := server.start(); err != nil {
		return err
	}
	row("Redis is back, empty")
	stop() // kills the workers; what they had booked ends by itself
	for _, w := range running {
		_ = w.Wait()
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
