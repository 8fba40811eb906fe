package chaintest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// TestSecretsStayIn: no error's text has what a URL or header holds in secret.
func TestSecretsStayIn(t *testing.T) {
	const secret = "hunter2"
	failures := map[string]testnet.Func{
		"reset": broken(),
		"url": func(r *http.Request) (*http.Response, error) {
			return nil, &url.Error{Op: "Get", URL: r.URL.String(), Err: io.ErrUnexpectedEOF}
		},
		"joined": func(r *http.Request) (*http.Response, error) {
			return nil, errors.Join(io.ErrUnexpectedEOF, &url.Error{Op: "Get", URL: r.URL.String(), Err: io.EOF})
		},
		"429": func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 429, http.Header{"Retry-After": {"9999"}}, nil), nil
		},
		"hang": func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
	}
	for name, base := range failures {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := must(weir.New(base, weir.Config{Throttle: throttle.Config{
					Default:   throttle.MustParseBudget("60/s, 90/m"),
					Partition: func(*http.Request) string { return secret },
					Lane:      func(*http.Request) string { return secret },
				}, Breaker: breaker.Config{Shard: func(*http.Request) string { return secret }}}))(t)
				for range 30 {
					r := get(t, "http://me:"+secret+"@h/p?key="+secret+"#"+secret)
					r.Header.Set("Authorization", secret)
					resp, err := rt.RoundTrip(r)
					if err == nil {
						resp.Body.Close()
					} else if strings.Contains(err.Error(), secret) {
						t.Fatalf("%v", err)
					}
				}
			})
		})
	}
}

// TestContextsShowNoSecrets: contexts are logged. Those that a base sees, and
// those in an answer, show what they descend from and nothing of the request.
func TestContextsShowNoSecrets(t *testing.T) {
	for _, l := range layers() {
		t.Run(l.name, func(t *testing.T) {
			var shown []string
			rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
				again := r.WithContext(context.WithValue(r.Context(), valueKey{}, 1)) // and of what descends from it
				shown = append(shown, fmt.Sprint(r.Context()), fmt.Sprintf("%+v", r.Context()), fmt.Sprint(again.Context()))
				return stub(r)
			}))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := get(t, "http://user:canary@h/canary?token=canary").WithContext(ctx)
			r.Header.Set("Authorization", "Bearer canary")
			resp, err := rt.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			for _, s := range append(shown, fmt.Sprint(resp.Request.Context())) {
				if strings.Contains(s, "canary") || !strings.HasPrefix(s, fmt.Sprint(ctx)) {
					t.Errorf("a context is shown as %s, want what its parent shows and nothing of the request", s)
				}
			}
		})
	}
}
