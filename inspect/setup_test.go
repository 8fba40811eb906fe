package inspect

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// answers is a base that answers each host as the script says, else with 200.
type answers map[string]func(r *http.Request) (int, http.Header)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	status, header := 200, http.Header{}
	if do := a[r.URL.Host]; do != nil {
		status, header = do(r)
	}
	return testnet.Answer(r, status, header, http.NoBody), nil
}

func always(status int, headers ...string) func(*http.Request) (int, http.Header) {
	return func(*http.Request) (int, http.Header) {
		h := http.Header{}
		for i := 0; i < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		return status, h
	}
}

func transport(t testing.TB, base http.RoundTripper, c weir.Config) *weir.Transport {
	t.Helper()
	w, err := weir.New(base, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// send makes n requests of a host, one after the other.
func send(t testing.TB, w *weir.Transport, host string, n int) {
	t.Helper()
	for range n {
		resp, err := w.RoundTrip(request(t.Context(), host))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
}

func request(ctx context.Context, host string) *http.Request {
	r := &http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: host, Path: "/"}, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	return r.WithContext(ctx)
}

// ask makes a request of the page itself.
func ask(h http.Handler, method, target string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "localhost:8080"
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func post(h http.Handler, path string, form url.Values, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Host = "localhost:8080"
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func snapshot(t testing.TB, h http.Handler) Snapshot {
	t.Helper()
	w := ask(h, "GET", "/stats.json", nil)
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	var s Snapshot
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func hostNamed(t testing.TB, s Snapshot, name string) *Host {
	t.Helper()
	for _, h := range s.Hosts {
		if h.Name == name {
			return h
		}
	}
	t.Fatalf("no host %q", name)
	return nil
}

func budget(text string) throttle.Config {
	return throttle.Config{Default: throttle.MustParseBudget(text), DisableLearning: true}
}
