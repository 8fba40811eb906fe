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

	"github.com/weirhttp/weir/headers"
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
			"looks like 1 per 10s, sliding, found by its refusals, for each of 20 objects of GET /v0", // also of those whose URLs ask for longer
			"paused until 00:01:22, said by Retry-After, for the last of 3 objects of GET /v0 that are paused",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// What was learned is shown field by field.
func TestLearnedLimitsInFields(t *testing.T) {
	show := func(tr *throttle.Transport) (list []throttle.LearnedLimit) {
		for _, l := range statsOf(t, tr).Learned {
			l.Why = ""
			list = append(list, l)
		}
		return list
	}
	want := func(what string, tr *throttle.Transport, want ...throttle.LearnedLimit) {
		t.Helper()
		if got := show(tr); !slices.Equal(got, want) {
			t.Errorf("%s: got  %+v\nwant %+v", what, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		core := left(3, 30*sec)
		core.Name, core.Unit, core.Window = "core", "tokens", known(time.Minute)
		tr := telling(t, throttle.Config{}, speech{}, stating(core), speech{}, stating(core))
		for _, path := range []string{"b", "a", "b"} {
			mustGet(t, tr, "http://a/"+path)
		}
		x := throttle.LearnedLimit{Kind: throttle.LearnedQuota, Name: "core", Unit: "tokens", Route: "GET /a", Source: "said by X-RateLimit-Remaining", Limit: 10, Per: time.Minute, Left: 3, Until: time.Now().Add(30 * sec)}
		want("of one kind", tr, x)
		mustGet(t, tr, "http://a/b")
		x.Route = ""
		want("of two kinds", tr, x)
		time.Sleep(30 * sec)
		x.Source, x.Left, x.Until = "after the reset said by X-RateLimit-Remaining", -1, time.Time{}
		want("after the reset", tr, x)
	})
	synctest.Test(t, func(t *testing.T) {
		named := headers.Limit{Name: "n", Remaining: known(0.), Source: "x"}
		for what, first := range map[string]speech{"of a kind": refusal(30*sec, named), "of the credential": refusal(30*sec, headers.Limit{})} {
			tr := telling(t, throttle.Config{}, first, speech{after: sec})
			mustGet(t, tr, "http://a/a")
			x := throttle.LearnedLimit{Kind: throttle.LearnedPause, Source: "said by Retry-After", Left: -1, Until: time.Now().Add(30 * sec), Wait: 30 * sec}
			if what == "of a kind" {
				x.Route = "GET /a"
			}
			pause := func() (pauses []throttle.LearnedLimit) {
				return slices.DeleteFunc(show(tr), func(l throttle.LearnedLimit) bool { return l.Kind != throttle.LearnedPause })
			}
			if got := pause(); len(got) != 1 || got[0] != x {
				t.Errorf("a pause %s: got  %+v\nwant %+v", what, got, x)
			}
			time.Sleep(30 * sec)
			done := make(chan bool)
			go func() {
				defer close(done)
				mustGet(t, tr, "http://a/a")
			}()
			synctest.Wait()
			x.Until, x.Wait = time.Time{}, 0
			if got := pause(); len(got) != 1 || got[0] != x {
				t.Errorf("when one asks whether a pause %s is over: got  %+v\nwant %+v", what, got, x)
			}
			<-done
		}
	})
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), throttle.Config{Learned: knowing(
			throttle.KnownLimit{Kind: throttle.LearnedRate, Unit: requests, Limit: 10, Per: 9 * sec},
			throttle.KnownLimit{Kind: throttle.LearnedRate, Routes: []string{"GET /a"}, Unit: requests, Limit: 4, Per: sec, Left: 1},
		)})
		mustGet(t, tr, "http://a/a")
		rates := show(tr)
		for i := range rates {
			rates[i].Wait = 0
		}
		x := throttle.LearnedLimit{Kind: throttle.LearnedRate, Unit: requests, Source: "found by its refusals", Left: -1, Limit: 4, Per: sec, Route: "GET /a"}
		y := x
		y.Limit, y.Per, y.Route = 10, 9*sec, ""
		if !slices.Contains(rates, x) || !slices.Contains(rates, y) || len(rates) != 2 {
			t.Errorf("got  %+v\nwant %+v and %+v", rates, x, y)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		later := time.Now().Add(time.Hour)
		known := knowing(
			throttle.KnownLimit{Kind: throttle.LearnedRate, Unit: requests, Limit: 60, Per: time.Minute},
			throttle.KnownLimit{Kind: throttle.LearnedRate, Routes: []string{"GET /a"}, Unit: requests, Limit: 4, Per: sec, Left: 1},
			throttle.KnownLimit{Kind: throttle.LearnedConcurrency, Routes: []string{"GET /b"}, Source: "answers", Limit: 9},
			throttle.KnownLimit{Kind: throttle.LearnedQuota, Routes: []string{"GET /b"}, Name: "core", Unit: requests, Source: "x", Limit: 10, Left: 3, Until: later},
			throttle.KnownLimit{Kind: throttle.LearnedPause, Routes: []string{"GET /c"}, Source: "x", Until: later},
		)
		for pausesOnly, want := range map[bool]int{false: 5, true: 0} {
			tr := newTransport(t, newBase(nil), throttle.Config{Learned: known, DisableLearning: pausesOnly})
			for _, path := range []string{"a", "b", "c"} {
				get(t, police(t), tr, "http://a/"+path)
			}
			if got := show(tr); len(got) != want {
				t.Errorf("with pauses only %t %d are shown, want %d: a quota, two rates, a pause and requests at a time, or none: %+v", pausesOnly, len(got), want, got)
			}
		}
	})
}
