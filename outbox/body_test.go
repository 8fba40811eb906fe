package outbox

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// pipePost is a POST whose body comes from a pipe, of unknown length.
func pipePost(ctx context.Context) (*http.Request, *io.PipeWriter) {
	pr, pw := io.Pipe()
	r, err := http.NewRequestWithContext(ctx, "POST", "http://api.example/", pr)
	if err != nil {
		panic(err)
	}
	return r, pw
}

// Every byte reaches the base before the next is asked for, also when the body
// turns out too long to keep: nothing is read ahead.
func TestLongBodyStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := box(t, tripper(func(r *http.Request) (*http.Response, error) {
			defer r.Body.Close()
			p := make([]byte, 100)
			for i := range 50 {
				if n, err := r.Body.Read(p); n != 10 || err != nil {
					t.Errorf("read %d: %d bytes, %v", i, n, err)
				}
			}
			if n, err := r.Body.Read(p); n != 0 || err != io.EOF {
				t.Errorf("at the end: %d bytes, %v", n, err)
			}
			return nil, errDown
		}), Config{MaxBody: 25})
		r, pw := pipePost(t.Context())
		go func() {
			for range 50 {
				_, _ = io.WriteString(pw, "0123456789") // returns when it has been read
			}
			pw.Close()
		}()
		if _, err := o.RoundTrip(r); err != errDown {
			t.Errorf("%v, want %v", err, errDown)
		}
		if got := o.Stats(); got.Unfit != 1 || got.Pending != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// What the base had not read when it failed is read for the file.
func TestRestIsRead(t *testing.T) {
	for _, read := range []int{0, 1, 5, 10} {
		for _, length := range []int64{-1, 10} {
			s := &server{}
			down := true
			o := box(t, tripper(func(r *http.Request) (*http.Response, error) {
				if !down {
					return s.RoundTrip(r)
				}
				if _, err := io.ReadFull(r.Body, make([]byte, read)); err != nil {
					t.Error(err)
				}
				r.Body.Close()
				if _, err := r.Body.Read(make([]byte, 1)); err != http.ErrBodyReadAfterClose {
					t.Errorf("read after close: %v", err)
				}
				return nil, errDown
			}), Config{})
			body := testnet.NewBody("0123456789")
			r, _ := http.NewRequest("POST", "http://api.example/", nil)
			r.Body, r.ContentLength = body, length
			if _, err := o.RoundTrip(r); err != nil {
				t.Fatal(err)
			}
			if body.Closes() != 1 {
				t.Errorf("closed %d times", body.Closes())
			}
			down = false
			mustDrain(t, o, 1)
			if got := s.bodies()[0]; got != "0123456789" {
				t.Errorf("after %d bytes: kept %q", read, got)
			}
		}
	}
}

// Nor is it lost because the deadline passed while the server had it: who is late
// has not given up, and the rest of a file is at hand.
func TestRestIsReadAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		down := true
		o := box(t, tripper(func(r *http.Request) (*http.Response, error) {
			if !down {
				return s.RoundTrip(r)
			}
			if r.Context().Err() == nil {
				io.ReadFull(r.Body, make([]byte, 3))
			}
			<-r.Context().Done()
			r.Body.Close()
			return nil, r.Context().Err()
		}), Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, "POST", "http://api.example/", nil)
		r.Body = testnet.NewBody("0123456789")
		if resp, err := o.RoundTrip(r); err != nil || resp.StatusCode != 202 {
			t.Fatalf("%v, want it kept", err)
		}
		down = false
		mustDrain(t, o, 1)
		if got := s.bodies()[0]; got != "0123456789" {
			t.Errorf("kept %q", got)
		}
		down = true
		r, _ = pipePost(ctx) // of which nothing comes
		start := time.Now()
		if _, err := o.RoundTrip(r); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != restWait {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// A rest that does not come is not waited for longer than restWait or the
// caller's deadline ahead, and the caller gets the base's error.
func TestRestDoesNotCome(t *testing.T) {
	for _, timeout := range []time.Duration{time.Hour, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			o := box(t, tripper(func(r *http.Request) (*http.Response, error) { r.Body.Close(); return nil, errDown }), Config{})
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			r, pw := pipePost(ctx)
			start := time.Now()
			if _, err := o.RoundTrip(r); err != errDown {
				t.Errorf("%v, want %v", err, errDown)
			}
			if took, want := time.Since(start), min(restWait, timeout); took != want {
				t.Errorf("took %v, want %v", took, want)
			}
			if _, err := pw.Write([]byte("x")); err != io.ErrClosedPipe {
				t.Errorf("the body is still open: %v", err)
			}
		})
	}
}

// A body that fails, or is not as long as its request says, is not kept.
func TestUnfitBodies(t *testing.T) {
	fails := func() io.ReadCloser { return testnet.BodyOf(io.MultiReader(strings.NewReader("x"), failing{})) }
	short := func() io.ReadCloser { return testnet.NewBody("x") }
	long := func() io.ReadCloser { return testnet.NewBody("0123456789x") }
	for name, body := range map[string]func() io.ReadCloser{"fails": fails, "short": short, "long": long} {
		for _, twice := range []bool{false, true} {
			o := box(t, tripper(func(r *http.Request) (*http.Response, error) { r.Body.Close(); return nil, errDown }), Config{MaxBody: 10})
			r, _ := http.NewRequest("POST", "http://api.example/", nil)
			r.Body, r.ContentLength = body(), 5
			if name == "long" {
				r.ContentLength = -1
			}
			if twice {
				r.GetBody = func() (io.ReadCloser, error) { return body(), nil }
			}
			if _, err := o.RoundTrip(r); err != errDown {
				t.Errorf("%s: %v, want %v", name, err, errDown)
			}
			if got := o.Stats(); got.Unfit != 1 {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
	o := box(t, &server{down: true}, Config{})
	r, _ := http.NewRequest("POST", "http://api.example/", strings.NewReader("x"))
	r.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("gone") }
	if _, err := o.RoundTrip(r); err != errDown {
		t.Errorf("no second body: %v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the disk broke") }

// A Close that is to end a Read in progress does end it.
func TestCloseEndsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := box(t, tripper(func(r *http.Request) (*http.Response, error) {
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := r.Body.Read(make([]byte, 1)); err != io.ErrClosedPipe {
					t.Errorf("the Read ended with %v", err)
				}
			})
			synctest.Wait()
			r.Body.Close()
			wg.Wait()
			return nil, errDown
		}), Config{})
		r, _ := pipePost(t.Context())
		start := time.Now()
		if _, err := o.RoundTrip(r); err != errDown || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// An early answer leaves the base reading the body; the outbox reads ahead of
// it. If the request is not kept after all, the base misses nothing.
func TestEarlyAnswer(t *testing.T) {
	for _, tt := range []struct {
		maxBody int64
		want    int
	}{{30, 202}, {20, 503}} {
		synctest.Test(t, func(t *testing.T) {
			var upload []byte
			var err error
			var wg sync.WaitGroup
			goOn := make(chan struct{})
			o := box(t, tripper(func(r *http.Request) (*http.Response, error) {
				p := make([]byte, 3)
				if _, err := io.ReadFull(r.Body, p); err != nil {
					t.Error(err)
				}
				wg.Go(func() {
					defer r.Body.Close()
					<-goOn
					upload, err = io.ReadAll(r.Body)
					upload = append(p, upload...)
				})
				return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
			}), Config{MaxBody: tt.maxBody, FailedStatus: []int{503}})
			body := testnet.NewBody("012345678901234567890123456789")
			r, _ := http.NewRequest("POST", "http://api.example/", nil)
			r.Body = body
			resp, e := o.RoundTrip(r)
			if e != nil || resp.StatusCode != tt.want {
				t.Errorf("got %+v, %v; want %d", resp, e, tt.want)
			}
			close(goOn)
			wg.Wait()
			if tt.want == 503 && (len(upload) != 30 || err != nil) {
				t.Errorf("the base went on with %q, %v", upload, err)
			}
			if tt.want == 202 && err != errSealed {
				t.Errorf("the base went on after the request was kept: %q, %v", upload, err)
			}
			if body.Closes() != 1 {
				t.Errorf("closed %d times", body.Closes())
			}
		})
	}
}

// After a success the body is the base's, to read and to close when it likes.
func TestBodyAfterSuccess(t *testing.T) {
	var body io.ReadCloser
	o := box(t, tripper(func(r *http.Request) (*http.Response, error) {
		body = r.Body
		return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
	}), Config{})
	src := testnet.NewBody("0123456789")
	r, _ := http.NewRequest("POST", "http://api.example/", nil)
	r.Body = src
	if _, err := o.RoundTrip(r); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(body); string(b) != "0123456789" || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
	if src.Closes() != 0 || body.Close() != nil || body.Close() != nil || src.Closes() != 1 {
		t.Errorf("closed %d times", src.Closes())
	}
}
