package weir_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhttp/weir/internal/testnet"
)

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
					t.Errorf("shown as %s", s)
				}
			}
		})
	}
}
