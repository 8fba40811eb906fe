package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// endpoint is a receiver of events. It tells by their keys those that it has.
type endpoint struct {
	name   string
	takes  time.Duration // to answer
	hangs  bool          // never answers, until it is repaired
	down   bool          // cuts connections, until it is repaired
	server *httptest.Server

	mu       sync.Mutex
	repaired chan struct{}
	got      []int           // events, each once
	keys     map[string]bool // of these
	again    int             // events that came once more
	last     time.Time       // when the last new one came
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-e.repaired:
	default:
		switch {
		case e.hangs:
			io.Copy(io.Discard, r.Body)
			select {
			case <-r.Context().Done():
			case <-e.repaired:
			}
			panic(http.ErrAbortHandler) // too late
		case e.down:
			panic(http.ErrAbortHandler)
		}
	}
	time.Sleep(e.takes)
	var event struct {
		Event int `json:"event"`
	}
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	key := r.Header.Get("Idempotency-Key")
	if e.keys[key] {
		e.again++
		return
	}
	e.keys[key] = true
	e.got = append(e.got, event.Event)
	e.last = time.Now()
}

func (e *endpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.got)
}

// world is all endpoints.
type world struct {
	all    []*endpoint
	events int // for each
	start  time.Time
	once   sync.Once
}

func newWorld(events int) *world {
	w := &world{events: events, start: time.Now()}
	for i := range 12 {
		e := &endpoint{name: "fine", takes: 10 * time.Millisecond, repaired: make(chan struct{}), keys: map[string]bool{}}
		switch i {
		case 0:
			e.name, e.hangs = "hangs at first", true
		case 1:
			e.name, e.down = "down at first", true
		case 2, 3:
			e.name, e.takes = "slow", 50*time.Millisecond
		}
		e.server = httptest.NewServer(e)
		w.all = append(w.all, e)
	}
	return w
}

func (w *world) close() {
	w.repair() // lets handlers that hang go
	for _, e := range w.all {
		e.server.CloseClientConnections()
		e.server.Close()
	}
}

func (w *world) urls() (urls []string) {
	for _, e := range w.all {
		urls = append(urls, e.server.URL)
	}
	return urls
}

func (e *endpoint) healthy() bool { return !e.hangs && !e.down }

// healthyTotal is how many events the healthy endpoints are to get.
func (w *world) healthyTotal() (n int) {
	for _, e := range w.all {
		if e.healthy() {
			n += w.events
		}
	}
	return n
}

func (w *world) delivered() (n int) {
	for _, e := range w.all {
		n += e.count()
	}
	return n
}

func (w *world) healthyDone() bool {
	for _, e := range w.all {
		if e.healthy() && e.count() < w.events {
			return false
		}
	}
	return true
}

func (w *world) done() bool { return w.delivered() == w.events*len(w.all) }

// repair has all endpoints answer.
func (w *world) repair() {
	w.once.Do(func() {
		for _, e := range w.all {
			close(e.repaired)
		}
	})
}

// report prints a line for each endpoint.
func (w *world) report(out io.Writer) {
	fmt.Fprintf(out, "\n%-16s %9s  %-8s %11s  %s\n", "endpoint", "delivered", "in order", "twice", "all there after")
	for _, e := range w.all {
		e.mu.Lock()
		fmt.Fprintf(out, "%-16s %4d of %d  %-8s %11d  %v\n", e.name, len(e.got), w.events, ordered(e.got), e.again, e.last.Sub(w.start).Round(10*time.Millisecond))
		e.mu.Unlock()
	}
	fmt.Fprintln(out, "\nWhat came twice had the same key, so each event counts once.")
}

func ordered(events []int) string {
	for i, n := range events {
		if n != i {
			return "NO"
		}
	}
	return "yes"
}
