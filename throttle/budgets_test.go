package throttle_test

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// quotaOf answers with a quota of ten that is back after 100 s, n of it left.
func quotaOf(n int) func(*http.Request) (*http.Response, error) {
	var left atomic.Int64
	left.Store(int64(n))
	return func(r *http.Request) (*http.Response, error) {
		return testnet.Answer(r, 200, http.Header{"X-Ratelimit-Limit": {"10"}, "X-Ratelimit-Remaining": {fmt.Sprint(max(0, left.Add(-1)))}, "X-Ratelimit-Reset": {"100"}}, nil), nil
	}
}

// A host's own settings stand instead of all of Config's, and only for it.
func TestHostSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		own      throttle.HostConfig
		left     int // of the host's quota; zero: it has none
		partly   func(*http.Request) string
		own2, of time.Duration // when the second request goes to the host, and to another; negative: it is refused
	}{
		"MaxWait":         {throttle.HostConfig{MaxWait: -1}, 0, nil, -1, time.Second},
		"its default":     {throttle.HostConfig{}, 0, nil, time.Second, time.Second},
		"of a partition":  {throttle.HostConfig{MaxWait: -1}, 0, func(*http.Request) string { return "key" }, -1, time.Second},
		"DisableLearning": {throttle.HostConfig{DisableLearning: true}, 1, nil, time.Second, -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for host, want := range map[string]time.Duration{"a.own": tt.own2, "b.own": tt.own2, "own": tt.of} {
					b := newBase(nil)
					if tt.left > 0 {
						b.Answer = quotaOf(tt.left)
					}
					tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("1/s"), Partition: tt.partly})
					if err := tr.SetHost("*.own", tt.own); err != nil {
						t.Fatal(err)
					}
					mustGet(t, tr, "http://"+host+"/")
					_, err := get(t, t.Context(), tr, "http://"+host+"/")
					var refused *throttle.Error
					switch at := b.Times(); {
					case want < 0:
						if !errors.As(err, &refused) || len(at) != 1 {
							t.Errorf("%s: %v, want a refusal", host, err)
						}
					case err != nil || at[1] < want*99/100 || at[1] > want*101/100:
						t.Errorf("%s: %v at %v, want %v", host, err, at, want)
					}
				}
			})
		})
	}
}

// Pace spreads what a host has stated over its window, for that host alone.
func TestHostPaceSpreadsItsQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for host, paced := range map[string]bool{"own": true, "other": false} {
			b := newBase(quotaOf(9))
			tr := newTransport(t, b, throttle.Config{Pace: !paced})
			if err := tr.SetHost(host, throttle.HostConfig{Pace: paced}); err != nil {
				t.Fatal(err)
			}
			for range 4 {
				mustGet(t, tr, "http://"+host+"/")
			}
			if at := b.Times(); (at[3] > 20*time.Second) != paced {
				t.Errorf("%s: sent at %v, paced: %v", host, at, paced)
			}
		}
	})
}

// MaxPause bounds what a host may ask for by one answer.
func TestHostMaxPauseBoundsOneAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 429, http.Header{"Retry-After": {"86400"}}, nil), nil
		})
		tr := newTransport(t, b, throttle.Config{MaxPause: time.Minute})
		for host, most := range map[string]time.Duration{"long": time.Hour, "default": 0} {
			if err := tr.SetHost(host, throttle.HostConfig{MaxPause: most}); err != nil {
				t.Fatal(err)
			}
		}
		for host, want := range map[string]time.Duration{"long": time.Hour, "default": 5 * time.Minute, "other": time.Minute} {
			mustGet(t, tr, "http://"+host+"/")
			_, err := get(t, t.Context(), tr, "http://"+host+"/")
			var e *throttle.Error
			if errors.As(err, &e); want > time.Minute && (e == nil || e.RetryAfter < want*99/100 || e.RetryAfter > want*101/100) {
				t.Errorf("%s: %v, want a pause of %v", host, err, want)
			}
			if host == "other" && err != nil {
				t.Errorf("%v: the pause was not capped at a minute", err)
			}
		}
	})
}

// New settings count at once, also for those that wait, and in any order with
// calls to the host.
func TestHostSettingsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(quotaOf(1))
		tr := newTransport(t, b, throttle.Config{MaxWait: time.Hour})
		mustGet(t, tr, "http://a/")
		var waits sync.WaitGroup
		for range 3 {
			waits.Go(func() { mustGet(t, tr, "http://a/") })
		}
		synctest.Wait()
		time.Sleep(time.Second)
		if err := tr.SetHost("a", throttle.HostConfig{DisableLearning: true}); err != nil {
			t.Fatal(err)
		}
		waits.Wait()
		for _, at := range b.Times()[1:] {
			if at != time.Second {
				t.Errorf("one went at %v, want 1s: what was learned counts no more", at)
			}
		}
		if l := tr.Stats().Hosts[0].Learned; len(l) != 0 {
			t.Errorf("shown as learned: %v", l)
		}
		if err := tr.SetHost("a", throttle.HostConfig{MaxWait: -1}); err != nil {
			t.Fatal(err)
		}
		if _, err := get(t, t.Context(), tr, "http://a/"); err == nil {
			t.Error("what was learned before does not count again")
		}
		for i := range 20 {
			waits.Go(func() {
				if err := tr.SetHost("*.many", throttle.HostConfig{DisableLearning: i%2 == 0, Pace: i%3 == 0}); err != nil {
					t.Error(err)
				}
			})
			waits.Go(func() { get(t, t.Context(), tr, fmt.Sprintf("http://h%d.many/", i%4)) })
		}
		waits.Wait()
	})
}

// Settings that make no sense change nothing.
func TestHostSettingsRefused(t *testing.T) {
	synctest.Test(t, testHostSettingsRefused)
}

func testHostSettingsRefused(t *testing.T) {
	settings := throttle.HostConfig{MaxWait: -1}
	wrong := settings
	wrong.MaxPause = -time.Second
	tr := newTransport(t, newBase(nil), throttle.Config{Default: throttle.MustParseBudget("1/s")})
	for want, set := range map[string]func() error{
		`throttle: SetHost: pattern "GET a/x": settings are per host`: func() error { return tr.SetHost("GET a/x", settings) },
		`throttle: SetHost "a": MaxPause: -1s is negative`:            func() error { return tr.SetHost("a", wrong) },
		`throttle: SetHost: `: func() error { return tr.SetHost("", settings) },
	} {
		if err := set(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for _, host := range []string{"a", "other"} {
		mustGet(t, tr, "http://"+host+"/x")
		if _, err := get(t, t.Context(), tr, "http://"+host+"/x"); err != nil {
			t.Errorf("%v: something has changed", err)
		}
	}
}

// Budgets are read back as they are, and the copy is the caller's.
func TestBudgetsReadBack(t *testing.T) {
	tr := newTransport(t, newBase(nil), throttle.Config{Default: throttle.MustParseBudget("9/s"), Budgets: map[string]throttle.Budget{"a": throttle.MustParseBudget("1/s, pool p"), "GET b/x": throttle.MustParseBudget("2/s")}})
	if err := tr.SetBudget("*.c", throttle.MustParseBudget("3/s, pool p")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"": "9/s", "a": "3/s, pool p", "GET b/x": "2/s", "*.c": "3/s, pool p"} // a pool is one budget
	for range 2 {
		got := make(map[string]string)
		for text, b := range tr.Budgets() {
			got[text] = b.String()
			if len(b.Rates) > 0 {
				b.Rates[0].Limit = 77
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("9/s"), Budgets: map[string]throttle.Budget{"a": throttle.MustParseBudget("1/s"), "*:b": throttle.MustParseBudget("2/s")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetBudget("a", throttle.MustParseBudget("4/s")); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"a": "4/s", "x:b": "2/s", "other": "9/s"} {
		if got, err := l.BudgetOf(key); err != nil || got.String() != want {
			t.Errorf("%s: %v, %v; want %s", key, got, err, want)
		}
	}
}
