package sdks

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle"
)

// ask is a completion: a POST without an idempotency key.
func ask(t *testing.T, c *http.Client, own bool) error {
	ai := newAnthropic(c, own)
	_, err := ai.Messages.New(t.Context(), anthropic.MessageNewParams{
		Model: "claude", MaxTokens: 10, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))},
	})
	return err
}

const said = `{"id":"m","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`

// TestOverloaded: of a completion that is answered with 529 first, the SDK's loop
// sends another. weir's does not, because the first may have cost tokens, unless
// Classify says that a 529 was not executed.
func TestOverloaded(t *testing.T) {
	classified := weir.Config{Throttle: throttle.Config{Classify: func(resp *http.Response, s headers.Signal) headers.Signal {
		if resp.StatusCode == 529 {
			s.Kind = headers.Quota
		}
		return s
	}}}
	for _, tt := range []struct {
		name   string
		own    bool
		c      weir.Config
		served bool
		sent   int64
	}{
		{"both loops", true, weir.Config{}, true, 2},
		{"the SDK's off", false, weir.Config{}, false, 1},
		{"the SDK's off, 529 classified", false, classified, true, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var seen atomic.Int64
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if seen.Add(1) == 1 {
					refuse(w, 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
					return
				}
				says(said).ServeHTTP(w, r)
			})
			bubble(t, h, tt.c, func(t *testing.T, c *http.Client) {
				if err := ask(t, c, tt.own); (err == nil) != tt.served {
					t.Errorf("served: %v, want %v (%v)", err == nil, tt.served, err)
				}
			})
			if seen.Load() != tt.sent {
				t.Errorf("the server saw %d, want %d", seen.Load(), tt.sent)
			}
		})
	}
}

// TestRefusalBeyondMaxWait: a refusal that outlasts MaxWait reaches the SDK, whose
// loop then waits anew: for MaxWait each time if the server does not say how long,
// and for as long as the server says if it does.
func TestRefusalBeyondMaxWait(t *testing.T) {
	for _, tt := range []struct {
		name       string
		retryAfter string
		own        bool
		served     bool
		from, to   time.Duration
	}{
		{"nothing said, the SDK's off", "", false, false, 70 * time.Second, 80 * time.Second},
		{"nothing said, both loops", "", true, false, 3 * 70 * time.Second, 3 * 80 * time.Second},
		{"Retry-After, the SDK's off", "200", false, false, 0, time.Second},
		{"Retry-After, both loops", "200", true, true, 200 * time.Second, 210 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tt.retryAfter != "" && time.Since(start) >= 200*time.Second {
					says(said).ServeHTTP(w, r)
					return
				}
				if tt.retryAfter != "" {
					w.Header().Set("Retry-After", tt.retryAfter)
				}
				refuse(w, 429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`)
			})
			bubble(t, h, weir.Config{}, func(t *testing.T, c *http.Client) {
				start = time.Now()
				err := ask(t, c, tt.own)
				if (err == nil) != tt.served {
					t.Errorf("served: %v, want %v (%v)", err == nil, tt.served, err)
				}
				if took := time.Since(start); took < tt.from || took > tt.to {
					t.Errorf("took %v, want %v to %v", took, tt.from, tt.to)
				}
			})
		})
	}
}
