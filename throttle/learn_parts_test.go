package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// oneEach is a server that serves one request to each base below /v0/ within per, and says of
// others no more than that it refuses them.
func oneEach(per time.Duration) testnet.Func {
	last := map[string]time.Time{}
	return func(r *http.Request) (*http.Response, error) {
		time.Sleep(20 * time.Millisecond)
		base := strings.Split(r.URL.Path, "/")[2]
		if time.Since(last[base]) < per {
			return testnet.Answer(r, 429, nil, nil), nil
		}
		last[base] = time.Now()
		return testnet.Answer(r, 200, nil, nil), nil
	}
}

// holding is oneEach whose answers can be held back.
func holding(per time.Duration) (serve testnet.Func, hold func() (release func())) {
	var at atomic.Pointer[chan struct{}]
	inner := oneEach(per)
	turn := make(chan struct{}, 1) // a mutex would keep virtual time from going on
	serve = func(r *http.Request) (*http.Response, error) {
		if c := at.Load(); c != nil {
			<-*c
		}
		turn <- struct{}{}
		defer func() { <-turn }()
		return inner(r)
	}
	return serve, func() func() {
		c := make(chan struct{})
		at.Store(&c)
		return func() { at.Store(nil); close(c) }
	}
}

// findParts makes calls until parts of GET /v0 are told apart.
func findParts(t *testing.T, tr *throttle.Transport, per time.Duration) {
	t.Helper()
	for i := range 40 {
		for base := range 4 {
			mustGet(t, tr, fmt.Sprintf("http://h/v0/app%d/%d", base, i))
		}
		mustGet(t, tr, fmt.Sprintf("http://h/v0/app0/%d", i+1)) // which is refused mostly
		time.Sleep(per)
	}
	if parts, _, _ := throttle.PartsUnderWay(tr, "h"); parts == 0 {
		t.Fatal("no parts were found")
	}
}

// Bases below one segment that are limited each on its own are told apart, in words as well, and a
// refusal of one holds up no other.
func TestARefusalOfAPartHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, oneEach(10*time.Second), throttle.Config{})
		for i := range 40 {
			for base := range 4 {
				mustGet(t, tr, fmt.Sprintf("http://h/v0/app%d/%d", base, i))
			}
			mustGet(t, tr, fmt.Sprintf("http://h/v0/app0/%d", i+1)) // which is refused mostly
			time.Sleep(10 * time.Second)
		}
		mustGet(t, tr, "http://h/v0/app0/a")
		mustGet(t, tr, "http://h/v0/app0/b")
		start := time.Now()
		if resp := mustGet(t, tr, "http://h/v0/app1/a"); resp.StatusCode != 200 || time.Since(start) > 100*time.Millisecond {
			t.Errorf("a call to another base got status %d after %v, want 200 at once", resp.StatusCode, time.Since(start))
		}
		found := false
		for _, l := range statsOf(t, tr).Learned {
			found = found || strings.Contains(l.Why, "for a part of GET /v0 only") || strings.HasSuffix(l.Why, "objects of GET /v0")
		}
		if !found {
			t.Errorf("Stats shows %+v, want a limit of a part of GET /v0", statsOf(t, tr).Learned)
		}
	})
}

// However many parts have limits of their own, no more kinds of request are kept than otherwise, and
// each gets back the places that it lent, also if the answer shows that the request is of a part.
func TestPartsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, oneEach(time.Minute), throttle.Config{})
		for i := range 30 { // so that they are told apart
			for base := range 4 {
				mustGet(t, tr, fmt.Sprintf("http://h/v0/app%d/%d", base, i))
			}
			mustGet(t, tr, "http://h/v0/app0/again")
			time.Sleep(time.Minute)
		}
		for i := range 10 * throttle.MostKinds {
			for _, path := range []string{fmt.Sprintf("v0/app%d/a", i), fmt.Sprintf("v0/app%d/b", i), fmt.Sprintf("k%d/a", i%100)} {
				if resp, err := testnet.Get(t, t.Context(), tr, "http://h/"+path); err == nil {
					resp.Body.Close()
				}
			}
		}
		if _, _, kinds := throttle.LearnedKept(tr, "h"); kinds > throttle.MostKinds || kinds < 10 {
			t.Errorf("%d kinds are kept, want some, and at most %d", kinds, throttle.MostKinds)
		}
		noneUnderWay(t, tr, "all were answered")
	})
}

// noneUnderWay holds that each kind of request to h counts none under way.
func noneUnderWay(t *testing.T, tr *throttle.Transport, when string) {
	t.Helper()
	if n := throttle.UnderWay(tr, "h"); slices.ContainsFunc(n, func(n int) bool { return n != 0 }) {
		t.Errorf("%s: kinds count %v requests under way, want none", when, n)
	}
}

// A request whose refusal shows that it is of a part is under way for the evidence of that part as
// well, until it is over: else one more than is allowed goes at a time.
func TestAPartCountsWhatIsUnderWay(t *testing.T) {
	const enough = 4 // requests to parts: some servers' parts are not found, or not by what is limited
	sum := 0
	for seed := uint64(0); seed < 20 && sum < enough; seed++ {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			last, dice, hold := map[string]time.Time{}, rand.New(rand.NewPCG(seed, 6)), make(chan struct{})
			var held atomic.Bool
			tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
				if held.Load() {
					<-hold
				}
				mu.Lock()
				way := time.Duration(dice.IntN(300)) * time.Millisecond
				mu.Unlock()
				time.Sleep(way)
				mu.Lock()
				defer mu.Unlock()
				base := strings.Split(r.URL.Path, "/")[2]
				if time.Since(last[base]) < time.Second {
					return testnet.Answer(r, 429, nil, nil), nil
				}
				last[base] = time.Now()
				return testnet.Answer(r, 200, nil, nil), nil
			}), throttle.Config{})
			var wg sync.WaitGroup
			for g := range 16 {
				wg.Go(func() {
					for i := range 100 {
						if resp, err := testnet.Get(t, t.Context(), tr, fmt.Sprintf("http://h/v0/app%d/%d", (g+i)%4, i)); err == nil {
							resp.Body.Close()
						}
					}
				})
			}
			wg.Wait()
			time.Sleep(5 * time.Minute)
			held.Store(true)
			for base := range 4 {
				wg.Go(func() { // a limit that was found by chance may hold it up
					if resp, err := testnet.Get(t, t.Context(), tr, fmt.Sprintf("http://h/v0/app%d/held", base)); err == nil {
						resp.Body.Close()
					}
				})
			}
			synctest.Wait()
			if _, places, evidence := throttle.PartsUnderWay(tr, "h"); evidence != places {
				t.Errorf("%d requests to parts are under way, and %d by the evidence", places, evidence)
			} else {
				sum += places
			}
			close(hold)
			wg.Wait()
		})
	}
	if sum < enough {
		t.Errorf("%d requests to parts were under way: want %d at least", sum, enough)
	}
}

// Parts, however many there are, push out no kinds of request, and a kind that is not called for long is
// not forgotten while a part of it has to wait.
func TestPartsAndKindsAreNotForgottenForOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, long := oneEach(10*time.Second), false
		tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			if long && strings.HasPrefix(r.URL.Path, "/v0/app1/") {
				return testnet.Answer(r, 429, http.Header{"Retry-After": {"290"}}, nil), nil
			}
			if r.URL.Path[:4] != "/v0/" {
				return testnet.Answer(r, 200, nil, nil), nil
			}
			return inner(r)
		}), throttle.Config{})
		get := func(path string) {
			if resp, err := testnet.Get(t, t.Context(), tr, "http://h/"+path); err == nil {
				resp.Body.Close()
			}
		}
		for i := range 20 {
			get(fmt.Sprintf("other%d/x", i))
		}
		for i := range 40 { // so that bases are told apart
			for base := range 4 {
				get(fmt.Sprintf("v0/app%d/%d", base, i))
			}
			get(fmt.Sprintf("v0/app0/%d", i+1))
			time.Sleep(10 * time.Second)
		}
		kinds := func() int {
			_, _, all := throttle.LearnedKept(tr, "h")
			parts, _, _ := throttle.PartsUnderWay(tr, "h")
			return all - parts
		}
		was := kinds()
		for i := range 400 {
			get(fmt.Sprintf("v0/app%d/a", i))
			get(fmt.Sprintf("v0/app%d/b", i))
		}
		if n := kinds(); was < 21 || n < was {
			t.Errorf("%d kinds are kept after many parts were called, %d before", n, was)
		}

		time.Sleep(time.Hour)
		long = true
		for i := range 5 { // so that this base has to wait, and not only what was refused
			get(fmt.Sprintf("v0/app1/%d", i))
		}
		time.Sleep(100 * time.Second)
		for i := range 3 * throttle.MostKinds {
			get(fmt.Sprintf("more%d/x", i))
		}
		if parts, _, _ := throttle.PartsUnderWay(tr, "h"); parts == 0 {
			t.Error("a part was forgotten while it had to wait")
		}
		if n := throttle.PartsAlone(tr, "h"); n != 0 {
			t.Errorf("of %d parts nothing leads to them any more", n)
		}
	})
}

// However many kinds of request are refused, parts are counted of a few only, and of one that is refused
// now rather than of one that was not called for long.
func TestKindsWhosePartsAreCountedAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 429, nil, nil), nil
		}), throttle.Config{})
		get := func(i int) {
			if resp, err := testnet.Get(t, t.Context(), tr, fmt.Sprintf("http://h/k%d/x", i)); err == nil {
				resp.Body.Close()
			}
			if n := len(throttle.KindsCounted(tr, "h")); n > throttle.MostCounted {
				t.Fatalf("the parts of %d kinds are counted, want at most %d", n, throttle.MostCounted)
			}
		}
		for i := range 3 * throttle.MostCounted {
			get(i)
		}
		time.Sleep(time.Hour)
		get(100)
		if names := throttle.KindsCounted(tr, "h"); len(names) != throttle.MostCounted || !slices.Contains(names, "GET /k100") {
			t.Errorf("the parts of %v are counted, want %d kinds, of which GET /k100 is one", names, throttle.MostCounted)
		}
	})
}
