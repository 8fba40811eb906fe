package outbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// keepAll keeps one request for each body, all of them to url.
func keepAll(t *testing.T, o *Transport, url string, bodies ...string) (ids []string) {
	t.Helper()
	for _, b := range bodies {
		ids = append(ids, mustKeep(t, o, url, b))
	}
	return ids
}

func TestDrainInOrder(t *testing.T) {
	s := &server{down: true}
	o := box(t, s, Config{})
	var want []string
	for i := range 300 { // over a byte's worth of ids
		want = append(want, fmt.Sprint(i))
	}
	keepAll(t, o, "http://api.example/a?b=c", want...)
	if n, err := o.Drain(t.Context()); n != 0 || !errors.Is(err, errDown) {
		t.Errorf("Drain = %d, %v", n, err)
	}
	s.set(false)
	mustDrain(t, o, 300)
	if got := s.bodies(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
	keys := map[string]bool{}
	for _, r := range s.requests() {
		keys[r.key] = true
		if r.method != "POST" || r.url != "http://api.example/a?b=c" {
			t.Errorf("sent %+v", r)
		}
	}
	if len(keys) != 300 || s.open != 0 {
		t.Errorf("%d keys, %d answers left open", len(keys), s.open)
	}
	mustDrain(t, o, 0)
	if got := o.Stats(); got != (Stats{Kept: 300, Delivered: 300}) {
		t.Errorf("%+v", got)
	}
}

// A refusal ends the turn of its host, whose entries keep their order; other
// hosts go on, and the next Drain takes up where this one stopped.
func TestDrainStopsAndContinues(t *testing.T) {
	s := &server{down: true}
	refused := 0
	gate := tripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host == "a.api.example" && !s.down && refused < 2 {
			refused++
			r.Body.Close()
			return nil, fmt.Errorf("circuit is open")
		}
		return s.RoundTrip(r)
	})
	o := box(t, gate, Config{})
	for i := range 3 {
		mustKeep(t, o, "http://b.api.example/", fmt.Sprint("b", i))
		mustKeep(t, o, "http://a.api.example/", fmt.Sprint("a", i))
	}
	s.set(false)
	n, err := o.Drain(t.Context())
	var e *Error
	if n != 3 || !errors.As(err, &e) || e.Host != "a.api.example" || e.ID != mustList(t, o)[0].ID {
		t.Errorf("Drain = %d, %v", n, err)
	}
	if got, want := err.Error(), "outbox: a.api.example: entry 0000000000000002: circuit is open"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n, err := o.Drain(t.Context()); n != 0 || err == nil || refused != 2 {
		t.Errorf("Drain = %d, %v; %d refused, want one a turn", n, err, refused)
	}
	mustDrain(t, o, 3)
	if got, want := s.bodies(), []string{"b0", "b1", "b2", "a0", "a1", "a2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What each answer to a drained entry makes of it and of those behind it.
func TestVerdicts(t *testing.T) {
	tests := map[int]Verdict{
		200: Delivered, 202: Delivered, 204: Delivered, 303: Delivered,
		304: Dead, 400: Dead, 403: Dead, 404: Dead, 410: Dead, 422: Dead,
		401: Later, 407: Later, 408: Later, 409: Later, 421: Later, 425: Later, 429: Later, 500: Later, 502: Later, 503: Later, 504: Later,
	}
	for status, want := range tests {
		s := &server{down: true}
		o := box(t, s, Config{Client: &http.Client{Transport: s, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}})
		ids := keepAll(t, o, "http://api.example/p?token=SECRET", "first", "second")
		s.set(false)
		s.status = func(_ *http.Request, body string) int {
			if body == "first" {
				return status
			}
			return 200
		}
		n, err := o.Drain(t.Context())
		entries := mustList(t, o)
		switch want {
		case Delivered:
			if n != 2 || err != nil || len(entries) != 0 {
				t.Errorf("%d: %d delivered, %v, left %v", status, n, err, entries)
			}
		case Dead:
			if n != 1 || err != nil || len(entries) != 1 || !entries[0].Dead || entries[0].Reason != fmt.Sprintf("answer %d", status) || entries[0].Status != status {
				t.Errorf("%d: %d delivered, %v, left %+v", status, n, err, entries)
			}
		case Later:
			var e *Error
			if n != 0 || !errors.As(err, &e) || e.Status != status || e.ID != ids[0] || len(entries) != 2 || entries[0].Status != status {
				t.Errorf("%d: %d delivered, %v, left %+v", status, n, err, entries)
			} else if strings.Contains(err.Error(), "SECRET") {
				t.Errorf("%v tells the query", err)
			}
		}
		if s.open != 0 {
			t.Errorf("%d: %d answers left open", status, s.open)
		}
	}
}

// A redirect is followed where it repeats the request at the same host. Any
// other is the answer: a page to log in at is no delivery, a 303 is one whatever
// it leads to, and another host gets nobody's credentials.
func TestRedirects(t *testing.T) {
	for _, tc := range []struct {
		status    int
		from, to  string
		want      Verdict
		delivered string // where it went in the end
	}{
		{302, "https://api.example/p", "/login", Dead, "https://api.example/p"},
		{301, "https://api.example/p", "/new", Dead, "https://api.example/p"},
		{303, "https://api.example/p", "/broken", Delivered, "https://api.example/p"},
		{307, "https://api.example/p", "https://other.example/p", Dead, "https://api.example/p"},
		{307, "https://api.example/p", "http://api.example/q", Dead, "https://api.example/p"},
		{307, "http://api.example/p", "https://api.example/q", Delivered, "https://api.example/q"},
		{308, "https://api.example/p", "/q", Delivered, "https://api.example/q"},
		{308, "https://api.example/p", "/p", Dead, "https://api.example/p"}, // without end
	} {
		var last string
		down := true
		o := box(t, tripper(func(r *http.Request) (*http.Response, error) {
			if down {
				return nil, errDown
			}
			last = r.URL.String()
			resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}
			if last == tc.from {
				resp.StatusCode = tc.status
				resp.Header.Set("Location", tc.to)
			}
			if r.Method != "POST" {
				t.Errorf("%d to %s: %s %s", tc.status, tc.to, r.Method, r.URL)
			} else if b, err := io.ReadAll(r.Body); string(b) != "body" || err != nil {
				t.Errorf("%d to %s: %s got %q, %v", tc.status, tc.to, r.URL, b, err)
			}
			return resp, nil
		}), Config{})
		keepAll(t, o, tc.from, "body")
		down = false
		n, err := o.Drain(t.Context())
		if got := len(mustList(t, o)); n+got != 1 || (n == 1) != (tc.want == Delivered) || err != nil || last != tc.delivered {
			t.Errorf("%d to %s: %d delivered, at last to %s, %v", tc.status, tc.to, n, last, err)
		}
	}
}

// No URL shows in an error, also not one that the base's own client put there
// and somebody wrapped, and nothing that does harm where it is shown.
func TestErrorsShowNoURL(t *testing.T) {
	down := error(errDown)
	verdict := Dead
	o := box(t, tripper(func(*http.Request) (*http.Response, error) { return nil, down }), Config{
		Verdict: func(Entry, *http.Response, error) Verdict { return verdict },
	})
	mustKeep(t, o, "http://api.example/p?token=SECRET", "x")
	down = &url.Error{Op: "Post", URL: "http://login.example/?key=SECRET", Err: &url.Error{Op: "Get", URL: "http://SECRET/", Err: errDown}}
	if _, err := o.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if e := mustList(t, o)[0]; e.Reason != errDown.Error() {
		t.Errorf("reason %q, want %q", e.Reason, errDown)
	}
	verdict = Later
	id := mustKeep(t, o, "http://api.example/p?token=SECRET", "x")
	down = fmt.Errorf("twice: %w", &url.Error{Op: "Post", URL: "http://api.example/p?token=SECRET", Err: errors.New("a server's \x1b[31mred" + strings.Repeat(".", 1<<20))})
	_, err := o.Drain(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "outbox: api.example: entry "+id+`: a server's \x1b[31mred...`) || len(err.Error()) > 400 || !errors.Is(err, down) {
		t.Errorf("%.500v", err)
	}
}

// An entry that a server keeps failing on is set aside after MaxTries; 503 and
// 429 speak of the server and never count.
func TestPoison(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox.db")
	s := &server{down: true}
	status := 503
	s.status = func(_ *http.Request, body string) int {
		if body == "poison" {
			return status
		}
		return 200
	}
	c := Config{Path: path, MaxTries: 3}
	o := box(t, s, c)
	id := keepAll(t, o, "http://api.example/", "poison", "good")[0]
	s.set(false)
	drain := func(wantErr bool, tries int) {
		t.Helper()
		if n, err := o.Drain(t.Context()); n != 0 || (err != nil) != wantErr {
			t.Errorf("Drain = %d, %v", n, err)
		}
		if e := mustList(t, o)[0]; e.ID != id || e.Tries != tries {
			t.Errorf("%v has %d tries, want %d", e, e.Tries, tries)
		}
	}
	for range 5 {
		drain(true, 0)
	}
	status = 500
	drain(true, 1)
	drain(true, 2)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	o = box(t, s, c) // tries survive a restart
	mustDrain(t, o, 1)
	if e := mustList(t, o)[0]; !e.Dead || e.Tries != 3 || e.Reason != "answer 500" || e.String() != id+" POST api.example" {
		t.Errorf("%+v", e)
	}
	mustDrain(t, o, 0) // the dead are not sent
	if got := o.Stats(); got.Pending != 0 || got.Dead != 1 || got.SetAside != 1 || got.Delivered != 1 {
		t.Errorf("%+v", got)
	}
	if err := o.Requeue(id); err != nil {
		t.Fatal(err)
	}
	if e := mustList(t, o)[0]; e.Dead || e.Tries != 0 || e.Status != 0 {
		t.Errorf("requeued: %+v", e)
	}
	status = 200
	mustDrain(t, o, 1)
	if got := o.Stats(); got.Pending != 0 || got.Dead != 0 || got.Bytes != 0 {
		t.Errorf("%+v", got)
	}
}

func TestVerdictHook(t *testing.T) {
	for want, left := range map[Verdict]int{Delivered: 0, Later: 2, Dead: 2, Default: 1, Verdict(9): 1} {
		s := &server{down: true}
		var told []string
		o := box(t, s, Config{Verdict: func(e Entry, resp *http.Response, _ error) Verdict {
			b, _ := io.ReadAll(resp.Body)
			told = append(told, fmt.Sprintf("%s answered %d: %s", e.ID, e.Status, b))
			return want
		}})
		ids := keepAll(t, o, "http://api.example/", "x", "y")
		s.set(false)
		s.status = func(_ *http.Request, body string) int { return map[string]int{"x": 400, "y": 200}[body] }
		if _, err := o.Drain(t.Context()); (err != nil) != (want == Later) {
			t.Errorf("%d: %v", want, err)
		}
		if got := len(mustList(t, o)); got != left {
			t.Errorf("%d: %d left, want %d", want, got, left)
		}
		if want := ids[0] + " answered 400: answer"; told[0] != want {
			t.Errorf("told %q, want %q", told[0], want)
		}
	}
}

// An error of Prepare stops the host, is found by errors.Is, and sends nothing.
func TestPrepare(t *testing.T) {
	s := &server{down: true}
	expired := errors.New("token expired")
	fail := true
	o := box(t, s, Config{Prepare: func(r *http.Request) error {
		if fail {
			return expired
		}
		r.Header.Set("Authorization", "new")
		return nil
	}})
	keepAll(t, o, "http://api.example/", "x", "y")
	s.set(false)
	if n, err := o.Drain(t.Context()); n != 0 || !errors.Is(err, expired) || len(s.requests()) != 0 {
		t.Errorf("Drain = %d, %v", n, err)
	}
	fail = false
	mustDrain(t, o, 2)
	if got := s.heads[0].Get("Authorization"); got != "new" {
		t.Errorf("sent with %q", got)
	}
}

// The hook can set aside what only ever fails with an error.
func TestVerdictOfError(t *testing.T) {
	s := &server{down: true}
	o := box(t, s, Config{Verdict: func(_ Entry, resp *http.Response, err error) Verdict {
		if resp == nil && errors.Is(err, errDown) {
			return Dead
		}
		return Default
	}})
	keepAll(t, o, "http://api.example/?token=SECRET", "x", "y")
	mustDrain(t, o, 0)
	for _, e := range mustList(t, o) {
		if !e.Dead || e.Reason != "connection refused" {
			t.Errorf("%+v", e)
		}
	}
}

func TestMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{down: true}
		o := box(t, s, Config{MaxAge: time.Hour})
		old := mustKeep(t, o, "http://api.example/", "old")
		time.Sleep(time.Nanosecond)
		mustKeep(t, o, "http://api.example/", "just right")
		time.Sleep(time.Hour)
		s.set(false)
		mustDrain(t, o, 1)
		if e := mustList(t, o); len(e) != 1 || e[0].ID != old || e[0].Reason != "older than 1h0m0s" {
			t.Errorf("left %+v", e)
		}
	})
}

// A Drain that is cancelled ends at once, leaves the entry it was sending, and
// the next one sends it again with the same key.
func TestDrainCancelled(t *testing.T) {
	for _, how := range []string{"context", "Close"} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "outbox.db")
			s := &server{down: true}
			hang := tripper(func(r *http.Request) (*http.Response, error) {
				resp, err := s.RoundTrip(r)
				if len(s.requests()) == 2 {
					resp.Body.Close()
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				return resp, err
			})
			called := false
			o := box(t, hang, Config{Path: path, Verdict: func(Entry, *http.Response, error) Verdict {
				if len(s.requests()) == 2 {
					called = true
				}
				return Default
			}})
			keepAll(t, o, "http://api.example/", "x", "y", "z")
			s.set(false)
			ctx, cancel := context.WithCancel(t.Context())
			want := context.Canceled
			go func() {
				time.Sleep(time.Second)
				if how == "Close" {
					o.Close()
				} else {
					cancel()
				}
			}()
			if how == "Close" {
				want = ErrClosed
			}
			if n, err := o.Drain(ctx); n != 1 || err != want || called {
				t.Errorf("%s: Drain = %d, %v; hook called %v", how, n, err, called)
			}
			cancel()
			if how == "Close" {
				synctest.Wait()
				o = box(t, hang, Config{Path: path})
			}
			mustDrain(t, o, 2)
			if got, want := s.bodies(), []string{"x", "y", "y", "z"}; !reflect.DeepEqual(got, want) {
				t.Errorf("sent %q, want %q", got, want)
			}
			if r := s.requests(); r[1].key != r[2].key {
				t.Error("sent again with another key")
			}
		})
	}
}

// One sending lasts no longer than Timeout, from whatever side it is held up.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := true
		o := box(t, tripper(func(r *http.Request) (*http.Response, error) {
			if !down {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return nil, errDown
		}), Config{Timeout: time.Minute})
		mustKeep(t, o, "http://api.example/", "")
		down = false
		start := time.Now()
		_, err := o.Drain(t.Context())
		var e *Error
		if !errors.As(err, &e) || !e.Timeout() || time.Since(start) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// Of concurrent Drains one runs; no entry is sent by two.
func TestConcurrentDrains(t *testing.T) {
	s := &server{down: true}
	o := box(t, s, Config{})
	keepAll(t, o, "http://api.example/", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
	s.set(false)
	total := make(chan int)
	for range 8 {
		go func() {
			n, err := o.Drain(context.Background())
			if err != nil {
				t.Error(err)
			}
			total <- n
		}()
	}
	sum := 0
	for range 8 {
		sum += <-total
	}
	if got := strings.Join(s.bodies(), ""); sum != 10 || got != "0123456789" {
		t.Errorf("%d delivered: %s", sum, got)
	}
}
