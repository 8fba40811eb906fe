package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/redisstore"
	"github.com/weirhttp/weir/throttle"
)

// job is what a worker is told on its standard input, which stays open: its
// end is the worker's.
type job struct {
	API, Redis string
	Members    int
}

// startWorker runs a copy of this program as a worker until ctx ends.
func startWorker(ctx context.Context, j job) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), workerEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return cmd, json.NewEncoder(in).Encode(j)
}

// work is a worker: ten goroutines that call the API as fast as they may.
func work(in io.Reader) error {
	var j job
	input := json.NewDecoder(in)
	if err := input.Decode(&j); err != nil {
		return err
	}
	client, done, err := newClient(j)
	if err != nil {
		return err
	}
	defer done()
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, in)
		stop()
	}()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := call(ctx, client, j.API); err != nil && ctx.Err() == nil {
					log.Print(err) // none is expected, whatever happens to Redis
				}
			}
		})
	}
	wg.Wait()
	return nil
}

// newClient returns a client that shares the API's quota with the other
// workers. This is all a program has to add.
func newClient(j job) (*http.Client, func(), error) {
	r := redis.NewClient(&redis.Options{Addr: j.Redis, ContextTimeoutEnabled: true})
	redis.SetLogger(quiet{})
	store, err := redisstore.New(r, redisstore.Config{})
	if err != nil {
		return nil, nil, err
	}
	t, err := weir.New(nil, weir.Config{Throttle: throttle.Config{
		Default: throttle.MustParseBudget("50/s"),
		Store:   store,
		Fleet:   throttle.FleetConfig{Members: j.Members},
	}})
	if err != nil {
		return nil, nil, err
	}
	return &http.Client{Transport: t}, func() { _ = errors.Join(t.Close(), r.Close()) }, nil
}

// quiet keeps go-redis from logging each connection it cannot make: the
// Transport's OnStore says it once.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func call(ctx context.Context, client *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}
