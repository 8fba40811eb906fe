package chaintest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// floors is a base that now and then asks for a wait and notes who comes too
// early. A request that it refuses again, while it serves others, has to wait by
// itself.
type floors struct {
	mu     sync.Mutex
	random *rand.Rand
	until  time.Time
	said   time.Time            // when until was: who comes at the same instant did not know
	own    map[string]time.Time // by request: until when each waits that was refused
	asked  int
	early  []time.Duration
}

func (f *floors) RoundTrip(r *http.Request) (*http.Response, error) {
	name := r.Header.Get("Name")
	f.mu.Lock()
	if d := max(time.Until(f.until), time.Until(f.own[name])); d > 0 && time.Now().After(f.said) {
		f.early = append(f.early, d)
	}
	took, dice := time.Duration(f.random.IntN(200))*time.Millisecond, f.random.IntN(30)
	f.mu.Unlock()
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	time.Sleep(took)
	if dice > 2 {
		return testnet.Answer(r, 200, nil, testnet.NewBody("ok")), nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	wait := time.Duration(1+f.random.IntN(8)) * time.Second
	value := fmt.Sprint(int(wait.Seconds()))
	if dice == 1 { // a date of whole seconds, on the server's clock
		at := time.Now().Add(wait).Truncate(time.Second)
		wait, value = time.Until(at), at.UTC().Format(http.TimeFormat)
	}
	at, again := time.Now().Add(wait), !f.own[name].IsZero()
	if f.own[name] = at; !again && at.After(f.until) {
		f.until, f.said = at, time.Now()
	}
	status := []int{429, 503}[f.random.IntN(2)]
	return testnet.Answer(r, status, http.Header{"Retry-After": {value}}, testnet.NewBody("later")), nil
}

// TestWaitsAreFloors: no attempt of anybody reaches a server within the wait
// that it has asked for, with hedges and all. What it says when it refuses a request
// again binds at least that request.
func TestWaitsAreFloors(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			base := &floors{random: rand.New(rand.NewPCG(seed, 5)), own: make(map[string]time.Time)}
			rt := must(weir.New(base, weir.Config{
				Retry:    retry.Config{Hedge: retry.Hedge{After: 100 * time.Millisecond}},
				Throttle: throttle.Config{MaxWait: time.Hour, MaxPause: time.Hour},
				Breaker:  breaker.Config{Patience: time.Minute},
			}))(t)
			var wg sync.WaitGroup
			for worker := range 64 {
				wg.Go(func() {
					for turn := range 6 {
						r := must(http.NewRequest("PUT", "http://h/", strings.NewReader("x")))(t)
						r.Header.Set("Name", fmt.Sprint(worker, ".", turn))
						if resp, err := rt.RoundTrip(r); err == nil {
							resp.Body.Close()
						} else {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			if base.asked < 10 || len(base.early) > 0 {
				t.Errorf("the server asked for %d waits, and %d attempts came too early: %v; want 10 waits or more, and none too early", base.asked, len(base.early), base.early[:min(len(base.early), 5)])
			}
		})
	}
}

// liars are headers no server should send.
func liars() map[string]http.Header {
	many := make(http.Header)
	var names []string
	for i := range 10000 {
		many[fmt.Sprintf("X-Ratelimit-Remaining-N%d", i)] = []string{"0"}
		many[fmt.Sprintf("X-Ratelimit-Limit-N%d", i)] = []string{"1"}
		names = append(names, fmt.Sprintf(`"n%d";r=0;t=%d`, i, i))
	}
	nines := strings.Repeat("9", 400)
	return map[string]http.Header{
		"10000 headers":  many,
		"10000 members":  {"Ratelimit": {strings.Join(names, ", ")}},
		"endless digits": {"Retry-After": {nines}, "X-Ratelimit-Reset": {nines}, "X-Ratelimit-Remaining": {"-" + nines}},
		"contradictory":  {"Retry-After": {"0", "99999999", "-1", "Mon"}, "X-Ratelimit-Limit": {"0"}, "X-Ratelimit-Remaining": {"1e308"}, "Ratelimit": {`"a";r=0;t=0, "a";r=99;t=-4`}},
		"no numbers":     {"Retry-After": {"NaN"}, "X-Ratelimit-Remaining": {"Inf"}, "X-Ratelimit-Reset": {"-Inf"}},
		"long ago":       {"Retry-After": {"Mon, 01 Jan 0001 00:00:00 GMT"}, "Date": {"Fri, 31 Dec 9999 23:59:59 GMT"}},
		"far off":        {"Retry-After": {"Fri, 31 Dec 9999 23:59:59 GMT"}, "Date": {"Mon, 01 Jan 0001 00:00:00 GMT"}},
		"a megabyte":     {"Retry-After": {strings.Repeat("\x00;=\",(", 200000)}, "Ratelimit-Policy": {strings.Repeat("((", 500000)}},
	}
}

// TestWhateverAServerSaysEachRequestEnds: whatever a server says, each request ends within the caps, no
// wait is negative, and a good answer is served again afterwards.
func TestWhateverAServerSaysEachRequestEnds(t *testing.T) {
	for name, h := range liars() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { liar(t, h) })
		})
	}
}

func liar(t *testing.T, h http.Header) {
	n := 0
	rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
		if n++; n <= 20 {
			return testnet.Answer(r, []int{429, 503, 200, 403}[n%4], h, testnet.NewBody("lie")), nil
		}
		return stub(r)
	}), weir.Config{}))(t)
	for range 20 {
		start := time.Now()
		resp, err := rt.RoundTrip(get(t, "http://h/"))
		if err == nil {
			resp.Body.Close()
		}
		var e *throttle.Error
		if errors.As(err, &e) && (e.RetryAfter < 0 || len(e.Error()) > 1000) {
			t.Errorf("an error names a wait of %v in %d bytes of text, want no negative wait and at most 1000 bytes", e.RetryAfter, len(e.Error()))
		}
		if d := time.Since(start); d > 3*time.Minute {
			t.Errorf("a request took %v, want at most 3m", d)
		}
		time.Sleep(10 * time.Second)
	}
	time.Sleep(26 * time.Hour)
	resp, err := rt.RoundTrip(get(t, "http://h/"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if s := rt.Stats(); len(fmt.Sprint(s)) > 200000 {
		t.Errorf("Stats of one host have %d bytes of text, want at most 200000", len(fmt.Sprint(s)))
	}
}

// TestManyKeysTakeBoundedMemory: hosts, partitions, credentials, lanes and priorities
// that never come again take no memory beyond MaxKeys.
func TestManyKeysTakeBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 200, http.Header{"X-Ratelimit-Limit": {"10"}, "X-Ratelimit-Remaining": {"9"}, "X-Ratelimit-Reset": {"60"}}, nil), nil
		}), weir.Config{Throttle: throttle.Config{
			MaxKeys: 50, Default: throttle.MustParseBudget("1000/s"),
			Partition: func(r *http.Request) string { return r.Header.Get("X-Part") },
			Lane:      func(r *http.Request) string { return r.Header.Get("X-Part") },
		}}))(t)
		round := func(from, to int) uint64 {
			for i := from; i < to; i++ {
				r := get(t, fmt.Sprintf("http://h%d.example/p%d/", i, i))
				r.Header.Set("X-Part", fmt.Sprint("part", i))
				r.Header.Set("Authorization", fmt.Sprint("Bearer ", i))
				ctx := throttle.WithPriority(context.Background(), i)
				resp, err := rt.RoundTrip(r.WithContext(ctx))
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				time.Sleep(time.Second)
			}
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		first := round(0, 1500)
		if grown := int64(round(1500, 6000)) - int64(first); grown > 2<<20 {
			t.Errorf("the heap grew by %d KiB, want at most 2048", grown>>10)
		}
		if n := len(rt.Stats().Throttle.Hosts); n > 110 {
			t.Errorf("%d hosts and partitions are kept, want at most 110", n)
		}
	})
}
