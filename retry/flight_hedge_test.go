package retry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
)

// hedged runs a request with a hedge after two seconds. first and hedge are the
// two attempts; it returns their contexts, too.
func hedged(t *testing.T, r *http.Request, first, hedge func(*http.Request) (*http.Response, error)) (resp *http.Response, rt *retry.Transport, ctxs [2]context.Context, err error) {
	t.Helper()
	base := testnet.Func(func(r *http.Request) (*http.Response, error) {
		if trip.From(r.Context()).Hedge {
			ctxs[1] = r.Context()
			return hedge(r)
		}
		ctxs[0] = r.Context()
		return first(r)
	})
	rt = newTransport(t, base, retry.Config{MaxAttempts: 2, Hedge: retry.Hedge{After: 2 * time.Second}})
	resp, err = rt.RoundTrip(r)
	return resp, rt, ctxs, err
}

// after answers after d, whatever becomes of the request's context.
func after(d time.Duration, status int, body io.ReadCloser) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		time.Sleep(d)
		return testnet.Answer(r, status, nil, body), nil
	}
}

func ended(ctxs [2]context.Context) [2]bool {
	return [2]bool{ctxs[0].Err() != nil, ctxs[1].Err() != nil}
}

// A request whose body is none may be hedged.
func TestHedgeWithoutABody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := request(t, "GET", "http://a.example/", "")
		r.Body = http.NoBody
		_, rt, _, err := hedged(t, r, after(4*time.Second, 200, nil), after(time.Second, 200, nil))
		if st := rt.Stats(); err != nil || st.Hedges != 1 || st.HedgesWon != 1 {
			t.Errorf("%v, %+v", err, st)
		}
	})
}

// Of two good answers the first one counts: the other is closed.
func TestOneOfTwoGoodAnswers(t *testing.T) {
	for _, test := range []struct {
		name         string
		first, hedge time.Duration
		status       int
	}{
		{"the hedge's", 9 * time.Second, time.Second, 202},
		{"the first attempt's", 3 * time.Second, 9 * time.Second, 201},
	} {
		bubble(t, test.name, func(t *testing.T) {
			a, b := testnet.NewBody("first"), testnet.NewBody("hedge")
			resp, rt, ctxs, err := hedged(t, request(t, "GET", "http://a.example/", ""),
				after(test.first, 201, a), after(test.hedge, 202, b))
			if err != nil || resp.StatusCode != test.status {
				t.Fatal(resp, err)
			}
			won := resp.StatusCode == 202
			if got := ended(ctxs); got != [2]bool{won, !won} {
				t.Errorf("contexts ended: %v", got)
			}
			if a.Closes() != one(won) || b.Closes() != one(!won) {
				t.Errorf("closed %d and %d times", a.Closes(), b.Closes())
			}
			text(t, resp)
			if ended(ctxs) != [2]bool{true, true} {
				t.Error("a context goes on after its body's end")
			}
			if st := rt.Stats(); st.HedgesWon != int64(one(won)) {
				t.Errorf("%+v", st)
			}
		})
	}
}

// The end of the body that is returned ends its context, and nothing before.
func TestEndOfAHedgedBody(t *testing.T) {
	ends := map[string]func(t *testing.T, body io.ReadCloser){
		"read": func(t *testing.T, body io.ReadCloser) {
			if _, err := io.ReadAll(body); err != nil {
				t.Error(err)
			}
		},
		"closed": func(t *testing.T, body io.ReadCloser) {
			if err := body.Close(); err != errReset {
				t.Errorf("Close says %v, and the base's body says %v", err, errReset)
			}
		},
	}
	for name, end := range ends {
		bubble(t, name, func(t *testing.T) {
			body := &twice{testnet.NewBody("ab")}
			resp, _, ctxs, err := hedged(t, request(t, "GET", "http://a.example/", ""), after(time.Second, 200, body), nil)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := resp.Body.Read(make([]byte, 1)); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			if ctxs[0].Err() != nil {
				t.Error("the context ended with the first byte")
			}
			end(t, resp.Body)
			if ctxs[0].Err() == nil {
				t.Error("the context did not end with the body")
			}
		})
	}
}

// twice is a body whose Close fails.
type twice struct{ io.ReadCloser }

func (b *twice) Close() error {
	b.ReadCloser.Close()
	return errReset
}

// panics tells what f panics with.
func panics(f func()) (what any) {
	defer func() { what = recover() }()
	f()
	return nil
}

// A panic of either attempt reaches the caller, and leaves nothing of the other.
func TestPanicBesideAHedge(t *testing.T) {
	crash := func(d time.Duration) func(*http.Request) (*http.Response, error) {
		return func(r *http.Request) (*http.Response, error) {
			testnet.Wait(r.Context(), d)
			panic("crash")
		}
	}
	for _, test := range []struct {
		name         string
		first, hedge func(*http.Request) (*http.Response, error)
		body         *testnet.Body
	}{
		{name: "before there is a hedge", first: crash(time.Second)},
		{name: "while the hedge is out", first: crash(3 * time.Second)},
		{name: "after the hedge's answer", first: crash(9 * time.Second)},
		{name: "of the hedge", hedge: crash(time.Second)},
	} {
		bubble(t, test.name, func(t *testing.T) {
			body := testnet.NewBody("x")
			var mu sync.Mutex
			var ctxs []context.Context
			note := func(f func(*http.Request) (*http.Response, error), d time.Duration, status int) func(*http.Request) (*http.Response, error) {
				if f == nil {
					f = after(d, status, body)
				}
				return func(r *http.Request) (*http.Response, error) {
					mu.Lock()
					ctxs = append(ctxs, r.Context())
					mu.Unlock()
					return f(r)
				}
			}
			what := panics(func() {
				hedged(t, request(t, "GET", "http://a.example/", ""), note(test.first, 4*time.Second, 503), note(test.hedge, 2*time.Second, 200))
			})
			if what != "crash" {
				t.Errorf("panicked with %v", what)
			}
			for i, ctx := range ctxs {
				if ctx.Err() == nil {
					t.Errorf("the context of attempt %d goes on", i+1)
				}
			}
			if len(ctxs) == 2 && body.Closes() == 0 {
				t.Error("an answer was left open")
			}
		})
	}
}

// A hedge that cannot have the body again costs nothing.
func TestHedgeWithoutItsBodyIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := request(t, "PUT", "http://a.example/", "body")
		r.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("gone") }
		resp, rt, _, err := hedged(t, r, after(4*time.Second, 200, nil), after(time.Second, 200, nil))
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		if st := rt.Stats(); st.Hedges != 0 || hostIn(st, "a.example").Allowance != 500 {
			t.Errorf("%+v", st)
		}
	})
}

// Hedges are counted for the transport and for the host.
func TestHedgesCountForTheirHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &duel{lanes: []lane{{1500 * time.Millisecond, 200}}}
		rt := newTransport(t, d, retry.Config{Hedge: retry.Hedge{After: time.Second}})
		get(t, rt, "GET")
		if st := rt.Stats(); st.Hedges != 1 || hostIn(st, "a.example").Hedges != 1 {
			t.Errorf("stats %+v", st)
		}
	})
}

// one is 1 for true and 0 for false.
func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
