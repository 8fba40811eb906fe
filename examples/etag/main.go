// Etag polls an API far more often than its quota seems to allow. The API, like
// GitHub's, does not count a conditional request whose answer is 304 Not Modified.
//
//	go run ./examples/etag
//
// Nothing leaves this machine.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/throttle"
)

const (
	quota = 10 // answers an hour that are not 304
	paths = 5  // that are polled
	polls = 20 // of each
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal("etag: ", err)
	}
}

func run(w io.Writer) error {
	fmt.Fprintf(w, "%d polls of each of %d paths, quota %d requests an hour\n\n%-22s%10s%10s%10s%10s\n", polls, paths, quota, "", "answered", "refused", "200", "304")
	for _, conditional := range []bool{false, true} {
		if err := poll(w, conditional); err != nil {
			return err
		}
	}
	return nil
}

// poll polls a new API and prints what came of it.
func poll(w io.Writer, conditional bool) error {
	server := &api{version: map[string]int{}}
	s := httptest.NewServer(server)
	defer s.Close()
	transport, err := weir.New(nil, weir.Config{Throttle: throttle.Config{
		Budgets: map[string]throttle.Budget{strings.TrimPrefix(s.URL, "http://"): throttle.MustParseBudget(fmt.Sprintf("%d/h burst %d", quota, quota))},
		MaxWait: -1, // who polls comes again anyway
	}})
	if err != nil {
		return err
	}
	defer transport.Close()
	client, name := &http.Client{Transport: transport}, "every answer anew"
	if conditional {
		client.Transport, name = &cache{base: free{transport}, most: 1 << 20, kept: map[string][]byte{}}, "conditional requests"
	}
	answered, refused := 0, 0
	for i := range polls {
		for p := range paths {
			path := fmt.Sprintf("/repos/%d", p)
			if i == polls/2 && p == 0 {
				server.change(path)
			}
			want := server.says(path)
			resp, err := client.Get(s.URL + path)
			if err != nil {
				refused++
				continue
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || string(body) != want {
				return fmt.Errorf("%s: %q, want %q: %v", path, body, want, err)
			}
			answered++
		}
	}
	fmt.Fprintf(w, "%-22s%10d%10d%10d%10d\n", name, answered, refused, server.counted, server.spared)
	return nil
}
