// Fallback answers from elsewhere when a host fails: from a cache of older answers,
// from another host, or with an empty answer, for a part that a page can do without.
//
//	go run ./examples/fallback
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
	"strings"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/retry"
)

// attemptTimeout is half of the 2 s for which readers wait. If the host is silent,
// the other half is left for the fallback, which may have to ask another host.
const attemptTimeout = time.Second

func main() {
	news := httptest.NewServer(says("news of today"))
	mirror := httptest.NewServer(says("news from the mirror"))
	defer mirror.Close()
	if err := run(context.Background(), os.Stdout, news.URL, mirror.URL, news.Close); err != nil {
		log.Fatal(err)
	}
}

func says(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s: %s", text, r.URL.Path)
	})
}

// run reads pages while news is up, and after it went down.
func run(ctx context.Context, w io.Writer, news, mirror string, down func()) error {
	cache := newCache(1 << 20)
	elsewhere := &otherHost{from: news, to: mirror}
	transport, err := weir.New(nil, weir.Config{
		Breaker: breaker.Config{
			Fallback:    first(cache.fallback, empty, elsewhere.fallback),
			FallbackOn:  breaker.OnFailure, // not only while the circuit is open
			Consecutive: 2,
			OpenFor:     time.Minute,
		},
		Retry: retry.Config{
			MaxAttempts:    1, // the fallback answers sooner than a second attempt
			AttemptTimeout: attemptTimeout,
		},
	})
	if err != nil {
		return err
	}
	client := &http.Client{Transport: cache.keep(transport)}
	elsewhere.client = client

	show(ctx, w, client, news+"/a")
	down()
	for range 3 {
		show(ctx, w, client, news+"/a")
	}
	show(ctx, w, client, news+"/b")
	show(ctx, w, client, news+"/suggestions/a")
	return transport.Close()
}

// first asks one fallback after the other until one has an answer.
func first(fallbacks ...func(*http.Request, error) (*http.Response, error)) func(*http.Request, error) (*http.Response, error) {
	return func(r *http.Request, refusal error) (*http.Response, error) {
		for _, f := range fallbacks {
			if resp, err := f(r, refusal); resp != nil || err != nil {
				return resp, err
			}
		}
		return nil, nil // the caller gets the refusal
	}
}

// empty is for what a page can do without.
func empty(r *http.Request, _ error) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.Path, "/suggestions/") {
		return nil, nil
	}
	return &http.Response{
		Status: "204 No Content", StatusCode: http.StatusNoContent, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Cache-Status": {"fallback; detail=empty"}}, Request: r, Body: http.NoBody,
	}, nil
}

// show makes one call and prints what came of it.
func show(ctx context.Context, w io.Writer, client *http.Client, url string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		fmt.Fprintln(w, err)
		return
	}
	resp, err := client.Do(req)
	var open *breaker.Error
	switch {
	case errors.As(err, &open):
		fmt.Fprintf(w, "%s: circuit is %s\n", req.URL.Path, open.State)
		return
	case err != nil:
		fmt.Fprintf(w, "%s: the host is down\n", req.URL.Path)
		return
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		fmt.Fprintln(w, err)
		return
	}
	from := resp.Header.Get("Cache-Status")
	if from == "" {
		from = "fresh"
	}
	fmt.Fprintf(w, "%s: %q (%s)\n", req.URL.Path, text, from)
}
