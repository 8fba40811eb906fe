package throttle_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// A pause ends at its instant: who comes then does not wait.
func TestPauseEndsAtItsInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := 0
		l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("10/s burst 10"), OnWait: func(throttle.Wait) { waits++ }})
		if err != nil {
			t.Fatal(err)
		}
		burst(t, l, 1)
		l.Pause("k", time.Now().Add(10*sec))
		time.Sleep(10 * sec)
		if _, err := l.Take(police(t), "k", nil); err != nil || waits != 0 {
			t.Errorf("got %v after %d waits", err, waits)
		}
	})
}

// A pause by hand that ends sooner than the one before, or has ended already,
// costs a host and its partitions no more than it lasts.
func TestPausesAreShortened(t *testing.T) {
	for name, until := range map[string]time.Duration{"soon": time.Second, "long ago": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(nil)
				tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("10/s"), Partition: func(r *http.Request) string { return r.URL.Path[1:] }})
				urls := []string{"http://h/", "http://h/part"}
				for _, url := range urls {
					mustGet(t, tr, url)
				}
				tr.Pause("h", time.Now().Add(time.Hour))
				tr.Pause("h", time.Now().Add(until))
				time.Sleep(2 * time.Second)
				for _, url := range urls {
					mustGet(t, tr, url)
				}
				sameTimes(t, b.Times(), 0, 0, 2*time.Second, 2*time.Second)
			})
		})
	}
}

// A pause that has ended before it was asked for takes no burst.
func TestAPauseOfThePastIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("6/m burst 3")})
		mustGet(t, tr, "http://h/")
		tr.Pause("h", time.Now().Add(-time.Second))
		mustGet(t, tr, "http://h/")
		mustGet(t, tr, "http://h/")
		sameTimes(t, b.Times(), 0, 0, 0)
	})
}

// Pause and Resume reach those that wait in a partition of the host, and no
// other host's.
func TestPauseReachesPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, throttle.Config{MaxWait: time.Hour, Partition: func(r *http.Request) string { return r.URL.Path }})
		for _, url := range []string{"http://h/a", "http://i/a"} {
			mustGet(t, tr, url)
		}
		tr.Pause("h", time.Now().Add(30*time.Minute))
		mustGet(t, tr, "http://i/a")
		var wg sync.WaitGroup
		long := make(chan error, 1)
		wg.Go(func() { mustGet(t, tr, "http://h/a") })
		wg.Go(func() {
			_, err := get(t, throttle.WithMaxWait(t.Context(), 50*time.Minute), tr, "http://h/a")
			long <- err
		})
		time.Sleep(sec)
		tr.Pause("i", time.Now().Add(24*time.Hour)) // is no matter to h
		time.Sleep(sec)
		tr.Pause("h", time.Now().Add(59*time.Minute))
		time.Sleep(sec)
		select {
		case err := <-long:
			if err == nil {
				t.Error("one was let through that cannot wait that long")
			}
		default:
			t.Error("one that cannot wait that long still does")
		}
		tr.Resume("h")
		wg.Wait()
		sameTimes(t, b.Times(), 0, 0, 0, 3*sec)
	})
}

func TestPauseAndResumeReachTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("1/s")})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { mustGet(t, tr, "http://a/") })
		}
		synctest.Wait()
		tr.Pause("A", time.Now().Add(30*time.Second))
		time.Sleep(10 * time.Second)
		tr.Resume("a.")
		wg.Wait()
		sameTimes(t, b.Times(), 0, 10*time.Second, 11*time.Second)
	})
}

func TestPauseRefusesThoseThatCannotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("1/s")})
		mustGet(t, tr, "http://a/")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := get(t, ctx, tr, "http://a/")
			var e *throttle.Error
			if !errors.As(err, &e) || e.Reason != throttle.Paused || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want a refusal because of the pause", err)
			}
			if time.Since(b.Start) != 500*time.Millisecond {
				t.Errorf("refused after %v, want at once", time.Since(b.Start))
			}
		})
		time.Sleep(500 * time.Millisecond)
		tr.Pause("a", time.Now().Add(time.Minute))
		wg.Wait()
	})
}

func TestServerPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		b := newBase(func(r *http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return testnet.Answer(r, 429, http.Header{"Retry-After": {"7"}}, testnet.NewBody("no")), nil
			}
			return testnet.Answer(r, 200, nil, nil), nil
		})
		tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("2/s burst 2")})
		if resp := mustGet(t, tr, "http://a/"); resp.StatusCode != 429 {
			t.Errorf("got %d, want the server's 429", resp.StatusCode)
		}
		mustGet(t, tr, "http://b/")
		mustGet(t, tr, "http://a/")
		at := b.Times()
		if at[1] != 0 || at[2] < 7*time.Second || at[2] > 9*time.Second {
			t.Errorf("arrived at %v, want b at once and a after the pause", at)
		}
	})
}

// TestPauseIsSeenThroughFullPlaces: that the wait for a place has no known
// length does not hide a pause that is too long.
func TestPauseIsSeenThroughFullPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(slow(0)), throttle.Config{Default: throttle.Budget{InFlight: 1}, DisableLearning: true})
		mustGet(t, tr, "http://a/")
		tr.Pause("a", time.Now().Add(time.Hour))
		start := time.Now()
		_, err := get(t, t.Context(), tr, "http://a/")
		var e *throttle.Error
		if !errors.As(err, &e) || e.Reason != throttle.Paused || e.RetryAfter != time.Hour || time.Since(start) != 0 {
			t.Errorf("got %v after %v, want a refusal at once", err, time.Since(start))
		}
	})
}

// Two requests are refused together. The answer to one comes at once and asks
// for a second, the other comes late and asks for longer. When that pause is
// over too, the flow is again what it was.
func TestAPauseThatALateAnswerProlongsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n, done atomic.Int64
		b := newBase(func(r *http.Request) (*http.Response, error) {
			took, header, status := 100*time.Millisecond, http.Header{}, 200
			switch n.Add(1) {
			case 1:
				status = 429
				header.Set("Retry-After", "1")
			case 2:
				took, status = 5*time.Second, 429
				header.Set("Retry-After", "5")
			}
			if err := testnet.Wait(r.Context(), took); err != nil {
				return nil, err
			}
			done.Add(1)
			return testnet.Answer(r, status, header, nil), nil
		})
		tr := newTransport(t, b, throttle.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				for ctx.Err() == nil {
					get(t, ctx, tr, "http://h/")
				}
			})
		}
		time.Sleep(time.Minute)
		before := done.Load()
		time.Sleep(10 * time.Second)
		cancel()
		wg.Wait()
		if got := done.Load() - before; got < 4000 {
			t.Errorf("%d answers in the 10 s from the 60th on, want 4000 at least: one at a time is 100", got)
		}
	})
}

// Of a pause that is longer than the server asked for, the words say what it
// asked for, how much was added, and why.
func TestALongerPauseSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 429, http.Header{"Retry-After": {"1"}}, nil), nil
		}), throttle.Config{})
		said := regexp.MustCompile(`^paused until [0-9:]+, [0-9.]+s longer than the 1s said by Retry-After, a guess after [0-9]+ refusals in a row$`)
		var long []string
		for range 7 {
			mustGet(t, tr, "http://a/")
			for _, l := range tr.Stats().Hosts[0].Learned {
				if l.Kind == throttle.LearnedPause && l.Wait > 10*time.Second {
					long = append(long, l.Why)
				}
			}
		}
		if len(long) == 0 {
			t.Fatal("no pause was longer than 10 s")
		}
		for _, why := range long {
			if !said.MatchString(why) {
				t.Errorf("%q", why)
			}
		}
		t.Log(long[len(long)-1])
	})
}

// That is so of the first pause, too.
func TestAFirstPauseSaysWhatWasAdded(t *testing.T) {
	asks := refusal(3*sec, headers.Limit{})
	for _, tt := range []struct {
		lot     float64 // of the second and a half over which newcomers are spread
		answers []speech
		want    string
	}{
		{0, []speech{asks}, "said by Retry-After"},
		{0.66, []speech{asks}, "said by Retry-After"},
		{0.95, []speech{asks}, "1.425s longer than the 3s said by Retry-After, so that not all come back at once"},
		{0, []speech{asks, asks, asks, {}, asks}, "2s longer than the 3s said by Retry-After, as such hints were too short before"},
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := telling(t, throttle.Config{}, tt.answers...)
			throttle.Jitter(tr, func() float64 { return tt.lot })
			for range tt.answers {
				mustGet(t, tr, "http://a/")
			}
			for _, why := range learned(t, tr) {
				if _, got, _ := strings.Cut(why, ", "); strings.HasPrefix(why, "paused until ") && got != tt.want {
					t.Errorf("by lot %v: %q, want %q", tt.lot, got, tt.want)
				}
			}
		})
	}
}
