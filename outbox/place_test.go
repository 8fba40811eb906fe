package outbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// running has o run in the bubble; the function it returns ends that.
func running(t *testing.T, o *Transport, every time.Duration) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- o.Run(ctx, every) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Errorf("Run = %v", err)
		}
	}
}

// Three times as many hosts hang as there are places, and none has ever answered.
// Those that were not tried yet wait a head start for each that stands before
// them at their places, not Timeout; once all were tried newcomers wait for nothing.
func TestUntriedHostsBehindManyThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places, hanging, healthy = 16, 3 * 16, 20
		w := newWorld()
		o := box(t, w, Config{Patterns: []string{}, Concurrency: places, Timeout: time.Hour})
		for i := range hanging {
			host := fmt.Sprintf("hangs%d", i)
			w.set(host, -1)
			enqueue(t, o, "http://"+host, "x", "y")
		}
		arrive := func(name string) {
			for i := range healthy {
				enqueue(t, o, fmt.Sprintf("http://%s%d/", name, i), "1", "2", "3")
			}
		}
		within := func(name string, start time.Time, most time.Duration) {
			t.Helper()
			worst := time.Duration(0)
			for i := range healthy {
				host := fmt.Sprintf("%s%d", name, i)
				if got := strings.Join(w.got[host], " "); got != "1 2 3" {
					t.Errorf("%s got %q", host, got)
				}
				worst = max(worst, w.last[host].Sub(start))
			}
			t.Logf("%s: %v", name, worst)
			if worst > most {
				t.Errorf("%s hosts waited up to %v, want at most %v", name, worst, most)
			}
		}
		arrive("early")
		start := time.Now()
		defer running(t, o, time.Minute)()
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		within("early", start, hanging/(places/4)*headStart)
		start = time.Now()
		arrive("late")
		time.Sleep(time.Minute)
		synctest.Wait()
		within("late", start, 0)
		if w.most > places || w.clash {
			t.Errorf("up to %d at a time, two at one host: %v", w.most, w.clash)
		}
	})
}

// When all hosts that have the places begin to hang, those that answer wait for
// a head start.
func TestAllThatAnsweredHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		o := box(t, w, Config{Patterns: []string{}, Concurrency: 4, Timeout: time.Hour})
		defer running(t, o, time.Minute)()
		for i := range 5 {
			enqueue(t, o, fmt.Sprintf("http://h%d/", i), "known")
		}
		synctest.Wait()
		for i := range 4 {
			w.set(fmt.Sprintf("h%d", i), -1)
			enqueue(t, o, fmt.Sprintf("http://h%d/", i), "x")
		}
		synctest.Wait()
		start := time.Now()
		enqueue(t, o, "http://h4/", "x")
		enqueue(t, o, "http://new/", "x")
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, host := range []string{"h4", "new"} {
			if took := w.last[host].Sub(start); took != headStart {
				t.Errorf("%s waited %v, want %v", host, took, headStart)
			}
		}
	})
}

// Hosts that take longer than a head start are delivered all the same, in order.
// The first entry of each may be sent twice, with the same key, and no other.
func TestSlowHostsShareFewPlaces(t *testing.T) {
	for _, how := range []string{"Drain", "Run", "Run and wake"} {
		synctest.Test(t, func(t *testing.T) {
			const hosts, events = 12, 5
			w := newWorld()
			var mu sync.Mutex
			keys := map[string][]string{} // by host: of each sending
			o := box(t, tripper(func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				keys[r.URL.Host] = append(keys[r.URL.Host], r.Header.Get("Idempotency-Key"))
				mu.Unlock()
				return w.RoundTrip(r)
			}), Config{Patterns: []string{}, Concurrency: 4})
			for i := range hosts {
				host := fmt.Sprintf("h%d", i)
				w.set(host, 12*time.Second)
				enqueue(t, o, "http://"+host, "1", "2", "3", "4", "5")
			}
			if how == "Drain" {
				if n, err := o.Drain(t.Context()); n != hosts*events || err != nil {
					t.Errorf("Drain = %d, %v", n, err)
				}
			} else {
				every := time.Minute
				if how == "Run" {
					every = 0 // only Wake has it try those that are stuck, and nobody calls it
				}
				stop := running(t, o, every)
				time.Sleep(time.Hour)
				stop()
			}
			if st := o.Stats(); st.Delivered != hosts*events || st.Pending != 0 {
				t.Errorf("%s: %+v", how, st)
			}
			for host, sent := range keys {
				twice := len(sent) - events
				if twice > 1 || len(slices.Compact(sent)) != events {
					t.Errorf("%s: %s got %d of %d again: %q", how, host, twice, events, sent)
				}
			}
			if w.clash || w.most > 4 || len(keys) != hosts {
				t.Errorf("%s: up to %d at a time, two at one host %v, %v", how, w.most, w.clash, slices.Collect(maps.Keys(keys)))
			}
		})
	}
}

// Whoever is told of a queue that had to leave its place hears why.
func TestLeavingAPlaceIsAStuckTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.set("hangs", -1)
		var told []Stuck
		o := box(t, w, Config{Patterns: []string{}, Concurrency: 1, OnStuck: func(s Stuck) { told = append(told, s) }})
		enqueue(t, o, "http://hangs/", "x")
		enqueue(t, o, "http://fine/", "x")
		defer running(t, o, time.Hour)()
		time.Sleep(headStart + time.Second)
		synctest.Wait()
		var cause *Error
		if len(told) != 1 || !errors.As(told[0].Err, &cause) || !cause.Timeout() || cause.Status != 0 || told[0].Queue != "hangs" {
			t.Fatalf("told %+v", told)
		}
		const want = "no answer within 5s, and other queues waited"
		if q := o.Queues()[1]; cause.Err.Error() != want || q.Why != want || q.Tries != 1 {
			t.Errorf("%q, %+v", cause.Err, q)
		}
		if len(w.got["fine"]) != 1 {
			t.Error("the other queue was not served")
		}
	})
}

// Whatever hosts do and however few places there are, those that answer get all
// of their entries in order, one at a time, never more than there are places.
func TestPlacesOfRandomWorlds(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			w := newWorld()
			places := 1 + random.IntN(10)
			o := box(t, w, Config{Patterns: []string{}, Concurrency: places, Timeout: time.Minute, MaxTries: -1})
			defer running(t, o, time.Duration(random.IntN(3))*20*time.Second)()
			good := map[string][]string{}
			for i := range 3 * places {
				host := fmt.Sprintf("h%d", i)
				switch random.IntN(4) {
				case 0:
					w.set(host, -1)
				case 1:
					w.set(host, time.Duration(random.IntN(40))*time.Second)
					fallthrough
				default:
					good[host] = nil
				}
			}
			for i := range 4 * 3 * places {
				host := fmt.Sprintf("h%d", random.IntN(3*places))
				body := fmt.Sprint(i)
				enqueue(t, o, "http://"+host, body)
				if _, answers := good[host]; answers {
					good[host] = append(good[host], body)
				}
				time.Sleep(time.Duration(random.IntN(3)) * time.Second)
			}
			time.Sleep(24 * time.Hour)
			synctest.Wait()
			for host, want := range good {
				if !slices.Equal(w.got[host], want) {
					t.Errorf("seed %d: %s got %q, want %q", seed, host, w.got[host], want)
				}
			}
			if w.clash || w.most > places {
				t.Errorf("seed %d: up to %d at a time in %d places, two at one host: %v", seed, w.most, places, w.clash)
			}
		})
	}
}
