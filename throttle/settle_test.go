package throttle_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/store"
)

// Settling a shared grant settles it in the store.
func TestSettleReachesTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := sharedLimiters(t, store.NewMemory(), "10/h burst 10", 2)
		g, err := ls[0].Take(t.Context(), "k", throttle.Cost{requests: 8})
		if err != nil {
			t.Fatal(err)
		}
		g.Settle(throttle.Cost{requests: 3})
		time.Sleep(sec)
		if _, err := ls[1].Take(police(t), "k", throttle.Cost{requests: 7}); err != nil {
			t.Error(err)
		}
		if _, err := ls[1].Take(police(t), "k", nil); err == nil {
			t.Error("more than the rest was granted")
		}
	})
}

// threeTokens takes three times a token of key k.
func threeTokens(t *testing.T, l *throttle.Limiter) (grants []throttle.Grant) {
	for range 3 {
		g, err := l.Take(t.Context(), "k", throttle.Cost{"tokens": 1})
		if err != nil {
			t.Fatal(err)
		}
		grants = append(grants, g)
	}
	return grants
}

// However large what was settled is said to be, it frees nothing.
func TestHugeSettlementsDoNotOverflow(t *testing.T) {
	budgets := []string{"9 tokens/m burst 9", "9 tokens/m", "9 tokens/m bucket 9", "9 tokens/m align UTC burst 9", "900 tokens/m burst 900"}
	for _, budget := range budgets {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, budget)
			grants := threeTokens(t, l)
			for i, n := range []int64{math.MaxInt64, math.MaxInt64 / 2, math.MaxInt64 / 2} {
				grants[i].Settle(throttle.Cost{"tokens": n})
				if l.Try("k", throttle.Cost{"tokens": 1}).Allowed {
					t.Errorf("%s: there is room after settling %d units", budget, n)
				}
			}
		})
	}
}

// A store is not taken for gone because it is not told of more than it can count.
func TestHugeSettlementsReachTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("9 tokens/m bucket 9"), Store: store.NewMemory(), Fleet: throttle.FleetConfig{Members: 1}})
		if err != nil {
			t.Fatal(err)
		}
		grants := threeTokens(t, l)
		for _, g := range grants {
			g.Settle(throttle.Cost{"tokens": math.MaxInt64})
			time.Sleep(time.Second)
		}
		if got := l.StoreState(); got != throttle.StoreUp {
			t.Errorf("the store is %v, want up", got)
		}
		l.Close()
	})
}

func TestSettleChargesTheDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("100 tokens/m burst 100")})
		ctx := throttle.WithCost(t.Context(), throttle.Cost{"tokens": 60})
		resp, err := get(t, ctx, tr, "http://a/")
		if err != nil {
			t.Fatal(err)
		}
		if err := throttle.Settle(resp, throttle.Cost{"tokens": 20}); err != nil {
			t.Fatal(err)
		}
		if err := throttle.Settle(resp, throttle.Cost{"tokens": 0}); err == nil {
			t.Error("settled twice")
		}
		resp, err = get(t, ctx, tr, "http://a/")
		if err != nil {
			t.Fatal(err)
		}
		throttle.Settle(resp, throttle.Cost{"tokens": 90}) // 110 of 100
		if _, err = get(t, ctx, tr, "http://a/"); err != nil {
			t.Fatal(err)
		}
		sameTimes(t, b.Times(), 0, 0, time.Minute)
	})
}

// TestBytesWrittenAndRead: what is written is known before, what is read only
// afterwards; each has a budget, which binds by itself, and a request draws on
// both or none.
func TestBytesWrittenAndRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 200, nil, testnet.NewBody(strings.Repeat("x", 700))), nil
		})
		tr := newTransport(t, b, throttle.Config{
			Default: throttle.MustParseBudget("100 written/s burst 100, 1000 read/s burst 1000"),
			Cost: func(r *http.Request) throttle.Cost {
				return throttle.Cost{"written": max(0, r.ContentLength), "read": 100} // a guess, settled below
			},
		})
		send := func(bytes int) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://a/", strings.NewReader(strings.Repeat("y", bytes)))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			n, _ := io.Copy(io.Discard, resp.Body)
			if err := throttle.Settle(resp, throttle.Cost{"read": n}); err != nil {
				t.Error(err)
			}
			resp.Body.Close()
		}
		send(60) // 60 written, 700 read
		send(30) // 90 written, 1400 read: settled above the budget, which those after it pay
		send(1)  // waits until the first's 700 have left the window
		send(9)  // 700 of the third are left beside the guess of 100: goes at once
		send(95) // only 100 may be written in a second
		sameTimes(t, b.Times(), 0, 0, time.Second, time.Second, 2*time.Second)
	})
}

// Retries, streams and other responses have one owner each: Settle finds no
// other's grant.
func TestSettleOfAnotherResponse(t *testing.T) {
	const noGrant = "throttle: Settle: the response did not come through a throttle.Transport"
	tr := newTransport(t, newBase(nil), throttle.Config{Default: throttle.MustParseBudget("100 tokens/m burst 100")})
	resp := mustGet(t, tr, "http://h/")
	other := *resp
	if err := throttle.Settle(&other, throttle.Cost{"tokens": 5}); fmt.Sprint(err) != noGrant {
		t.Errorf("a copy: %v", err)
	}
	if err := throttle.Settle(resp, throttle.Cost{"tokens": 5}); err != nil {
		t.Error(err)
	}
	if err := throttle.Settle(resp, throttle.Cost{"tokens": 5}); fmt.Sprint(err) != "throttle: Settle: the response was settled before" {
		t.Errorf("twice: %v", err)
	}
	for _, resp := range []*http.Response{nil, {}} {
		if err := throttle.Settle(resp, nil); fmt.Sprint(err) != noGrant {
			t.Errorf("none: %v", err)
		}
	}
}
