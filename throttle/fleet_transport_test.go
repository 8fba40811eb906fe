package throttle_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/store"
)

// answers is a base that answers by function, without a network.
type answers func(*http.Request) *http.Response

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	resp := f(r)
	resp.Request = r
	return resp, nil
}

func answer(status int, header ...string) *http.Response {
	w := httptest.NewRecorder()
	for i := 0; i < len(header); i += 2 {
		w.Header().Set(header[i], header[i+1])
	}
	w.WriteHeader(status)
	return w.Result()
}

func sharedTransports(t *testing.T, s throttle.Store, c throttle.Config, n int, base http.RoundTripper) []*throttle.Transport {
	t.Helper()
	var ts []*throttle.Transport
	for range n {
		c.Store, c.Fleet = s, throttle.FleetConfig{Members: n}
		tr, err := throttle.New(base, c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tr.Close() })
		ts = append(ts, tr)
	}
	return ts
}

// busy sends one request after another through tr until ctx ends.
func busy(t *testing.T, ctx context.Context, tr *throttle.Transport) {
	t.Helper()
	for ctx.Err() == nil {
		if resp, err := testnet.Get(t, ctx, tr, "https://api.example/items"); err == nil {
			resp.Body.Close()
		} else if ctx.Err() == nil {
			t.Error(err)
			return
		}
	}
}

func visit(t *testing.T, tr *throttle.Transport, url string) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(r)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	return err
}

func TestTransportsShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out farstore.Sends
		base := answers(func(*http.Request) *http.Response { out.Add(); return answer(200) })
		ts := sharedTransports(t, farstore.New(time.Millisecond), throttle.Config{
			Default: throttle.MustParseBudget("100/s burst 10"),
			Budgets: map[string]throttle.Budget{"GET api.example/search/": throttle.MustParseBudget("20/s")},
			MaxWait: time.Hour,
		}, 4, base)
		done := make(chan error)
		for _, tr := range ts {
			go func() {
				var err error
				for range 100 {
					err = errors.Join(err, visit(t, tr, "https://api.example/items"))
				}
				done <- err
			}()
		}
		for range ts {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if got := out.Most(time.Second); got > 100 {
			t.Errorf("four transports sent %d in a second, want at most 100", got)
		}
		begin := time.Now()
		for i := range 41 {
			if err := visit(t, ts[i%4], "https://api.example/search/x"); err != nil {
				t.Error(err)
			}
		}
		if d := time.Since(begin); d < 2*time.Second || d > 3*time.Second {
			t.Errorf("41 requests to a route of 20/s took %v, want a bit over 2 s", d)
		}
	})
}

func TestTransportsShareWhatAnswersSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		base := answers(func(*http.Request) *http.Response {
			if first {
				first = false
				return answer(429, "Retry-After", "20")
			}
			return answer(200)
		})
		ts := sharedTransports(t, farstore.New(time.Millisecond), throttle.Config{Default: throttle.MustParseBudget("100/s")}, 2, base)
		if err := visit(t, ts[0], "https://api.example/"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		begin := time.Now()
		r := httptest.NewRequest("GET", "https://api.example/", nil)
		go func() {
			time.Sleep(10 * time.Second)
			if wait, err := ts[1].Outlook(r); err != nil || wait < 8*time.Second || wait > 12*time.Second {
				t.Errorf("Outlook after 10 of 20 s: %v, %v", wait, err)
			}
		}()
		if err := visit(t, ts[1], "https://api.example/"); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begin); d < 19*time.Second || d > 22*time.Second {
			t.Errorf("the other process waited %v, want the 20 s that one was told", d)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		base := answers(func(*http.Request) *http.Response {
			return answer(200, "X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "40")
		})
		ts := sharedTransports(t, farstore.New(time.Millisecond), throttle.Config{Default: throttle.MustParseBudget("100/s"), MaxWait: time.Second}, 2, base)
		if err := visit(t, ts[0], "https://api.example/"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		var e *throttle.Error
		if err := visit(t, ts[1], "https://api.example/"); !errors.As(err, &e) || e.RetryAfter < 30*time.Second || e.Key != "api.example" {
			t.Errorf("got %v, want a wait until the quota that was stated to the other resets", err)
		}
	})
}

// TestNoRequestFailsInAnOutage is ten seconds without the store.
func TestNoRequestFailsInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		var out farstore.Sends
		ts := sharedTransports(t, s, throttle.Config{Default: throttle.MustParseBudget("80/s")}, 4,
			answers(func(*http.Request) *http.Response { out.Add(); return answer(200) }))
		s.Fail(errors.New("connection refused"), false)
		done := make(chan error)
		begin := time.Now()
		for _, tr := range ts {
			go func() {
				var err error
				for time.Since(begin) < 10*time.Second {
					err = errors.Join(err, visit(t, tr, "https://api.example/"))
				}
				done <- err
			}()
		}
		for range ts {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if got := out.Most(time.Second); got > 80+4 {
			t.Errorf("%d requests in a second, want at most 80 and one a process", got)
		}
		if n := len(out.At); n < 600 {
			t.Errorf("%d requests in 10 s, want most of 800", n)
		}
		if ts[0].StoreState() != throttle.StoreGone {
			t.Errorf("state %v, want gone", ts[0].StoreState())
		}
	})
}

func TestSharedBudgetsAreChecked(t *testing.T) {
	nine := throttle.Budget{}
	for i := range 9 {
		nine.Rates = append(nine.Rates, throttle.Rate{Limit: 10, Per: time.Duration(i+1) * time.Second})
	}
	c := throttle.Config{Store: store.NewMemory(), Fleet: throttle.FleetConfig{Members: 2}}
	for want, budget := range map[string]throttle.Budget{
		`Budgets["api.example"]: `: nine,
		"Per 26280h":               {Rates: []throttle.Rate{{Limit: 10, Per: 3 * 365 * 24 * time.Hour}}},
	} {
		c.Budgets = map[string]throttle.Budget{"api.example": budget}
		if _, err := throttle.New(nil, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	c.Budgets = nil
	tr, err := throttle.New(nil, c)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if err := tr.SetBudget("api.example", nine); err == nil {
		t.Error("SetBudget took what a Store cannot keep")
	}
}

func TestSharedBudgetIsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := sharedTransports(t, farstore.New(time.Millisecond), throttle.Config{Default: throttle.MustParseBudget("1000/h burst 1000"), MaxWait: -1}, 2,
			answers(func(*http.Request) *http.Response { return answer(200) }))
		for range 30 {
			if err := visit(t, ts[0], "https://api.example/"); err != nil {
				t.Fatal(err)
			}
		}
		for _, tr := range ts {
			if err := tr.SetBudget("api.example", throttle.MustParseBudget("40/h burst 40")); err != nil {
				t.Fatal(err)
			}
		}
		granted := 0
		for i := range 100 {
			if visit(t, ts[i%2], "https://api.example/") == nil {
				granted++
			}
		}
		if granted != 10 {
			t.Errorf("%d were granted of 40 an hour after 30, want 10", granted)
		}
	})
}

// A request holds its place, which is the fleet's, until the body of its answer is done.
func TestRequestsHoldTheFleetsPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := answers(func(*http.Request) *http.Response { return answer(200) })
		ts := sharedTransports(t, farstore.New(time.Millisecond), throttle.Config{Default: throttle.MustParseBudget("2 in flight"), MaxWait: time.Second}, 3, base)
		ask := func(i int) (*http.Response, error) {
			r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://h/", nil)
			return ts[i].RoundTrip(r)
		}
		var held []*http.Response
		for i := range 2 {
			resp, err := ask(i)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, resp)
		}
		for i := range ts {
			if _, err := ask(i); err == nil {
				t.Errorf("process %d sent a third", i)
			}
		}
		time.Sleep(time.Minute)
		if _, err := ask(2); err == nil {
			t.Error("one that takes long lost its place")
		}
		held[0].Body.Close()
		if _, err := ask(2); err != nil {
			t.Error("a place did not come back: ", err)
		}
	})
}
