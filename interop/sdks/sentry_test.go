package sdks

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/getsentry/sentry-go"

	"github.com/weirhttp/weir"
)

// TestSentry: sentry-go drops events of a kind for as long as its server refuses
// that kind. Over weir it does not hear of a refusal that is over within its 30 s
// for one event: the event is late, and those behind it wait. A longer one it hears
// of. Events of another kind are then refused by weir, which pauses the host.
func TestSentry(t *testing.T) {
	for _, tt := range []struct {
		refuses        int // seconds
		errors, traces int // of three events each that arrive
		took           time.Duration
	}{
		{10, 3, 3, 10 * time.Second},
		{60, 0, 0, 0},
	} {
		t.Run(fmt.Sprint(tt.refuses, " s"), func(t *testing.T) {
			var mu sync.Mutex
			arrived := map[string]int{}
			var seen int
			var until time.Time
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				kind := "errors"
				if bytes.Contains(body, []byte(`"type":"transaction"`)) {
					kind = "traces"
				}
				mu.Lock()
				defer mu.Unlock()
				if seen++; seen == 1 {
					until = time.Now().Add(time.Duration(tt.refuses) * time.Second)
				}
				if kind == "errors" && time.Now().Before(until) {
					w.Header().Set("Retry-After", fmt.Sprint(tt.refuses))
					w.Header().Set("X-Sentry-Rate-Limits", fmt.Sprint(tt.refuses)+":error:organization")
					refuse(w, 429, `{"detail":"rate limited"}`)
					return
				}
				arrived[kind]++
				says(`{"id":"1"}`).ServeHTTP(w, r)
			})
			bubble(t, h, weir.Config{}, func(t *testing.T, c *http.Client) {
				client, err := sentry.NewClient(sentry.ClientOptions{
					Dsn: "http://key@sentry.test/1", HTTPTransport: c.Transport, Transport: sentry.NewHTTPSyncTransport(), EnableTracing: true,
				})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				start := time.Now()
				for range 3 {
					client.CaptureMessage("hello", nil, sentry.NewScope())
					client.CaptureEvent(&sentry.Event{Type: "transaction", Transaction: "t"}, nil, sentry.NewScope())
				}
				if took := time.Since(start); took < tt.took || took > tt.took+5*time.Second {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				mu.Lock()
				defer mu.Unlock()
				if arrived["errors"] != tt.errors || arrived["traces"] != tt.traces {
					t.Errorf("%v arrived, want %d errors and %d traces", arrived, tt.errors, tt.traces)
				}
			})
		})
	}
}
