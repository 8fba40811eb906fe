package throttle_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// A limit that is not mentioned any more is forgotten after ten minutes, or two
// of its windows.
func TestQuotasAreForgotten(t *testing.T) {
	for _, test := range []struct {
		window, after time.Duration
		kept          bool
	}{{0, 10 * time.Minute, true}, {0, 10*time.Minute + 1, false}, {time.Hour, 2 * time.Hour, true}, {time.Hour, 2*time.Hour + 1, false}, {sec, 10 * time.Minute, true}} {
		synctest.Test(t, func(t *testing.T) {
			l := left(4, 0)
			l.Quota = known(5.) // fewer than are served without a word of it until it is forgotten
			l.Name, l.Window = "a", headers.Opt[time.Duration]{Value: test.window, Known: test.window > 0}
			tr := telling(t, throttle.Config{}, stating(l), speech{})
			mustGet(t, tr, "http://h/x")
			time.Sleep(test.after)
			mustGet(t, tr, "http://h/x")
			if _, limits, _ := throttle.LearnedKept(tr, "h"); (limits == 1) != test.kept {
				t.Errorf("%+v: kept %t", test, !test.kept)
			}
			refused := 0
			for range 20 { // more than were left of it
				if _, err := get(t, police(t), tr, "http://h/x"); err != nil {
					refused++
				}
			}
			if (refused > 0) != test.kept {
				t.Errorf("%+v: it holds up %d of 20", test, refused)
			}
		})
	}
}

// What was under way when a limit was first heard of is under way no longer once it is
// answered, whatever each of its requests cost.
func TestRequestsFromBeforeALimitWasKnownEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left, mu := 2000, sync.Mutex{}
		cost := func(r *http.Request) int { n, _ := strconv.Atoi(r.URL.Query().Get("tokens")); return n }
		b := newBase(func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Duration(1000/cost(r)) * time.Millisecond) // the dearest is answered first
			mu.Lock()
			defer mu.Unlock()
			left -= cost(r)
			return testnet.Answer(r, 200, http.Header{"X-Ratelimit-Limit-Tokens": {"2000"}, "X-Ratelimit-Remaining-Tokens": {strconv.Itoa(left)}, "X-Ratelimit-Reset-Tokens": {"60s"}}, http.NoBody), nil
		})
		tr := newTransport(t, b, throttle.Config{Cost: func(r *http.Request) throttle.Cost { return throttle.Cost{"tokens": int64(cost(r))} }})
		var all sync.WaitGroup
		for _, n := range []string{"500", "50", "50", "50"} {
			all.Go(func() { mustGet(t, tr, "http://h/x?tokens="+n).Body.Close() })
		}
		all.Wait()
		began := time.Now()
		mustGet(t, tr, "http://h/x?tokens=600").Body.Close()
		if took := time.Since(began); took > time.Second {
			t.Errorf("600 of %d tokens waited for %v", left+600, took)
		}
	})
}

// Limits beyond the most are not kept, unless one that does not bind can go: the one that
// was not heard of for the longest time. One of which less than a unit is left binds.
func TestQuotasAreBounded(t *testing.T) {
	for rest, want := range map[float64]string{1: "old", .9: ""} {
		synctest.Test(t, func(t *testing.T) {
			named := func(name string, n float64) headers.Limit {
				l := left(n, time.Hour)
				l.Name = name
				return l
			}
			first := []headers.Limit{named("old", rest)}
			for i := range throttle.MostQuotas - 2 {
				first = append(first, named(fmt.Sprint(i), 0))
			}
			tr := telling(t, throttle.Config{}, speech{Signal: headers.Signal{Limits: first}}, stating(named("young", rest)), stating(named("more", 1)))
			for _, path := range []string{"a", "b", "c"} {
				mustGet(t, tr, "http://h/"+path)
				time.Sleep(sec)
			}
			names := make(map[string]bool)
			for _, l := range statsOf(t, tr).Learned {
				names[l.Name] = true
			}
			if len(names) != throttle.MostQuotas || names["more"] != (want != "") || names["old"] == (want == "old") || !names["young"] {
				t.Errorf("%v are left of two: %d limits are kept; more %t, old %t, young %t", rest, len(names), names["more"], names["old"], names["young"])
			}
			if _, limits, _ := throttle.LearnedKept(tr, "h"); limits != throttle.MostQuotas {
				t.Errorf("%d limits are kept", limits)
			}
		})
	}
}

// A limit whose size the server never stated is shown as long as it is known what is left
// of it. After its reset that may be anything, so it is not shown until an answer tells.
func TestLimitsOfWhichPlentyIsLeftAreNotShown(t *testing.T) {
	for name, test := range map[string]struct {
		size  headers.Opt[float64]
		shown int // after the reset
	}{"a size was stated": {known(10.), 1}, "none was stated": {headers.Opt[float64]{}, 0}} {
		synctest.Test(t, func(t *testing.T) {
			of := func(n float64) speech {
				l := left(n, 30*sec)
				l.Quota = test.size
				return stating(l)
			}
			tr := telling(t, throttle.Config{}, of(3), of(2), of(9))
			show := func(when string, want int) {
				if got := learned(t, tr); len(got) != want {
					t.Errorf("%s, %s: %q is shown, want %d limits", name, when, got, want)
				}
			}
			mustGet(t, tr, "http://h/x")
			mustGet(t, tr, "http://h/x") // what is left falls, so it is a limit
			show("before the reset", 1)
			time.Sleep(31 * sec)
			show("after it", test.shown)
			mustGet(t, tr, "http://h/x")
			show("after another answer", 1)
		})
	}
}
