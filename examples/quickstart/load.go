package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// The job: 200 calls, made by 50 goroutines at the same time.
const (
	calls   = 200
	workers = 50
)

// progress is what has been done so far, for the live line.
type progress struct {
	done, failed atomic.Int64
}

// result is how the job went with one client.
type result struct {
	name     string
	took     time.Duration
	failed   int
	arrivals []arrival
}

func (r result) refused() (n int) {
	for _, a := range r.arrivals {
		if a.refused {
			n++
		}
	}
	return n
}

// call makes one call and says whether it worked.
type call func(ctx context.Context, url string) error

// run does the job: calls calls of url, workers at a time.
func run(ctx context.Context, url string, do call, p *progress) (took time.Duration) {
	start := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for next.Add(1) <= calls {
				if err := do(ctx, url); err != nil {
					p.failed.Add(1)
				}
				p.done.Add(1)
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// once is a call through client as it is: an answer other than 200 is an error.
func once(client *http.Client) call {
	return func(ctx context.Context, url string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("the API said %s", resp.Status)
		}
		return nil
	}
}

// naive is once in the loop that most programs begin with: up to six
// attempts, 100 ms after the first, twice as long after each that follows.
func naive(client *http.Client) call {
	attempt := once(client)
	return func(ctx context.Context, url string) (err error) {
		delay := 100 * time.Millisecond
		for range 6 {
			if err = attempt(ctx, url); err == nil || ctx.Err() != nil {
				return err
			}
			time.Sleep(delay)
			delay *= 2
		}
		return err
	}
}
