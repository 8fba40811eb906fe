package retry_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
)

// sipping reads request bodies a piece a second and counts what it got.
func sipping(piece int, got *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for {
			n, err := io.CopyN(io.Discard, r.Body, int64(piece))
			if got.Add(n); err != nil {
				return
			}
			time.Sleep(time.Second)
		}
	}
}

// An upload takes the time that it takes, as long as it goes on, whatever the
// body comes from; only then the answer is due.
func TestUploadInProgress(t *testing.T) {
	const size = 6 << 20
	for name, body := range map[string]func(r *http.Request){
		"from memory": func(r *http.Request) {
			b := make([]byte, size)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), size
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
		},
		"from memory, of unknown length": func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(make([]byte, size))), -1
		},
		"from what cannot be closed": func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(io.LimitReader(&endless{}, size)), size
		},
		"from what can": func(r *http.Request) {
			r.Body, r.ContentLength = testnet.BodyOf(io.LimitReader(&endless{}, size)), size
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got atomic.Int64
			over(t, sipping(200<<10, &got), retry.Config{AttemptTimeout: 15 * time.Second}, func(t *testing.T, rt *retry.Transport, _ *testnet.Net) {
				got.Store(0)
				r := request(t, "PUT", "http://a.example/", "")
				body(r)
				start := time.Now()
				resp, err := rt.RoundTrip(r)
				if took := time.Since(start); err != nil || got.Load() != size || took < 25*time.Second {
					t.Fatalf("%v after %v; %d bytes were sent", err, took, got.Load())
				}
				text(t, resp)
			})
		})
	}
}

// noting is an endless source that knows when it was last read.
type noting struct{ last time.Time }

func (n *noting) Read(b []byte) (int, error) {
	n.last = time.Now()
	return len(b), nil
}

// An upload that nothing is taken of any more ends AttemptTimeout later, and so
// does an attempt whose answer does not come that long after the upload.
func TestAnUploadThatStopsEnds(t *testing.T) {
	const limit = 5 * time.Second
	for _, tt := range []struct {
		name  string
		size  int64 // the server reads 3 MiB of it
		stage trip.Stage
	}{
		{"stalled", 6 << 20, trip.Sending},
		{"complete, and no answer", 3 << 20, trip.Answering},
	} {
		h := func(w http.ResponseWriter, r *http.Request) {
			for range 10 {
				io.CopyN(io.Discard, r.Body, 3<<20/10)
				time.Sleep(time.Second)
			}
			testnet.Wait(r.Context(), time.Minute)
		}
		t.Run(tt.name, func(t *testing.T) {
			over(t, h, retry.Config{AttemptTimeout: limit, MaxAttempts: 1}, func(t *testing.T, rt *retry.Transport, _ *testnet.Net) {
				var src noting
				r := request(t, "PUT", "http://a.example/", "")
				r.Body, r.ContentLength = testnet.BodyOf(io.LimitReader(&src, tt.size)), tt.size
				r, tr, _ := trip.Begin(r, trip.Door, rt.Link().Hosts)
				start := time.Now()
				_, err := rt.RoundTrip(r)
				var late *retry.TimeoutError
				if idle := time.Since(src.last); !errors.As(err, &late) || idle != limit || src.last.Sub(start) < limit || tr.Stage != tt.stage {
					t.Errorf("%v; the upload went on for %v, and ended %v ago at stage %v", err, src.last.Sub(start), idle, tr.Stage)
				}
				tr.End(err)
				time.Sleep(time.Minute)
			})
		})
	}
}

// dripping is a source that takes its time for each byte.
type dripping struct {
	every time.Duration
	left  int
}

func (d *dripping) Read(b []byte) (int, error) {
	if d.left == 0 {
		return 0, io.EOF
	}
	d.left--
	time.Sleep(d.every)
	return copy(b, "x"), nil
}

// A source may be slow, but not silent for AttemptTimeout.
func TestASlowSourceIsNotCutASilentOneIs(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }
	for every, ok := range map[time.Duration]bool{4 * time.Second: true, 6 * time.Second: false} {
		over(t, h, retry.Config{AttemptTimeout: 5 * time.Second, MaxAttempts: 1}, func(t *testing.T, rt *retry.Transport, _ *testnet.Net) {
			r := request(t, "PUT", "http://a.example/", "")
			r.Body, r.ContentLength = testnet.BodyOf(&dripping{every, 10}), 10
			resp, err := rt.RoundTrip(r)
			if (err == nil) != ok {
				t.Errorf("a byte every %v: %v", every, err)
			}
			if err == nil {
				text(t, resp)
			}
			time.Sleep(time.Minute)
		})
	}
}

// When net/http sends a body again by itself, that is an upload as well.
func TestUploadAgain(t *testing.T) {
	const size = 2 << 20
	synctest.Test(t, func(t *testing.T) {
		var got atomic.Int64
		seen := 0
		base, n, stop := testnet.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch seen++; seen {
			case 2:
				io.Copy(io.Discard, r.Body)
				panic(http.ErrAbortHandler) // as a connection that was about to be closed
			case 3:
				sipping(100<<10, &got)(w, r)
			}
		}), false)
		rt := newTransport(t, base, retry.Config{AttemptTimeout: 5 * time.Second, MaxAttempts: 1})
		for range 2 {
			r := request(t, "POST", "http://a.example/", "")
			r.Header.Set("Idempotency-Key", "1")
			r.GetBody = func() (io.ReadCloser, error) { return testnet.BodyOf(io.LimitReader(&endless{}, size)), nil }
			r.Body, _ = r.GetBody()
			r.ContentLength = size
			if seen == 0 {
				r = request(t, "GET", "http://a.example/", "")
			}
			resp, err := rt.RoundTrip(r)
			if err != nil {
				t.Fatal(err, seen)
			}
			text(t, resp)
		}
		if seen != 3 || got.Load() != size || n.Dialed.Load() != 2 {
			t.Errorf("%d requests on %d connections, %d bytes", seen, n.Dialed.Load(), got.Load())
		}
		stop()
	})
}

// Little bodies in memory are not touched: net/http sends them with the headers.
func TestLittleBodies(t *testing.T) {
	const little = 64 << 10
	for _, tt := range []struct {
		size, said int64
		timed      bool
		want       bool
	}{
		{10, 10, true, false}, {little, little, true, false}, {little + 1, little + 1, true, true},
		{little + 1, little + 1, false, false}, {10, -1, true, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := request(t, "PUT", "http://a.example/", "")
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(make([]byte, tt.size))), tt.said
			var got io.ReadCloser
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
				got = r.Body
				return testnet.Answer(r, 200, nil, nil), nil
			})
			c := retry.Config{}
			if !tt.timed {
				c.AttemptTimeout = -1
			}
			if _, err := retry.Wire(base, c).RoundTrip(r); err != nil {
				t.Fatal(err)
			}
			if watched := got != r.Body; watched != tt.want {
				t.Errorf("%+v: watched %v", tt, watched)
			}
		})
	}
}

// A copy of the body has not been read to its end because the first one has: an
// attempt that ends then was still sending.
func TestCopyOfUpload(t *testing.T) {
	for _, tt := range []struct {
		name         string
		copies, read bool
		want         trip.Stage
	}{
		{"no copy", false, false, trip.Answering},
		{"a copy that is not read", true, false, trip.Sending},
		{"a copy that is", true, true, trip.Answering},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			w := retry.Wire(testnet.Func(func(r *http.Request) (*http.Response, error) {
				io.ReadAll(r.Body)
				if tt.copies {
					again, err := r.GetBody()
					if err != nil {
						t.Error(err)
					} else if tt.read {
						io.ReadAll(again)
					}
				}
				<-r.Context().Done()
				return nil, r.Context().Err()
			}), retry.Config{AttemptTimeout: time.Second})
			r := request(t, "PUT", "http://a.example/", "")
			r.GetBody = func() (io.ReadCloser, error) { return testnet.NewBody("x"), nil }
			r.Body, _ = r.GetBody()
			r.ContentLength = 1
			r, tr, _ := trip.Begin(r, trip.Retry, trip.Below(w).Hosts)
			tr.At(trip.Retry)
			_, err := w.RoundTrip(r)
			if err == nil || tr.Stage != tt.want {
				t.Errorf("%v at stage %v, want %v", err, tr.Stage, tt.want)
			}
			tr.End(err)
		})
	}
}
