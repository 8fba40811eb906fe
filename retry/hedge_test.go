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

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
)

// lane is how one of the two attempts goes: an answer or an error after a
// time on the wire.
type lane struct {
	after  time.Duration
	status int // 0: an error
}

// duel is a base whose calls go by lanes, in order, and which ends with their
// contexts.
type duel struct {
	lanes  []lane
	mu     sync.Mutex
	calls  int
	lost   int          // cut short by their context
	causes []trip.Cause // why
	made   []*testnet.Body
	hedge  []bool
}

func (d *duel) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	l := d.lanes[min(d.calls, len(d.lanes)-1)]
	d.calls++
	d.hedge = append(d.hedge, trip.From(r.Context()).Hedge)
	d.mu.Unlock()
	trip.CloseBody(r)
	if testnet.Wait(r.Context(), l.after) != nil {
		d.mu.Lock()
		d.lost++
		d.causes = append(d.causes, trip.From(r.Context()).Cause())
		d.mu.Unlock()
		return nil, context.Canceled
	}
	if l.status == 0 {
		return nil, errReset
	}
	b := testnet.NewBody("body")
	d.mu.Lock()
	d.made = append(d.made, b)
	d.mu.Unlock()
	r.Body = nil
	return testnet.Answer(r, l.status, nil, b), nil
}

// Who wins, who pays, and that the loser is cancelled and closed.
func TestTheLoserOfAHedgeIsCancelledAndClosed(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		name     string
		lanes    []lane
		took     time.Duration
		status   int // 0: an error
		calls    int
		won      bool
		lost     int     // cancelled
		left     float64 // of the allowance
		attempts int     // MaxAttempts
	}{
		{"the first is quick", []lane{{s, 200}}, s, 200, 1, false, 0, 500, 2},
		{"the hedge wins", []lane{{9 * s, 200}, {s, 200}}, 3 * s, 200, 2, true, 1, 500, 2},
		{"the first wins after all", []lane{{3 * s, 200}, {5 * s, 200}}, 3 * s, 200, 2, false, 1, 489, 2},
		{"a failed hedge is not waited for in vain", []lane{{5 * s, 200}, {s, 0}}, 5 * s, 200, 2, false, 0, 495, 2},
		{"a throttled hedge does not win", []lane{{5 * s, 200}, {s, 429}}, 5 * s, 200, 2, false, 0, 495, 2},
		{"an overloaded hedge does not win", []lane{{5 * s, 200}, {s, 503}}, 5 * s, 200, 2, false, 0, 495, 2},
		{"a 404 wins", []lane{{9 * s, 200}, {s, 404}}, 3 * s, 404, 2, true, 1, 500, 2},
		{"the first fails, the hedge saves it", []lane{{3 * s, 0}, {4 * s, 200}}, 6 * s, 200, 2, true, 0, 500, 2},
		{"the first fails with 503, the hedge saves it", []lane{{3 * s, 503}, {4 * s, 200}}, 6 * s, 200, 2, true, 0, 500, 2},
		{"both fail", []lane{{3 * s, 503}, {4 * s, 503}, {0, 200}}, 6 * s, 200, 3, false, 0, 500, 2},
	} {
		for _, withBody := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				d := &duel{lanes: tt.lanes}
				var seen retry.Attempt
				rt := newTransport(t, d, retry.Config{MaxAttempts: tt.attempts, Backoff: fixed(0), Hedge: retry.Hedge{After: 2 * s}, OnAttempt: func(a retry.Attempt) {
					if a.Number == 1 {
						seen = a
					}
				}})
				body := ""
				if withBody {
					body = "body"
				}
				start := time.Now()
				resp, err := rt.RoundTrip(request(t, "PUT", "http://a.example/", body))
				took := time.Since(start)
				if err != nil || resp.StatusCode != tt.status || took != tt.took {
					t.Fatalf("%s: got %v, %v after %v", tt.name, resp, err, took)
				}
				if got := text(t, resp); got != "body" {
					t.Errorf("%s: got body %q", tt.name, got)
				}
				if d.calls != tt.calls || d.lost != tt.lost || seen.HedgeWon != tt.won || seen.Hedged != (tt.calls > 1) {
					t.Errorf("%s: %d calls, %d cut short, %+v", tt.name, d.calls, d.lost, seen)
				}
				for _, cause := range d.causes {
					if cause != trip.LostHedge {
						t.Errorf("%s: cut short because of %v", tt.name, cause)
					}
				}
				for i, b := range d.made {
					if b.Closes() == 0 {
						t.Errorf("%s: answer %d was not closed", tt.name, i)
					}
				}
				if left := hostIn(rt.Stats(), "a.example").Allowance; left != tt.left {
					t.Errorf("%s: allowance %v, want %v", tt.name, left, tt.left)
				}
				for i, hedge := range d.hedge {
					if hedge != (i == 1) {
						t.Errorf("%s: call %d has Hedge %v", tt.name, i, hedge)
					}
				}
			})
		}
	}
}

// When there must be no hedge.
func TestNoHedge(t *testing.T) {
	refuse := func(*http.Request) (time.Duration, error) { return 0, &refusal{notsent.Throttle} }
	wait := func(*http.Request) (time.Duration, error) { return time.Millisecond, nil }
	put := func(t *testing.T) *http.Request { return request(t, "PUT", "http://a.example/", "body") }
	for _, tt := range []struct {
		name    string
		request func(t *testing.T) *http.Request
		c       retry.Config
		outlook func(*http.Request) (time.Duration, error)
		calls   int
	}{
		{"control", put, retry.Config{}, nil, 2},
		{"POST", func(t *testing.T) *http.Request { return request(t, "POST", "http://a.example/", "body") }, retry.Config{}, nil, 1},
		{"keyed POST", func(t *testing.T) *http.Request { return requestOf(t, "keyed POST") }, retry.Config{}, nil, 2},
		{"a body without GetBody", func(t *testing.T) *http.Request {
			r := put(t)
			r.GetBody = nil
			return r
		}, retry.Config{BufferBody: 100}, nil, 1},
		{"an upgrade", func(t *testing.T) *http.Request {
			r := request(t, "GET", "http://a.example/", "")
			r.Header.Set("Upgrade", "x")
			return r
		}, retry.Config{}, nil, 1},
		{"no retries", put, retry.Config{MaxAttempts: 1}, nil, 1},
		{"refused below", put, retry.Config{}, refuse, 1},
		{"no room now", put, retry.Config{}, wait, 1},
		{"GetBody fails", func(t *testing.T) *http.Request {
			r := put(t)
			r.GetBody = func() (io.ReadCloser, error) { return nil, errReset }
			return r
		}, retry.Config{}, nil, 1},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			d := &duel{lanes: []lane{{5 * time.Second, 200}, {time.Second, 200}}}
			tt.c.Hedge = retry.Hedge{After: 2 * time.Second}
			layer := &fakeLayer{base: retry.Wire(d, retry.Config{}), layer: trip.Throttle, outlook: tt.outlook}
			resp, err := newTransport(t, layer, tt.c).RoundTrip(tt.request(t))
			if err != nil || d.calls != tt.calls {
				t.Errorf("got %v, %v after %d calls, want %d", resp, err, d.calls, tt.calls)
			}
			resp.Body.Close()
		})
	}
}

// A hedge that is refused when it gets there was none, and is paid back.
func TestRefusedHedge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &duel{lanes: []lane{{5 * time.Second, 200}}}
		layer := &fakeLayer{base: retry.Wire(d, retry.Config{}), layer: trip.Throttle, before: func(_ *http.Request, tr *trip.Trip) error {
			if tr.Hedge {
				return &refusal{notsent.Throttle}
			}
			return nil
		}}
		rt := newTransport(t, layer, retry.Config{Hedge: retry.Hedge{After: time.Second}})
		if status, err := get(t, rt, "PUT"); status != 200 {
			t.Error(status, err)
		}
		if st := rt.Stats(); st.Attempts != 1 || st.Hedges != 0 || hostIn(st, "a.example").Allowance != 500 {
			t.Errorf("stats %+v", st)
		}
	})
}

// While the circuit is not closed there is no hedge.
func TestNoHedgeForProbes(t *testing.T) {
	for name, set := range map[string]func(*http.Request, *trip.Trip){
		"closed":    func(*http.Request, *trip.Trip) {},
		"candidate": func(_ *http.Request, tr *trip.Trip) { tr.Probe = true },
		"held":      func(_ *http.Request, tr *trip.Trip) { tr.Hold(time.Now()) },
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &duel{lanes: []lane{{5 * time.Second, 200}, {time.Second, 200}}}
			get(t, &door{newTransport(t, d, retry.Config{Hedge: retry.Hedge{After: 2 * time.Second}}), set}, "GET")
			want := 1
			if name == "closed" {
				want = 2
			}
			if d.calls != want {
				t.Errorf("%s: %d calls, want %d", name, d.calls, want)
			}
		})
	}
}

// The allowance pays for hedges: when it is spent there are none.
func TestHedgesArePaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &duel{lanes: []lane{{1500 * time.Millisecond, 200}}} // hedges lose and are not paid back
		rt := newTransport(t, d, retry.Config{Hedge: retry.Hedge{After: time.Second}, Allowance: retry.Allowance{Tokens: 3 * cost}})
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { get(t, rt, "GET") })
		}
		wg.Wait()
		if st := rt.Stats(); d.calls != 13 || st.Hedges != 3 || st.HedgesWon != 0 || st.Attempts != 13 || st.Requests != 10 || hostIn(st, "a.example").Requests != 10 {
			t.Errorf("%d calls, %+v", d.calls, st)
		}
	})
}

// A learned delay is near the quantile of the host's own latency, at least
// 10 ms, and there is none before 100 answers.
func TestLearnedHedge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &duel{lanes: []lane{{100 * time.Millisecond, 200}}}
		rt := newTransport(t, d, retry.Config{Hedge: retry.Hedge{Quantile: 0.95}})
		for range 100 {
			get(t, rt, "GET")
		}
		if d.calls != 100 {
			t.Fatalf("%d calls for %d requests", d.calls, 100)
		}
		d.lanes, d.calls = []lane{{time.Hour, 200}, {0, 200}}, 0
		start := time.Now()
		if status, err := get(t, rt, "GET"); status != 200 || d.calls != 2 {
			t.Fatal(status, err, d.calls)
		}
		if took := time.Since(start); took < 100*time.Millisecond || took > 125*time.Millisecond {
			t.Errorf("hedged after %v, want a little over 100ms", took)
		}
		if hostIn(rt.Stats(), "a.example").HedgesWon != 1 {
			t.Errorf("stats %+v", rt.Stats())
		}
	})
}

// Both attempts end with the caller.
func TestHedgeCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &duel{lanes: []lane{{time.Hour, 200}}}
		ctx, cancel := context.WithTimeout(background(), 5*time.Second)
		defer cancel()
		rt := newTransport(t, d, retry.Config{AttemptTimeout: -1, Hedge: retry.Hedge{After: time.Second}})
		_, err := rt.RoundTrip(request(t, "GET", "http://a.example/", "").WithContext(ctx))
		if !errors.Is(err, context.Canceled) || d.lost != 2 {
			t.Errorf("got %v, %d cut short", err, d.lost)
		}
	})
}

// Over real connections: the loser's is not left open.
func TestHedgeOverHTTP(t *testing.T) {
	var mu sync.Mutex
	calls := 0
	h := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		calls++
		slow := calls%2 == 1
		mu.Unlock()
		if slow {
			quietly(r)
			return
		}
		io.WriteString(w, "ok")
	}
	over(t, h, retry.Config{Hedge: retry.Hedge{After: time.Second}}, func(t *testing.T, rt *retry.Transport, _ *testnet.Net) {
		for range 20 {
			resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
			if err != nil {
				t.Fatal(err)
			}
			if got := text(t, resp); got != "ok" {
				t.Errorf("got %q", got)
			}
		}
		if st := rt.Stats(); st.HedgesWon != 20 {
			t.Errorf("stats %+v", st)
		}
	})
}
