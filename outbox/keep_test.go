package outbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// asAfterKill opens a copy of an open outbox's file, as it is on the disk.
func asAfterKill(t *testing.T, o *Transport, base http.RoundTripper) *Transport {
	t.Helper()
	data, err := os.ReadFile(o.s.Path)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return box(t, base, Config{Path: path, Patterns: []string{"*"}})
}

// Before anything is sent the request is on the disk, and the caller has its
// answer, however long the server takes.
func TestKeptBeforeItIsSent(t *testing.T) {
	for _, how := range []string{"KeepFirst", "Enqueue"} {
		synctest.Test(t, func(t *testing.T) {
			var o *Transport
			var onDisk []Entry
			hang := tripper(func(r *http.Request) (*http.Response, error) {
				onDisk = mustList(t, asAfterKill(t, o, nil))
				<-r.Context().Done()
				return nil, r.Context().Err()
			})
			o = box(t, hang, Config{KeepFirst: how == "KeepFirst"})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- o.Run(ctx, time.Minute) }()
			synctest.Wait()
			start := time.Now()
			r, _ := http.NewRequest("POST", "http://api.example/", testnet.NewBody("x"))
			id := ""
			if how == "Enqueue" {
				id = must(o.Enqueue(r))
			} else {
				resp := must(o.RoundTrip(r))
				if id = resp.Header.Get(IDHeader); resp.StatusCode != 202 {
					t.Errorf("answer %d", resp.StatusCode)
				}
			}
			if took := time.Since(start); took != 0 || id == "" {
				t.Errorf("%s: id %q after %v", how, id, took)
			}
			if after := mustList(t, asAfterKill(t, o, nil)); len(after) != 1 || after[0].ID != id {
				t.Errorf("%s: killed now, %v would be left", how, after)
			}
			synctest.Wait()
			if len(onDisk) != 1 || onDisk[0].ID != id || onDisk[0].Key == "" {
				t.Errorf("%s: when it was sent there was %+v on the disk", how, onDisk)
			}
			cancel()
			if err := <-ended; err != context.Canceled {
				t.Error(err)
			}
		})
	}
}

// Enqueue needs no pattern, reads and closes the body, leaves the request alone
// and takes its key.
func TestEnqueue(t *testing.T) {
	s := &server{}
	o := box(t, s, Config{Patterns: []string{}})
	for _, key := range []string{"", "order-7"} {
		body := testnet.NewBody("payload")
		r, _ := http.NewRequest("PUT", "http://api.example/a?b=c", nil)
		r.Body, r.ContentLength = body, -1
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		before, header := *r, r.Header.Clone()
		id := must(o.Enqueue(r))
		if !reflect.DeepEqual(*r, before) || !reflect.DeepEqual(r.Header, header) || body.Closes() != 1 {
			t.Errorf("the request was changed: %+v, body closed %d times", r, body.Closes())
		}
		e := mustList(t, o)[0]
		if e.ID != id || e.Method != "PUT" || e.Queue != "api.example" || key != "" && e.Key != key || len(e.Key) < 7 {
			t.Errorf("kept %+v", e)
		}
		mustDrain(t, o, 1)
		got := s.requests()
		if last := got[len(got)-1]; last != (seen{"PUT", "http://api.example/a?b=c", "api.example", e.Key, "payload"}) {
			t.Errorf("sent %+v", last)
		}
	}
	resp, err := o.RoundTrip(must(http.NewRequest("POST", "http://api.example/", nil)))
	if err != nil || resp.StatusCode != 200 || len(s.requests()) != 3 {
		t.Errorf("a request that no pattern names: %v, %v", resp, err)
	}
}

// What cannot be kept is an error that says why, and nothing of it is sent.
func TestEnqueueErrors(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		c      Config
		change func(*http.Request)
		want   error
	}{
		"full":      {Config{MaxEntries: 1}, nil, ErrFull},
		"no room":   {Config{MaxBytes: 700}, func(r *http.Request) { r.Header.Set("X", strings.Repeat("x", 700)) }, ErrFull},
		"long":      {Config{MaxBody: 3}, nil, ErrUnfit},
		"long pipe": {Config{MaxBody: 3}, func(r *http.Request) { r.ContentLength, r.GetBody = -1, nil }, ErrUnfit},
		"broken":    {Config{}, func(r *http.Request) { r.GetBody, r.Body = nil, testnet.BodyOf(failing{}) }, ErrUnfit},
		"short":     {Config{}, func(r *http.Request) { r.GetBody, r.ContentLength = nil, 100 }, ErrUnfit},
		"trailers":  {Config{}, func(r *http.Request) { r.Trailer = http.Header{"X": nil} }, ErrUnfit},
		"upgrade":   {Config{}, func(r *http.Request) { r.Header.Set("Upgrade", "h2c") }, ErrUnfit},
		"scheme":    {Config{}, func(r *http.Request) { r.URL.Scheme = "ftp" }, ErrUnfit},
		"no URL":    {Config{}, func(r *http.Request) { r.URL = nil }, ErrUnfit},
		"cancelled": {Config{}, func(r *http.Request) { *r = *r.WithContext(cancelled) }, context.Canceled},
	} {
		for _, keepFirst := range []bool{false, true} {
			tt.c.KeepFirst, tt.c.Path = keepFirst, filepath.Join(t.TempDir(), "outbox.db")
			s := &server{}
			o := box(t, s, tt.c)
			if name == "full" {
				must(o.Enqueue(must(http.NewRequest("POST", "http://api.example/", nil))))
			}
			before := o.Stats().Pending
			r, _ := http.NewRequest("POST", "http://api.example/", strings.NewReader("four"))
			if tt.change != nil {
				tt.change(r)
			}
			body := testnet.BodyOf(r.Body)
			r.Body = body
			id, err := "", error(nil)
			if !keepFirst {
				id, err = o.Enqueue(r)
			} else if r.URL == nil {
				continue // it has no host that a pattern could name
			} else if resp, e := o.RoundTrip(r); resp != nil {
				id = resp.Header.Get(IDHeader)
			} else {
				err = e
			}
			if id != "" || !errors.Is(err, tt.want) || !strings.HasPrefix(err.Error(), "outbox: ") {
				t.Errorf("%s: %q, %v; want %v", name, id, err, tt.want)
			}
			if st := o.Stats(); st.Pending != before || st.Full+st.Unfit != 1 || o.reserved != (Stats{}) {
				t.Errorf("%s: %+v, reserved %+v", name, st, o.reserved)
			}
			if body.Closes() != 1 || len(s.requests()) != 0 {
				t.Errorf("%s: body closed %d times, sent %v", name, body.Closes(), s.requests())
			}
		}
	}
}

// A body that does not come is waited for as long as the caller wants, and no
// longer.
func TestEnqueueWaitsForTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := box(t, &server{}, Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, pw := pipePost(ctx)
		start := time.Now()
		if _, err := o.Enqueue(r); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if _, err := pw.Write([]byte("x")); err != io.ErrClosedPipe {
			t.Errorf("the body is still open: %v", err)
		}
		r, pw = pipePost(t.Context())
		go func() {
			time.Sleep(time.Hour)
			io.WriteString(pw, "late")
			pw.Close()
		}()
		if id, err := o.Enqueue(r); id == "" {
			t.Error(err)
		}
		mustDrain(t, o, 1)
	})
}

// While anything of a queue is kept, what comes to it goes behind: it is not
// sent, whatever the mode, though the server is up again. Other queues do not
// mind, and once it is drained requests are sent again.
func TestNewcomersGoBehind(t *testing.T) {
	for _, keepFirst := range []bool{false, true} {
		for _, length := range []int64{-1, 1} {
			s := &server{down: true}
			o := box(t, s, Config{KeepFirst: keepFirst})
			mustKeep(t, o, "http://api.example/", "1")
			s.set(false)
			body := testnet.NewBody("2")
			r, _ := http.NewRequest("POST", "http://api.example/", nil)
			r.Body, r.ContentLength = body, length
			resp, err := o.RoundTrip(r)
			if err != nil || resp.StatusCode != 202 || body.Closes() != 1 || len(s.requests()) != 0 {
				t.Fatalf("%v, %v; body closed %d times, sent %q", resp, err, body.Closes(), s.bodies())
			}
			mustKeep(t, o, "http://api.example/", "3")
			if id, err := post(t, o, "http://b.api.example/", "other"); err != nil || (id != "") != keepFirst {
				t.Errorf("another queue: kept %q, %v", id, err)
			}
			if keepFirst {
				mustDrain(t, o, 4)
			} else {
				mustDrain(t, o, 3)
			}
			if got, want := ofHost(s, "api.example"), []string{"1", "2", "3"}; !reflect.DeepEqual(got, want) {
				t.Errorf("sent %q, want %q", got, want)
			}
			if id, err := post(t, o, "http://api.example/", "4"); err != nil || (id != "") != keepFirst {
				t.Errorf("when nothing waits: kept %q, %v", id, err)
			}
		}
	}
}

// A body that turns out too long to keep is sent all the same, whole.
func TestTooLongToGoBehind(t *testing.T) {
	s := &server{down: true}
	o := box(t, s, Config{MaxBody: 10})
	mustKeep(t, o, "http://api.example/", "1")
	s.set(false)
	r, _ := http.NewRequest("POST", "http://api.example/", nil)
	r.Body, r.ContentLength = testnet.NewBody("0123456789x"), -1
	if resp, err := o.RoundTrip(r); err != nil || resp.StatusCode != 200 || s.bodies()[0] != "0123456789x" {
		t.Errorf("%v, %v, sent %q", resp, err, s.bodies())
	}
}

// Whenever the server goes and comes back, events that are sent one after the
// other arrive in that order, each once.
func TestOrderThroughOutages(t *testing.T) {
	for _, keepFirst := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{}
			o := box(t, s, Config{KeepFirst: keepFirst})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- o.Run(ctx, 3*time.Second) }()
			var want []string
			for i := range 200 {
				s.set(i/7%2 == 1)
				want = append(want, fmt.Sprint(i))
				if _, err := post(t, o, "http://api.example/", want[i]); err != nil {
					t.Error(err)
				}
				time.Sleep(700 * time.Millisecond)
			}
			s.set(false)
			time.Sleep(time.Minute)
			cancel()
			<-ended
			if got := s.bodies(); !reflect.DeepEqual(got, want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// 64 goroutines enqueue at once: their requests share syncs, ids are unique, and
// each goroutine's own are in order.
func TestEnqueueTogether(t *testing.T) {
	o := box(t, &server{}, Config{Patterns: []string{}})
	var mu sync.Mutex
	all := map[string]bool{}
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Go(func() {
			last := ""
			for range 10 {
				id, err := o.Enqueue(must(http.NewRequest("POST", fmt.Sprintf("http://h%d/", g%5), nil)))
				if err != nil || id <= last {
					t.Errorf("%s after %s, %v", id, last, err)
				}
				last = id
				mu.Lock()
				all[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if n := o.Stats(); len(all) != 640 || n.Pending != 640 || n.Kept != 640 {
		t.Errorf("%d ids, %+v", len(all), n)
	}
}

// ofHost is what reached a host, in order.
func ofHost(s *server, host string) (bodies []string) {
	for _, r := range s.requests() {
		if r.host == host {
			bodies = append(bodies, r.body)
		}
	}
	return bodies
}

// After Close nothing can be promised, and so nothing is sent either.
func TestKeepFirstAfterClose(t *testing.T) {
	s := &server{}
	o := box(t, s, Config{KeepFirst: true})
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if id, err := post(t, o, "http://api.example/", "x"); !errors.Is(err, ErrClosed) || id != "" || len(s.requests()) != 0 {
		t.Errorf("kept %q, %v, sent %q", id, err, s.bodies())
	}
}
