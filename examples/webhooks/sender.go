package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/outbox"
	"github.com/weirhttp/weir/retry"
)

// send is the sender: it keeps its events and delivers them until it is killed.
func send(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	var box *outbox.Transport
	transport, err := weir.New(nil, weir.Config{
		Retry: retry.Config{AttemptTimeout: time.Second}, // of an endpoint that hangs
		Breaker: breaker.Config{OnStateChange: func(c breaker.Change) {
			if c.To == breaker.Closed {
				box.Wake()
			}
		}},
	})
	if err != nil {
		return err
	}
	box, err = outbox.New(transport, outbox.Config{
		Path:       j.File,
		Patterns:   []string{}, // all are given to Enqueue
		MaxEntries: len(j.Endpoints)*j.Events + 1,
	})
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	failed := make(chan error, len(j.Endpoints)+1)
	for i := range j.Endpoints {
		all.Go(func() {
			if err := j.enqueue(box, i); err != nil {
				failed <- err
			}
		})
	}
	go func() { failed <- box.Run(context.Background(), 250*time.Millisecond) }()
	return <-failed
}

// enqueue keeps the events for one endpoint, and says so: what it has said is on
// the disk. An event that was kept but not said so, because the sender was
// killed in between, is kept again under the same key, by which the endpoint
// knows it.
func (j *job) enqueue(box *outbox.Transport, endpoint int) error {
	for n := j.Next[endpoint]; n < j.Events; n++ {
		body := fmt.Sprintf(`{"event": %d}`, n)
		req, err := http.NewRequest(http.MethodPost, j.Endpoints[endpoint], strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", fmt.Sprintf("event-%d-%d", endpoint, n))
		if _, err := box.Enqueue(req); err != nil {
			return err
		}
		fmt.Printf("kept %d %d\n", endpoint, n)
	}
	return nil
}
