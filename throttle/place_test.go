package throttle_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// A place is held until the body's end, and no longer, whatever is learned.
func TestPlaceIsHeldToTheEnd(t *testing.T) {
	for _, learning := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			tr := newTransport(t, newBase(slow(0)), throttle.Config{Default: throttle.Budget{InFlight: 1}, DisableLearning: !learning})
			free := func(want bool) {
				t.Helper()
				synctest.Wait()
				resp, err := get(t, police(t), tr, "http://a/")
				if (err == nil) != want {
					t.Fatalf("learning %t: a place is free: %t", learning, !want)
				}
				if err == nil {
					resp.Body.Close()
				}
			}
			resp := mustGet(t, tr, "http://a/")
			free(false)
			resp.Body.Read(make([]byte, 1))
			free(false)
			io.Copy(io.Discard, resp.Body)
			free(true)

			ctx, cancel := context.WithCancel(t.Context())
			if _, err := get(t, ctx, tr, "http://a/"); err != nil {
				t.Fatal(err)
			}
			free(false)
			cancel() // and nobody closes the body
			free(true)
		})
	}
}

// watchedContext is a context that counts who watches for its end.
type watchedContext struct {
	context.Context
	mu    sync.Mutex
	stops map[int]bool
}

func (w *watchedContext) AfterFunc(func()) func() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.stops)
	w.stops[n] = false
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		was := w.stops[n]
		w.stops[n] = true
		return !was
	}
}

// A context that outlives its requests is not watched for them any more.
func TestContextIsNotWatchedLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := &watchedContext{Context: ctx, stops: make(map[int]bool)}
		tr := newTransport(t, newBase(slow(0)), throttle.Config{Default: throttle.Budget{InFlight: 1}})
		for range 3 {
			resp, err := get(t, w, tr, "http://a/")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		for n, stopped := range w.stops {
			if !stopped {
				t.Errorf("watch %d goes on after the body was closed", n)
			}
		}
	})
}

func TestInFlightIsHeldUntilTheBodyIsDone(t *testing.T) {
	ends := map[string]func(*http.Response, context.CancelFunc){
		"closed":           func(r *http.Response, _ context.CancelFunc) { r.Body.Close() },
		"read to the end":  func(r *http.Response, _ context.CancelFunc) { io.Copy(io.Discard, r.Body) },
		"both":             func(r *http.Response, _ context.CancelFunc) { io.Copy(io.Discard, r.Body); r.Body.Close() },
		"closed twice":     func(r *http.Response, _ context.CancelFunc) { r.Body.Close(); r.Body.Close() },
		"context canceled": func(r *http.Response, c context.CancelFunc) { c(); synctest.Wait(); r.Body.Close() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(slow(0))
				tr := newTransport(t, b, throttle.Config{Default: throttle.Budget{InFlight: 1}})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				resp, err := get(t, ctx, tr, "http://a/")
				if err != nil {
					t.Fatal(err)
				}
				var wg sync.WaitGroup
				wg.Go(func() {
					mustGet(t, tr, "http://a/") // keeps its place
				})
				time.Sleep(time.Second)
				end(resp, cancel)
				wg.Wait()
				sameTimes(t, b.Times(), 0, time.Second)
				_, err = get(t, throttle.WithMaxWait(t.Context(), -1), tr, "http://a/")
				var e *throttle.Error
				if !errors.As(err, &e) {
					t.Errorf("a third one got %v, want a refusal: the place was given back once", err)
				}
			})
		})
	}
}

func TestInFlightComesBackAfterErrorAndPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := errors.New("broken")
		mode := 0
		b := newBase(func(r *http.Request) (*http.Response, error) {
			mode++
			switch mode {
			case 1:
				return nil, fail
			case 2:
				panic("base")
			}
			return testnet.Answer(r, 200, nil, nil), nil
		})
		tr := newTransport(t, b, throttle.Config{Default: throttle.Budget{InFlight: 1}})
		if _, err := get(t, t.Context(), tr, "http://a/"); err != fail {
			t.Errorf("got %v, want the base's error", err)
		}
		func() {
			defer func() { recover() }()
			get(t, t.Context(), tr, "http://a/")
		}()
		mustGet(t, tr, "http://a/")
		mustGet(t, tr, "http://a/") // no body: its place is free at once
		sameTimes(t, b.Times(), 0, 0, 0, 0)
	})
}

// halves is a connection whose writing side can be closed alone.
type halves struct{ net.Conn }

func (h halves) CloseWrite() error {
	testnet.CloseWrite(h.Conn)
	return nil
}

func TestUpgradedBodyCanBeWritten(t *testing.T) {
	client, server := testnet.Pipe()
	defer server.Close()
	b := newBase(func(r *http.Request) (*http.Response, error) {
		return testnet.Answer(r, http.StatusSwitchingProtocols, nil, halves{client}), nil
	})
	tr := newTransport(t, b, throttle.Config{Default: throttle.Budget{InFlight: 1}})
	resp := mustGet(t, tr, "http://a/")
	w, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		t.Fatalf("the body of a 101 is %T, want an io.ReadWriteCloser", resp.Body)
	}
	if _, err := io.WriteString(w, "hello"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 5)
	if _, err := io.ReadFull(server, buf); err != nil || string(buf) != "hello" {
		t.Errorf("the server read %q, %v", buf, err)
	}
	half, ok := w.(interface{ CloseWrite() error }) // as ReverseProxy closes it when its client has finished
	if !ok || half.CloseWrite() != nil {
		t.Fatal("the body of a 101 cannot be half-closed")
	}
	if _, err := server.Read(buf); err != io.EOF {
		t.Errorf("after a half-close the server reads %v, want EOF", err)
	}
	w.Close()
	mustGet(t, tr, "http://a/")
}

// A place that a part, or a try, needed is given back at once.
func TestPartsHoldNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "100/s burst 100, 1 in flight")
		for _, most := range []int64{1, 1, 7} {
			if n, err := l.TakeUpTo(police(t), "k", "", most); n != most || err != nil {
				t.Errorf("%d of %d, %v", n, most, err)
			}
			if d := l.Try("k", nil); !d.Allowed {
				t.Errorf("%+v", d)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Take(ctx, "k", nil); err != context.Canceled {
			t.Errorf("a context that has ended: %v", err)
		}
		g, err := l.Take(t.Context(), "k", nil)
		if err != nil {
			t.Fatal(err)
		}
		q := newQueued(t, l)
		q.wg.Go(func() { // who waits for a part gets all there is then
			n, err := l.TakeUpTo(t.Context(), "k", "", 1000)
			if n < 90 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		})
		time.Sleep(2 * sec)
		g.Cancel()
		q.wg.Wait()
	})
}

// A part that had to be waited for, and a try that passes one that waits for
// more, hold no place either.
func TestLaterPartsHoldNoPlace(t *testing.T) {
	for _, most := range []int64{1, 7} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, "1/s burst 1, 1 in flight")
			for i := range 3 {
				if n, err := l.TakeUpTo(t.Context(), "k", "", most); n != 1 || err != nil {
					t.Errorf("part %d of %d: %d, %v", i, most, n, err)
				}
			}
			time.Sleep(sec)
			if _, err := l.Take(police(t), "k", nil); err != nil {
				t.Errorf("after parts of %d: %v", most, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "10 tokens/10s burst 10, 1 in flight")
		if d := l.Try("k", throttle.Cost{"tokens": 6}); !d.Allowed {
			t.Fatalf("%+v", d)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := l.Take(throttle.WithPriority(t.Context(), -1), "k", throttle.Cost{"tokens": 8}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if d := l.Try("k", throttle.Cost{"tokens": 1}); !d.Allowed {
			t.Errorf("%+v, want it before one of a lower priority", d)
		}
		wg.Wait()
	})
}

type badCloser struct{ io.Reader }

var errClose = errors.New("close failed")

func (badCloser) Close() error { return errClose }

// What the base's body says when it is closed comes out.
func TestErrorOfCloseComesOut(t *testing.T) {
	base := testnet.Func(func(r *http.Request) (*http.Response, error) {
		return testnet.Answer(r, 200, nil, badCloser{strings.NewReader("x")}), nil
	})
	rt := newTransport(t, base, throttle.Config{Default: throttle.Budget{InFlight: 1}})
	for range 2 { // the place comes back all the same
		if err := mustGet(t, rt, "http://a.example/").Body.Close(); err != errClose {
			t.Errorf("got %v, want %v", err, errClose)
		}
	}
}
