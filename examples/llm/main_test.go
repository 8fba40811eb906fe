package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirhttp/weir/internal/testnet"
)

// 6000 tokens last for five estimates of 1008. Of calls that settle 120 each,
// 42 fit: after 41, 1080 are left, which is room for one more estimate.
func TestSettledCallsUseTheWholeBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, _, stop := testnet.Server(t, model{}, false)
		defer stop()
		var b strings.Builder
		if err := run(t.Context(), &b, base, "http://model.example/"); err != nil {
			t.Fatal(err)
		}
		want := `estimates only: 5 calls used 600 tokens, then tokens: wait too long
settled: 42 calls used 5040 tokens, then tokens: wait too long
streamed, settled: 42 calls used 5040 tokens, then tokens: wait too long
`
		if got := b.String(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}

func TestAnswersArrive(t *testing.T) {
	server := httptest.NewServer(model{})
	defer server.Close()
	c := &caller{client: http.DefaultClient, url: server.URL}
	for name, ask := range map[string]func() (answer, error){
		"whole":    func() (answer, error) { return c.call(t.Context(), "?", false, whole) },
		"streamed": func() (answer, error) { return c.call(t.Context(), "?", true, pieces) },
	} {
		if a, err := ask(); err != nil || a.Text != wisdom || a.Usage.TotalTokens != used {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

// A stream that breaks off says nothing of its cost, so nothing is settled.
func TestBrokenStreamIsAnError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("data: {\"text\": \"It\"}\n\n"))
	}))
	defer server.Close()
	c := &caller{client: http.DefaultClient, url: server.URL}
	if a, err := c.call(t.Context(), "?", true, pieces); err == nil {
		t.Errorf("%+v, want an error", a)
	}
}
