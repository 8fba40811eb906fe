// Package citizens puts weir where programs put a RoundTripper: below and
// above what the Go world wraps around net/http. Time is virtual.
package citizens

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// bubble runs f with a base that reaches h under any name, over HTTP/1.1 and
// then over HTTP/2 without TLS. f closes what it opens; what it leaves fails.
func bubble(t *testing.T, h http.Handler, f func(t *testing.T, base *http.Transport)) {
	t.Helper()
	for name, h2 := range map[string]bool{"http1": false, "h2c": true} {
		t.Run(name, func(t *testing.T) { bubbleOf(t, h, h2, f) })
	}
}

func bubbleOf(t *testing.T, h http.Handler, h2 bool, f func(t *testing.T, base *http.Transport)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		base, n, stop := testnet.Server(t, h, h2)
		f(t, base)
		stop()
		synctest.Wait()
		if n.Open() != 0 {
			t.Errorf("%d connections left", n.Open())
		}
	})
}

// over is weir over base; it is closed when the test ends.
func over(t *testing.T, base http.RoundTripper, c weir.Config) *weir.Transport {
	t.Helper()
	rt, err := weir.New(base, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt
}

// read is a whole answer.
func read(t *testing.T, resp *http.Response, err error) (int, string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func post(t *testing.T, c *http.Client, url, body string) (int, string) {
	t.Helper()
	resp, err := c.Post(url, "text/plain", strings.NewReader(body))
	return read(t, resp, err)
}
