package sdks

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	openaiopt "github.com/openai/openai-go/v3/option"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/throttle"
)

// TestSettleThroughAnSDK: an SDK keeps the answer to itself, but a middleware of
// its, or a RoundTripper between it and weir, sees it. What a call really cost is
// there for the next at once.
func TestSettleThroughAnSDK(t *testing.T) {
	settle := func(r *http.Request, next openaiopt.MiddlewareNext) (*http.Response, error) {
		resp, err := next(r)
		if err != nil {
			return resp, err
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return resp, err
		}
		var said struct{ Usage struct{ Total_tokens int64 } }
		if json.Unmarshal(body, &said) == nil && said.Usage.Total_tokens > 0 {
			if err := throttle.Settle(resp, throttle.Cost{"tokens": said.Usage.Total_tokens}); err != nil {
				t.Error(err)
			}
		}
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(body))
		return resp, nil
	}
	c := weir.Config{}
	c.Throttle.Budgets = map[string]throttle.Budget{"api.openai.test": throttle.MustParseBudget("100 tokens/h bucket 100")}
	bubble(t, says(`{"id":"gpt","object":"model","usage":{"total_tokens":10}}`), c, func(t *testing.T, client *http.Client) {
		ai := newOpenAI(client, true)
		start := time.Now()
		ctx := throttle.WithCost(t.Context(), throttle.Cost{"tokens": 90})
		for range 2 { // 180 tokens reserved, 20 used
			if _, err := ai.Models.Get(ctx, "gpt", openaiopt.WithMiddleware(settle)); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("the second call waited %v for tokens that the first did not use", d)
		}
		if _, err := ai.Models.Get(ctx, "gpt"); err == nil {
			t.Error("80 of 100 were left, and 90 were granted")
		}
	})
}
