// Llm keeps calls of a language model within a budget of tokens. What a call
// costs is known only when the answer is there, so each call reserves an
// estimate and settles what the answer says it used: at once, or at the end of
// a stream.
//
//	go run ./examples/llm
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/throttle"
)

const maxTokens = 1000 // the longest answer that is asked for

func main() {
	server := httptest.NewServer(model{})
	defer server.Close()
	if err := run(context.Background(), os.Stdout, nil, server.URL); err != nil {
		log.Fatal(err)
	}
}

// run makes calls until the budget says no, with and without settling.
func run(ctx context.Context, w io.Writer, base http.RoundTripper, url string) error {
	for _, way := range []struct {
		name string
		ask  func(*caller, context.Context, string) (answer, error)
	}{
		{"estimates only", (*caller).askOnly},
		{"settled", (*caller).ask},
		{"streamed, settled", (*caller).stream},
	} {
		transport, err := weir.New(base, weir.Config{Throttle: throttle.Config{
			Default: throttle.MustParseBudget("6000 tokens/m bucket 6000, 100/m bucket 100"),
			MaxWait: -1, // this program would rather count than wait
		}})
		if err != nil {
			return err
		}
		c := &caller{client: &http.Client{Transport: transport}, url: url}
		calls, used := 0, int64(0)
		for err == nil {
			var a answer
			if a, err = way.ask(c, ctx, "How long is the coast of Britain?"); err == nil {
				calls++
				used += a.Usage.TotalTokens
			}
		}
		var refused *throttle.Error
		if !errors.As(err, &refused) {
			return errors.Join(err, transport.Close())
		}
		fmt.Fprintf(w, "%s: %d calls used %d tokens, then %s: %s\n", way.name, calls, used, refused.Unit, refused.Reason)
		if err := transport.Close(); err != nil {
			return err
		}
	}
	return nil
}
