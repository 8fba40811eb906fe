package throttle_test

import (
	"fmt"
	"net/http"
	"strings"
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
			found = found || strings.Contains(l.Why, "for a part of GET /v0 only")
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
		for _, n := range throttle.UnderWay(tr, "h") {
			if n != 0 {
				t.Errorf("a kind counts %d requests under way, want none: all were answered", n)
			}
		}
	})
}
