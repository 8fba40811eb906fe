package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// Whatever becomes of it, the request is not changed and its body is closed.
func TestRequestIsLeftAlone(t *testing.T) {
	refuse := tripper(func(r *http.Request) (*http.Response, error) { r.Body.Close(); return nil, errDown })
	unavailable := &server{status: func(*http.Request, string) int { return 503 }}
	tests := map[string]struct {
		base http.RoundTripper
		c    Config
		url  string
		body string
		kept bool
	}{
		"success":         {&server{}, Config{}, "http://api.example/a", "x", false},
		"kept":            {refuse, Config{}, "http://api.example/a", "x", true},
		"kept after 503":  {unavailable, Config{FailedStatus: []int{503}}, "http://api.example/a", "x", true},
		"503 is a result": {unavailable, Config{}, "http://api.example/a", "x", false},
		"not named":       {refuse, Config{}, "http://other.example/a", "x", false},
		"too long":        {refuse, Config{MaxBody: 3}, "http://api.example/a", "four", false},
		"too many bytes":  {refuse, Config{MaxBytes: 10}, "http://api.example/a", "x", false},
		"full with 503":   {unavailable, Config{MaxBytes: 10, FailedStatus: []int{503}}, "http://api.example/a", "x", false},
	}
	for name, tt := range tests {
		for _, length := range []int64{-1, int64(len(tt.body))} {
			t.Run(name, func(t *testing.T) {
				body := testnet.NewBody(tt.body)
				r, _ := http.NewRequest("POST", tt.url, nil)
				r.Body, r.ContentLength = body, length
				r.Header.Set("Authorization", "secret")
				before, header := *r, r.Header.Clone()
				resp, err := box(t, tt.base, tt.c).RoundTrip(r)
				if resp != nil {
					if _, err := io.ReadAll(resp.Body); err != nil {
						t.Error(err)
					}
					resp.Body.Close()
				}
				if got := err == nil && resp.Header.Get(IDHeader) != ""; got != tt.kept {
					t.Errorf("kept %v, want %v (%v)", got, tt.kept, err)
				}
				if !reflect.DeepEqual(*r, before) || !reflect.DeepEqual(r.Header, header) {
					t.Errorf("the request was changed: %+v", r)
				}
				if body.Closes() != 1 {
					t.Errorf("body closed %d times", body.Closes())
				}
			})
		}
	}
	if unavailable.open != 0 {
		t.Errorf("%d answers left open", unavailable.open)
	}
}

// What the base returned comes back as it is if nothing was kept: the same
// response, unread, or the same error.
func TestBaseAnswerIsReturned(t *testing.T) {
	answer := &http.Response{StatusCode: 503, Body: io.NopCloser(strings.NewReader("busy")), Header: http.Header{}}
	o := box(t, tripper(func(*http.Request) (*http.Response, error) { return answer, nil }), Config{FailedStatus: []int{503}, MaxEntries: 1})
	r, _ := http.NewRequest("POST", "http://api.example/", nil)
	if resp, err := o.RoundTrip(r); err != nil || resp.StatusCode != 202 {
		t.Fatalf("%v, %v", resp, err)
	}
	answer.Body = io.NopCloser(strings.NewReader("busy"))
	r, _ = http.NewRequest("POST", "http://other.api.example/", nil) // where nothing waits
	resp, err := o.RoundTrip(r)                                      // full
	if resp != answer || err != nil {
		t.Fatalf("got %p, %v; want %p", resp, err, answer)
	}
	if b, _ := io.ReadAll(resp.Body); string(b) != "busy" {
		t.Errorf("body %q was read before", b)
	}
	o = box(t, &server{down: true}, Config{MaxBytes: 1})
	if _, err := post(t, o, "http://api.example/", ""); err != errDown {
		t.Errorf("error %v, want %v", err, errDown)
	}
}

func TestAccepted(t *testing.T) {
	o := box(t, &server{down: true}, Config{Patterns: []string{"api.example", "HEAD api.example"}})
	for _, method := range []string{"POST", "HEAD"} {
		r, _ := http.NewRequest(method, "http://api.example/", nil)
		resp, err := o.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 202 || resp.Request != r || resp.Body.Close() != nil {
			t.Errorf("%+v, %v", resp, err)
		}
		if method == "HEAD" {
			if len(b) > 0 {
				t.Errorf("HEAD was answered with %q", b)
			}
			continue
		}
		var said struct {
			ID string `json:"outbox_id"`
		}
		if err := json.Unmarshal(b, &said); err != nil || said.ID != resp.Header.Get(IDHeader) || int64(len(b)) != resp.ContentLength {
			t.Errorf("body %s, %v", b, err)
		}
	}
}

// Which requests are kept when the server is down.
func TestWhichAreKept(t *testing.T) {
	tests := []struct {
		pattern, method, url string
		change               func(*http.Request)
		want                 bool
	}{
		{"api.example", "POST", "http://api.example/x", nil, true},
		{"api.example", "POST", "https://API.example.:443/x", nil, true},
		{"api.example", "POST", "http://api.example:8080/x", nil, false},
		{"*.example", "PATCH", "http://api.example/x", nil, true},
		{"POST api.example/v1/*/items", "POST", "http://api.example/v1/7/items", nil, true},
		{"POST api.example/v1/*/items", "PUT", "http://api.example/v1/7/items", nil, false},
		{"api.example", "GET", "http://api.example/x", nil, false},
		{"GET api.example", "GET", "http://api.example/x", nil, true},
		{"GET api.example", "", "http://api.example/x", nil, true},
		{"api.example", "POST", "http://api.example/x", func(r *http.Request) { r.Trailer = http.Header{"X": nil} }, false},
		{"api.example", "POST", "http://api.example/x", func(r *http.Request) { r.Header.Set("Upgrade", "h2c") }, false},
		{"CONNECT api.example", "CONNECT", "http://api.example/x", nil, false},
		{"api.example", "POST", "http://api.example/x", func(r *http.Request) { r.URL.Opaque = "//api.example/%2f" }, false},
		{"api.example", "POST", "http://api.example/x", func(r *http.Request) { r.URL.Scheme = "ftp" }, false},
		{"api.example", "POST", "http://api.example/x", func(r *http.Request) { r.Header = nil }, false},
		{"api.example", "POST", "http://api.example/x", func(r *http.Request) { r.URL = nil }, false},
		{"api.example", "POST", "http://api.example/x", func(r *http.Request) { r.Method = "PO ST" }, false},
	}
	for _, tt := range tests {
		o := box(t, &server{down: true}, Config{Patterns: []string{tt.pattern}})
		r, err := http.NewRequest(tt.method, tt.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Method = tt.method
		if tt.change != nil {
			tt.change(r)
		}
		if resp, err := o.RoundTrip(r); (err == nil) != tt.want {
			t.Errorf("%q, %s %s: kept %v, want %v", tt.pattern, tt.method, tt.url, resp != nil, tt.want)
		}
	}
}

// A request that no pattern names reaches the base as it is; one that is named
// differs by its key alone.
func TestPassThrough(t *testing.T) {
	var got *http.Request
	o := box(t, tripper(func(r *http.Request) (*http.Response, error) {
		got = r
		return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
	}), Config{Patterns: []string{"POST h"}})
	get, _ := http.NewRequest("GET", "http://h/", nil)
	if _, err := o.RoundTrip(get); err != nil || got != get {
		t.Errorf("GET: %v", err)
	}
	keyed, _ := http.NewRequest("POST", "http://h/", strings.NewReader("x"))
	keyed.Header["Idempotency-Key"] = nil // "idempotent, but do not say so"
	if _, err := o.RoundTrip(keyed); err != nil || got != keyed {
		t.Errorf("POST with a key: %v", err)
	}
	bare, _ := http.NewRequest("POST", "http://h/", http.NoBody)
	if _, err := o.RoundTrip(bare); err != nil || got == bare || got.Body != http.NoBody {
		t.Errorf("POST: %v, body %v", err, got.Body)
	}
	if k := got.Header.Get("Idempotency-Key"); len(k) < 26 {
		t.Errorf("key %q", k)
	}
}

// The key of the first sending, whoever chose it, is that of every other.
func TestKeyIsOnTheFirstSending(t *testing.T) {
	for _, own := range []string{"", "order-7"} {
		var first string
		s := &server{}
		o := box(t, tripper(func(r *http.Request) (*http.Response, error) {
			if first == "" {
				first = r.Header.Get("X-Request-Key")
				return nil, errDown
			}
			return s.RoundTrip(r)
		}), Config{KeyHeader: "x-request-key"})
		r, _ := http.NewRequest("POST", "http://api.example/", nil)
		if own != "" {
			r.Header.Set("X-Request-Key", own)
		}
		if _, err := o.RoundTrip(r); err != nil {
			t.Fatal(err)
		}
		if first == "" || own != "" && first != own || mustList(t, o)[0].Key != first {
			t.Errorf("first sent with %q, want %q, kept %v", first, own, mustList(t, o))
		}
		mustDrain(t, o, 1)
		if got := s.heads[0].Get("X-Request-Key"); got != first {
			t.Errorf("sent again with %q, first with %q", got, first)
		}
	}
}

// No credential reaches the file unless it is asked for.
func TestCredentialsStayOut(t *testing.T) {
	for _, keep := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "outbox.db")
		c := Config{Path: path, KeepCredentials: keep, Secrets: []string{"x-own"}}
		if keep {
			c.Secrets = nil
		}
		s := &server{down: true}
		o := box(t, s, c)
		r, _ := http.NewRequest("POST", "http://user:SECRET@api.example/", nil)
		for _, name := range append(credentials(), "X-Own") {
			r.Header.Set(name, "SECRET")
		}
		r.Header["x-api-key"] = []string{"SECRET"} // as some servers insist on
		r.Header.Set("X-Plain", "plain")
		if _, err := o.RoundTrip(r); err != nil {
			t.Fatal(err)
		}
		again, err := o.Request(t.Context(), mustList(t, o)[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		if found := again.URL.User != nil; found != keep {
			t.Errorf("KeepCredentials %v, but userinfo kept: %v", keep, found)
		}
		for name, values := range again.Header {
			if values[0] == "SECRET" && !keep {
				t.Errorf("%s was kept", name)
			}
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// Header values lie in the file in base64.
		if found := bytes.Contains(data, []byte("U0VDUkVU")); found != keep {
			t.Errorf("KeepCredentials %v, but on the disk: %v", keep, found)
		}
		s.set(false)
		mustDrain(t, o, 1)
		if h := s.heads[0]; h.Get("X-Plain") != "plain" || (h.Get("Authorization") != "") != keep {
			t.Errorf("KeepCredentials %v: sent with %v", keep, h)
		}
	}
}

// Who gave up does not want the request sent; whose time was up does.
func TestGaveUp(t *testing.T) {
	o := box(t, tripper(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }), Config{})
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	long, cancel := context.WithTimeout(t.Context(), time.Hour)
	cancel()
	for _, ctx := range []context.Context{cancelled, long} {
		r, _ := http.NewRequestWithContext(ctx, "POST", "http://api.example/", strings.NewReader("x"))
		if _, err := o.RoundTrip(r); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	}
	passed, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	r, _ := http.NewRequestWithContext(passed, "POST", "http://api.example/", strings.NewReader("x"))
	if resp, err := o.RoundTrip(r); err != nil || resp.StatusCode != 202 {
		t.Errorf("deadline: %v", err)
	}
}

// http.Client's own timeout is a deadline too, and the client hands the 202 on.
func TestClientTimeout(t *testing.T) {
	block := tripper(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	c := &http.Client{Transport: box(t, block, Config{}), Timeout: time.Nanosecond}
	resp, err := c.Post("http://api.example/", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || !bytes.Contains(b, []byte(resp.Header.Get(IDHeader))) {
		t.Errorf("%s, %v", b, err)
	}
}

// The whole way over a real connection, through http.Client, redirects
// included.
func TestOverTheWire(t *testing.T) {
	var got []string
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusPermanentRedirect)
			return
		}
		got = append(got, r.Method+" "+r.RequestURI+" "+r.Host+" "+string(b)+" "+r.Header.Get("X-Latin"))
	})
	srv := httptest.NewServer(h)
	defer srv.Close()
	down := true
	o := box(t, tripper(func(r *http.Request) (*http.Response, error) {
		if down {
			r.Body.Close()
			return nil, errDown
		}
		return http.DefaultTransport.RoundTrip(r)
	}), Config{Patterns: []string{srv.Listener.Addr().String()}})
	defer o.CloseIdleConnections()
	client := &http.Client{Transport: o}
	r, _ := http.NewRequest("PUT", srv.URL+"/a%2Fb?q=%20#frag", strings.NewReader("body"))
	r.Host = "alias.example"
	r.Header.Set("X-Latin", "caf\xe9")
	for _, r := range []*http.Request{r, must(http.NewRequest("POST", srv.URL+"/old", strings.NewReader("moved")))} {
		resp, err := client.Do(r)
		if err != nil || resp.StatusCode != 202 {
			t.Fatalf("%v, %v", resp, err)
		}
		resp.Body.Close()
	}
	down = false
	o.s.Client = client // its Transport is the outbox itself
	mustDrain(t, o, 2)
	want := []string{"PUT /a%2Fb?q=%20 alias.example body caf\xe9", "POST /new " + srv.Listener.Addr().String() + " moved "}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// What Drain sends through the outbox itself is not kept a second time.
func TestDrainedIsNotKept(t *testing.T) {
	s := &server{down: true}
	o := box(t, s, Config{})
	o.s.Client = &http.Client{Transport: o}
	mustKeep(t, o, "http://api.example/", "x")
	if n, err := o.Drain(t.Context()); n != 0 || !errors.Is(err, errDown) {
		t.Errorf("Drain = %d, %v", n, err)
	}
	if n := len(mustList(t, o)); n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
}

type idle struct {
	http.RoundTripper
	closed int
}

func (i *idle) CloseIdleConnections() { i.closed++ }

func TestCloseIdleConnections(t *testing.T) {
	base := &idle{}
	(&http.Client{Transport: box(t, base, Config{})}).CloseIdleConnections()
	if base.closed != 1 {
		t.Errorf("forwarded %d times", base.closed)
	}
}
