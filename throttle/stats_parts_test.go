package throttle_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// A pause of a part of a kind of request is no pause of the kind, nor of the host: the other parts go on.
// Whoever waits for it waits.
func TestAPausedPartPausesNoRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve := oneEach(10 * time.Second)
		tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Path, "/v0/app1/long") {
				return testnet.Answer(r, 429, http.Header{"Retry-After": {"30"}}, nil), nil
			}
			return serve(r)
		}), throttle.Config{})
		findParts(t, tr, 10*time.Second)
		time.Sleep(time.Minute)
		for i := range 5 {
			mustGet(t, tr, fmt.Sprintf("http://h/v0/app1/long%d", i))
		}
		state := func(want throttle.State) {
			t.Helper()
			h := statsOf(t, tr)
			if h.State != want || h.Routes[0].State != want {
				t.Errorf("the host is %s, its route %s (%s); want %s", h.State, h.Routes[0].State, h.Routes[0].Why, want)
			}
		}
		state(throttle.StateOK)
		var wg sync.WaitGroup
		wg.Go(func() { mustGet(t, tr, "http://h/v0/app1/a") })
		synctest.Wait()
		state(throttle.StateWaiting)
		wg.Wait()
	})
}

// Parts that bear the same are told in one line, and those that are paused in another, however many there
// are and whatever their words: a reader learns nothing from one for each.
func TestLimitsOfPartsAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := throttle.Config{Learned: throttle.Knowledge{Version: 1, Salt: make([]byte, 16), Hosts: []throttle.KnownHost{{
			Host: "h", At: time.Now(), Limits: []throttle.KnownLimit{{
				Kind: throttle.LearnedRate, Routes: []string{"GET /v0"}, Parts: "each object", Unit: "requests", Limit: 1, Per: 10 * time.Second,
			}},
		}}}}
		serve := oneEach(10 * time.Second)
		tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/long") {
				return testnet.Answer(r, 429, http.Header{"Retry-After": {"30"}}, nil), nil
			}
			return serve(r)
		}), c)
		for range 5 {
			for i := range 20 {
				mustGet(t, tr, fmt.Sprintf("http://h/v0/app%d/a", i))
			}
			time.Sleep(10 * time.Second)
		}
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				for j := range 5 {
					mustGet(t, tr, fmt.Sprintf("http://h/v0/app%d/%d/long", i, j))
				}
			})
		}
		time.Sleep(5 * time.Second)
		var got []string
		for _, l := range statsOf(t, tr).Learned {
			got = append(got, l.Why)
			if l.Route != "GET /v0" {
				t.Errorf("%s: Route is %q", l.Why, l.Route)
			}
		}
		wg.Wait()
		want := []string{
			"looks like 1 per 10s, sliding, found by its refusals, for each of 17 objects of GET /v0",
			"looks like 1 per 30s, sliding, found by its refusals, for each of 3 objects of GET /v0", // of which each asks once
			"paused until 00:01:22, said by Retry-After, for the last of 3 objects of GET /v0 that are paused",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
