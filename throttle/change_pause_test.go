package throttle_test

import (
	"github.com/weirhttp/weir/throttle"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A budget that is changed in a pause by hand lets its flow resume at its own
// rate when the pause is over, neither later nor with a burst.
func TestBudgetsChangeInPauses(t *testing.T) {
	for _, test := range []struct{ from, to string }{
		{"1000/s", "20/s"}, // what the pause took is no debt
		{"20/s", "1000/s"},
		{"20/s burst 20", "20/s burst 4"},
		{"20/s", "40/2s"},
		{"1000/s", "20/2s"},
		{"100 rows/s", "20/s"},
		{"40/s bucket 40", "20/s bucket 20"},
		{"unlimited", "20/s"},
	} {
		t.Run(test.from+" to "+test.to, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(nil)
				tr := newTransport(t, b, throttle.Config{Budgets: map[string]throttle.Budget{"h": throttle.MustParseBudget(test.from)}})
				mustGet(t, tr, "http://h/")
				tr.Pause("h", time.Now().Add(time.Minute))
				to := throttle.MustParseBudget(test.to)
				if err := tr.SetBudget("h", to); err != nil {
					t.Fatal(err)
				}
				var wg sync.WaitGroup
				for range 3 {
					wg.Go(func() { mustGet(t, tr, "http://h/") })
				}
				wg.Wait()
				at, gap := b.Times(), to.Rates[0].Per/time.Duration(to.Rates[0].Limit)
				slices.Sort(at)
				sameTimes(t, at[1:], time.Minute, time.Minute+gap, time.Minute+2*gap)
			})
		})
	}
}

// What a pause took from a partition's budget is no debt of the next one.
func TestPartitionsBudgetsChangeInPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("1000/s"), Partition: func(*http.Request) string { return "p" }})
		mustGet(t, tr, "http://h/")
		tr.Pause("h", time.Now().Add(time.Minute))
		if err := tr.SetBudget("h", throttle.MustParseBudget("20/s")); err != nil {
			t.Fatal(err)
		}
		tr.Resume("h")
		mustGet(t, tr, "http://h/")
		sameTimes(t, b.Times(), 0, 0)
	})
}

// What went long ago under a budget without a shape is no debt of one that has
// one: the flow goes on at its rate.
func TestAShapeBeginsWithoutDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("1000/h burst 1000")})
		for range 990 {
			mustGet(t, tr, "http://h/")
		}
		time.Sleep(59 * time.Minute)
		if err := tr.SetBudget("h", throttle.MustParseBudget("1000/h burst 100")); err != nil {
			t.Fatal(err)
		}
		mustGet(t, tr, "http://h/")
		mustGet(t, tr, "http://h/")
		sameTimes(t, b.Times()[990:], 59*time.Minute+3600*time.Millisecond, 59*time.Minute+7200*time.Millisecond)
	})
}

// An operator spells a host as it stands in a URL, or copies the URL.
func TestPauseKnowsPorts(t *testing.T) {
	for _, test := range []struct{ paused, url string }{
		{"b.example", "https://b.example:443/"},
		{"b.example:443", "https://b.example/"},
		{"b.example:80", "http://b.example/"},
		{"b.example:443", "http://b.example:443/"},
		{"B.example.:8080", "http://b.example:8080/"},
		{"https://b.example/v1?q", "https://b.example/"},
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := newTransport(t, newBase(nil), throttle.Config{})
			tr.Pause(test.paused, time.Now().Add(time.Second))
			for _, want := range []time.Duration{time.Second, 0} {
				start := time.Now()
				mustGet(t, tr, test.url)
				if got := time.Since(start); got != want {
					t.Errorf("%s paused: %s waited %v, want %v", test.paused, test.url, got, want)
				}
			}
			tr.Pause(test.paused, time.Now().Add(time.Hour))
			tr.Resume(test.paused)
			start := time.Now()
			mustGet(t, tr, test.url)
			if got := time.Since(start); got != 0 {
				t.Errorf("%s resumed: %s waited %v", test.paused, test.url, got)
			}
		})
	}
}
