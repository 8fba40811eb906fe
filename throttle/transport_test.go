package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// A unit counts until Per after its answer, or after a tenth of Per.
func TestUnitsCountUntilPerAfterTheServerSawThem(t *testing.T) {
	for answer, next := range map[time.Duration]time.Duration{
		0:                      time.Second,
		30 * time.Millisecond:  1030 * time.Millisecond,
		300 * time.Millisecond: 1100 * time.Millisecond,
		time.Minute:            1100 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBase(slow(answer))
			tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("2/s burst 2")})
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() { mustGet(t, tr, "http://a/").Body.Close() })
			}
			wg.Wait()
			sameTimes(t, b.Times(), 0, 0, next, next)
		})
	}
}

func TestRoutesDoNotHoldUpOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, throttle.Config{Budgets: map[string]throttle.Budget{
			"a":         throttle.MustParseBudget("10/s burst 1"),
			"a/search/": throttle.MustParseBudget("1/m"),
		}})
		ctx := throttle.WithMaxWait(t.Context(), time.Hour)
		var wg sync.WaitGroup
		fetch := func(path string) {
			wg.Go(func() {
				if _, err := get(t, ctx, tr, "http://a"+path); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for range 3 {
			fetch("/search/x") // the second is short of the host and of its route
		}
		for range 5 {
			fetch("/core")
		}
		wg.Wait()
		var got []string
		for _, a := range b.Arrived {
			got = append(got, fmt.Sprint(a.Path, " ", a.At.Round(time.Millisecond)))
		}
		want := "/search/x 0s,/core 100ms,/core 200ms,/core 300ms,/core 400ms,/core 500ms,/search/x 1m0s,/search/x 2m0s"
		if strings.Join(got, ",") != want {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestPartitionsAndPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, throttle.Config{
			Default:   throttle.MustParseBudget("1/m, pool all"),
			Partition: func(r *http.Request) string { return r.Header.Get("Key") },
		})
		ask := func(host, key string) error {
			r, _ := http.NewRequestWithContext(throttle.WithMaxWait(t.Context(), -1), "GET", "http://"+host, nil)
			r.Header.Set("Key", key)
			_, err := tr.RoundTrip(r)
			return err
		}
		if err := ask("a", "secret"); err != nil {
			t.Fatal(err)
		}
		if err := ask("b", "other"); err != nil {
			t.Fatal(err)
		}
		err := ask("b", "secret")
		var e *throttle.Error
		if !errors.As(err, &e) || e.RetryAfter != time.Minute {
			t.Fatalf("got %v, want a refusal: the pool spans hosts", err)
		}
		if strings.Contains(err.Error(), "secret") || len(e.Key) != len("b#12345678") {
			t.Errorf("%v shows the key, or not as eight hex digits", err)
		}
	})
}

func TestBodyIsClosedOnEveryRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), throttle.Config{
			Default: throttle.MustParseBudget("1/h"), MaxWait: -1,
			Cost: func(r *http.Request) throttle.Cost {
				if r.Header.Get("Panic") != "" {
					panic("cost")
				}
				if r.Header.Get("Negative") != "" {
					return throttle.Cost{"x": -1}
				}
				return nil
			},
		})
		mustGet(t, tr, "http://a/")
		for _, name := range []string{"Throttled", "Canceled", "Negative", "Panic"} {
			body := testnet.NewBody("x")
			ctx, cancel := context.WithCancel(t.Context())
			if name == "Canceled" {
				cancel()
			}
			r, _ := http.NewRequestWithContext(ctx, "POST", "http://a/", body)
			r.Header.Set(name, "1")
			func() {
				defer func() { recover() }()
				if resp, err := tr.RoundTrip(r); err == nil || resp != nil {
					t.Errorf("%s: got %v, %v, want an error alone", name, resp, err)
				}
			}()
			cancel()
			if body.Closes() != 1 || body.Reads() != 0 {
				t.Errorf("%s: body closed %d times, read %d times, want once and never", name, body.Closes(), body.Reads())
			}
		}
	})
}

// TestALongStreamHoldsUpItsRouteOnly: requests that wait for a place on their
// route leave the host's places to others.
func TestALongStreamHoldsUpItsRouteOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 200, nil, testnet.NewBody("body")), nil
		})
		tr := newTransport(t, b, throttle.Config{DisableLearning: true, Budgets: map[string]throttle.Budget{
			"a":         throttle.MustParseBudget("2 in flight"),
			"a/stream/": throttle.MustParseBudget("1 in flight"),
		}})
		stream := mustGet(t, tr, "http://a/stream/1")
		short := mustGet(t, tr, "http://a/core")
		var wg sync.WaitGroup
		wg.Go(func() { mustGet(t, tr, "http://a/stream/2").Body.Close() }) // short of both
		synctest.Wait()
		wg.Go(func() {
			for range 5 {
				mustGet(t, tr, "http://a/core").Body.Close()
			}
		})
		time.Sleep(time.Second)
		short.Body.Close()
		time.Sleep(time.Second)
		if n := len(b.Times()); n != 7 {
			t.Errorf("%d requests arrived while the stream was open, want 7", n)
		}
		stream.Body.Close()
		wg.Wait()
	})
}

// TestStatsTellWhatHoldsRequestsUp tell what is held up and why.
func TestStatsTellWhatHoldsRequestsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(slow(0)), throttle.Config{Default: throttle.MustParseBudget("2/m burst 2, 1 in flight"), DisableLearning: true})
		mustGet(t, tr, "http://a/").Body.Close()
		mustGet(t, tr, "http://a/")
		var wg sync.WaitGroup
		wg.Go(func() { get(t, t.Context(), tr, "http://a/") })
		time.Sleep(10 * time.Second)
		got := tr.Stats().Hosts[0]
		if got.Host != "a" || got.Queue != 1 || got.OldestWait != 10*time.Second || got.Granted != 2 || got.Waited != 1 {
			t.Errorf("got %+v", got)
		}
		want := []throttle.Restriction{{Unit: "requests", Why: "2/m burst 2 is spent", For: 50 * time.Second}, {Why: "1 in flight, all taken"}}
		if fmt.Sprint(got.Restrictions) != fmt.Sprint(want) {
			t.Errorf("restrictions are %v, want %v", got.Restrictions, want)
		}
		if b := got.Budgets[0]; b.Text != "2/m burst 2" || b.Left != 0 || b.Limit != 2 || b.FullIn != 50*time.Second {
			t.Errorf("budget is %+v", b)
		}
		wg.Wait()
	})
}

// TestANewRouteLeavesOthersAlone: those that wait draw on the routes that they
// match, however many there are now.
func TestANewRouteLeavesOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, throttle.Config{DisableLearning: true, Budgets: map[string]throttle.Budget{
			"a": throttle.MustParseBudget("100/s"), "a/slow": throttle.MustParseBudget("1/10s"),
		}})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { mustGet(t, tr, "http://a/slow") })
		}
		time.Sleep(time.Second)
		// Routes are numbered in the order of their text: this one is first.
		if err := tr.SetBudget("a/aaa", throttle.MustParseBudget("1/20s")); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		mustGet(t, tr, "http://a/aaa")
		sameTimes(t, b.Times(), 0, 10*time.Second, 10*time.Second)
	})
}
