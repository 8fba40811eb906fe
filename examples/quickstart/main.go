// Quickstart makes the same 200 calls of a quota-limited API twice: through a
// plain http.Client with the retry loop that most programs begin with, and
// through weir. Nobody tells weir the quota; it reads the API's answers.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/weirhttp/weir"
	"golang.org/x/term"
)

func main() {
	fmt.Printf("%d calls from %d goroutines, to an API that allows %d requests per second\n\n", calls, workers, quota)

	// This is the line that changes: weir.NewClient instead of &http.Client.
	client, err := weir.NewClient(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	plain := measure("plain http.Client", naive(&http.Client{}))
	polite := measure("weir", once(client))
	report(os.Stdout, plain, polite)
}

// measure starts a fresh API on a loopback port and does the job once.
func measure(name string, do call) result {
	a := new(api)
	server := httptest.NewServer(a)
	defer server.Close()

	var p progress
	stop := show(os.Stderr, name, &p, a)
	took := run(context.Background(), server.URL, do, &p)
	stop()
	return result{name: name, took: took, failed: int(p.failed.Load()), arrivals: a.seen()}
}

// show keeps a live line on w until the returned function is called: ten times
// a second on a terminal, else a line of its own every two seconds.
func show(w *os.File, name string, p *progress, a *api) (stop func()) {
	every, begin, end := 2*time.Second, "", "\n"
	if term.IsTerminal(int(w.Fd())) {
		every, begin, end = 100*time.Millisecond, "\r\x1b[K", ""
	}
	quit, done := make(chan struct{}), make(chan struct{})
	start := time.Now()
	go func() {
		defer close(done)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				io.WriteString(w, begin+line(name, time.Since(start), p, a)+end)
			case <-quit:
				io.WriteString(w, begin)
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

func line(name string, elapsed time.Duration, p *progress, a *api) string {
	r := result{arrivals: a.seen()}
	return fmt.Sprintf("%s: %4.1f s, %d of %d calls done, %d failed; %d requests sent, %d answered 429",
		name, elapsed.Seconds(), p.done.Load(), calls, p.failed.Load(), len(r.arrivals), r.refused())
}
