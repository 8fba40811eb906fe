package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirhttp/weir/outbox"
)

// events is a server that can be down. Programs have weir's Transport here.
type events struct{ down bool }

func (e *events) RoundTrip(r *http.Request) (*http.Response, error) {
	defer r.Body.Close()
	if e.down {
		return nil, errors.New("circuit is open")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	fmt.Printf("the server got %s with %q\n", body, r.Header.Get("Authorization"))
	status := http.StatusCreated
	if string(body) == "nonsense" {
		status = http.StatusUnprocessableEntity
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

func Example() {
	dir, err := os.MkdirTemp("", "outbox")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	server := &events{down: true}
	box, err := outbox.New(server, outbox.Config{
		Path:     filepath.Join(dir, "outbox.db"),
		Patterns: []string{"POST api.example.com/events"},
		Prepare: func(r *http.Request) error { // credentials are not kept
			r.Header.Set("Authorization", "Bearer new")
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	client := &http.Client{Transport: box}

	for _, event := range []string{"one", "two"} {
		resp, err := client.Post("https://api.example.com/events", "text/plain", strings.NewReader(event))
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		fmt.Println(resp.Status, resp.Header.Get(outbox.IDHeader))
	}

	n, err := box.Drain(context.Background())
	fmt.Println(n, err)
	server.down = false
	n, err = box.Drain(context.Background())
	fmt.Println(n, err)
	// Output:
	// 202 Accepted 0000000000000001
	// 202 Accepted 0000000000000002
	// 0 outbox: api.example.com: entry 0000000000000001: circuit is open
	// the server got one with "Bearer new"
	// the server got two with "Bearer new"
	// 2 <nil>
}

// A request is on the disk before anything of it is sent, whatever the server
// does.
func ExampleTransport_Enqueue() {
	dir, err := os.MkdirTemp("", "outbox")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	box, err := outbox.New(&events{}, outbox.Config{Path: filepath.Join(dir, "outbox.db"), Patterns: []string{}})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	for _, event := range []string{"one", "two"} {
		req, err := http.NewRequest("POST", "https://api.example.com/events", strings.NewReader(event))
		if err != nil {
			log.Fatal(err)
		}
		id, err := box.Enqueue(req)
		if err != nil {
			log.Fatal(err) // it is not kept, and will not be sent
		}
		fmt.Println(id)
	}
	for _, q := range box.Queues() {
		fmt.Println(q.Queue, q.Pending)
	}
	n, err := box.Drain(context.Background()) // programs call Run in a goroutine
	fmt.Println(n, err)
	// Output:
	// 0000000000000001
	// 0000000000000002
	// api.example.com 2
	// the server got one with ""
	// the server got two with ""
	// 2 <nil>
}

// What a server will not take is set aside, does not block the rest, and waits
// for somebody to look at it.
func ExampleTransport_List() {
	dir, err := os.MkdirTemp("", "outbox")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	server := &events{down: true}
	box, err := outbox.New(server, outbox.Config{Path: filepath.Join(dir, "outbox.db"), Patterns: []string{"*"}})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	client := &http.Client{Transport: box}
	for _, event := range []string{"nonsense", "sense"} {
		resp, err := client.Post("https://api.example.com/events", "text/plain", strings.NewReader(event))
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
	}
	server.down = false
	n, err := box.Drain(context.Background())
	fmt.Println(n, err)

	entries, err := box.List()
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range entries {
		fmt.Printf("%v, dead: %v, %s\n", e, e.Dead, e.Reason)
		if err := box.Discard(e.ID); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(box.Stats().Dead, "left")
	// Output:
	// the server got nonsense with ""
	// the server got sense with ""
	// 1 <nil>
	// 0000000000000001 POST api.example.com, dead: true, answer 422
	// 0 left
}

// Run drains in the background: now and then, and as soon as something, say
// the breaker's OnStateChange hook, says that it is worth while.
func ExampleTransport_Run() {
	dir, err := os.MkdirTemp("", "outbox")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	delivered := make(chan string)
	server := &events{down: true}
	box, err := outbox.New(server, outbox.Config{
		Path:     filepath.Join(dir, "outbox.db"),
		Patterns: []string{"POST api.example.com/"},
		Verdict: func(e outbox.Entry, resp *http.Response, err error) outbox.Verdict {
			if err == nil {
				delivered <- fmt.Sprint(e, ": ", resp.StatusCode)
			}
			return outbox.Default
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	resp, err := (&http.Client{Transport: box}).Post("https://api.example.com/", "text/plain", strings.NewReader("one"))
	if err != nil {
		log.Fatal(err)
	}
	resp.Body.Close()

	server.down = false
	ended := make(chan error)
	go func() { ended <- box.Run(context.Background(), 0) }()
	box.Wake() // from a hook: if c.To == breaker.Closed
	fmt.Println(<-delivered)
	fmt.Println(box.Close(), <-ended)
	// Output:
	// the server got one with ""
	// 0000000000000001 POST api.example.com: 201
	// <nil> outbox: closed
}
