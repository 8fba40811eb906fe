package main

import (
	"context"
	"io"
	"math"
	"net/http"
	"sync"
	"time"
)

// apis are what the program calls.
func apis() []string {
	return []string{
		"maps.example/tiles", "maps.example/geocode", "tickets.example/", "search.example/",
		"cdn.example/", "files.example/", "payments.example/", "mail.example/",
	}
}

// demand is what the program wants of each API, in requests per second.
// Where it comes in waves there are calm times in which queues run dry.
func demand(api string, age time.Duration) float64 {
	wave := 1 + math.Sin(age.Seconds()/6)
	switch api {
	case "maps.example/tiles":
		return 4 // of which 8 are allowed
	case "maps.example/geocode":
		return 3 * wave // of which 3 are
	case "tickets.example/":
		return 3 + 3*wave // of which 5 are allowed
	case "search.example/":
		return 9 // of which 8 are
	case "cdn.example/":
		return 12
	case "files.example/":
		return 2 * wave
	}
	return 2
}

// traffic makes calls until ctx ends, and returns when the last is over. Each
// has twenty seconds: who waits for longer gives up.
func traffic(ctx context.Context, client *http.Client) {
	var calls sync.WaitGroup
	defer calls.Wait()
	start := time.Now()
	owed := make(map[string]float64)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, api := range apis() {
			owed[api] += demand(api, time.Since(start)) / 10
			for ; owed[api] >= 1; owed[api]-- {
				calls.Go(func() { call(ctx, client, api) })
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// call makes one call. The page shows how it went.
func call(ctx context.Context, client *http.Client, api string) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+api, nil)
	if err != nil {
		return
	}
	if resp, err := client.Do(r); err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}
