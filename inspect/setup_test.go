package inspect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/inspect"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// States of hosts, as the page has them.
const ok, waiting, paused = "ok", "waiting", "paused"

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

func snapshot(t testing.TB, h http.Handler) inspect.Snapshot {
	t.Helper()
	w := ask(h, "GET", "/stats.json", nil)
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	var s inspect.Snapshot
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// question is what a page asks to see, as in the query of its stream.
type question struct {
	q, state, sort string
	page           int
	host, part     string
}

// event is the text of the first event of a page's stream.
func event(t testing.TB, h http.Handler, q question) string {
	t.Helper()
	left, leave := context.WithCancel(t.Context())
	leave() // when it has one
	ask := ask(h, "GET", "/events?"+url.Values{
		"q": {q.q}, "state": {q.state}, "sort": {q.sort}, "page": {strconv.Itoa(q.page)}, "host": {q.host}, "part": {q.part},
	}.Encode(), func(r *http.Request) { *r = *r.WithContext(left) })
	text, found := strings.CutPrefix(ask.Body.String(), "data: ")
	text, _, ends := strings.Cut(text, "\n\n") // one that takes a second may be followed by another
	if ask.Code != 200 || !found || !ends {
		t.Fatalf("%d %q", ask.Code, ask.Body)
	}
	return text
}

// frame is an event of a page's stream.
type frame struct {
	At       time.Time
	Total    int
	Counts   map[string]int
	Queue    int
	Oldest   float64
	Found    int
	From     int
	Rows     []*inspect.Host
	Detail   *inspect.Host
	Events   []inspect.Event
	Controls bool
	Outbox   []inspect.Kept
	Queues   int
}

// look returns what a page shows first that asks q.
func look(t testing.TB, h http.Handler, q question) (f frame) {
	t.Helper()
	if err := json.Unmarshal([]byte(event(t, h, q)), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// meet makes a request of each of n hosts.
func meet(t testing.TB, w *weir.Transport, n int) {
	for i := range n {
		send(t, w, fmt.Sprintf("host%d.example", i), 1)
	}
}

func hostNamed(t testing.TB, s inspect.Snapshot, name string) *inspect.Host {
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
