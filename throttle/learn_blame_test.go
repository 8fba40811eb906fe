package throttle_test

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// Refusals of one kind of request, while others are served, are those of a limit of its
// own: that kind alone is paused, and the rate that was found is its own. If no other kind
// is served, or another is refused within a minute of the first of them, there is one limit for all.
func TestRefusalsOfOneKindAlone(t *testing.T) {
	for _, test := range []struct {
		name   string
		serves string        // between two refusals of /a
		other  bool          // kind is refused after that
		later  time.Duration // than the first refusal of /a
		route  string        // that is paused, by the last refusal of /a
	}{
		{"another is served", "/b", false, 10 * sec, "GET /a"},
		{"itself is served", "/a", false, 10 * sec, ""},
		{"another is refused soon after", "/b", true, 59 * sec, ""},
		{"another is refused after a minute", "/b", true, 61 * sec, "GET /a"},
	} {
		synctest.Test(t, func(t *testing.T) {
			refuse := false
			tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
				if refuse {
					return testnet.Answer(r, 429, http.Header{"Retry-After": {"2"}}, nil), nil
				}
				return testnet.Answer(r, 200, nil, nil), nil
			}), throttle.Config{})
			throttle.Jitter(tr, func() float64 { return 0 })
			refused := func(path string) {
				refuse = true
				mustGet(t, tr, "http://h"+path)
				refuse = false
			}
			for range 300 { // so that no rate that is found holds anybody up for long
				mustGet(t, tr, "http://h/b")
				time.Sleep(sec / 20)
			}
			first := time.Now()
			for range 3 {
				refused("/a")
				time.Sleep(6 * sec)
				for range 8 {
					mustGet(t, tr, "http://h"+test.serves)
				}
			}
			if test.other {
				time.Sleep(test.later - time.Since(first))
				refused("/b")
			}
			time.Sleep(10 * sec)
			refused("/a")
			p := pauseOf(t, tr)
			if p.Wait < 2*sec || p.Wait > 3*sec || p.Route != test.route {
				t.Errorf("%s: %q is paused for %v, want %q for 2 to 3s", test.name, p.Route, p.Wait, test.route)
			}
			start := time.Now()
			mustGet(t, tr, "http://h/b")
			if free := time.Since(start) == 0; free != (test.route != "") {
				t.Errorf("%s: the other kind waited for %v", test.name, time.Since(start))
			}
			rate := slices.IndexFunc(statsOf(t, tr).Learned, func(l throttle.LearnedLimit) bool { return l.Source == "found by its refusals" })
			if rate < 0 || statsOf(t, tr).Learned[rate].Route != test.route {
				t.Errorf("%s: found %+v", test.name, statsOf(t, tr).Learned)
			}
		})
	}
}

// What one kind of request alone is told holds up no other kind: neither the rest of a wait
// that was too short, nor a long wait after refusals that all had to heed.
func TestWaitsOfOneKindHoldUpNoOther(t *testing.T) {
	for _, test := range []struct {
		name string
		says []string      // Retry-After of answers to /a, one after another; "": it is served
		most time.Duration // that another kind waits: for a limit of all that would explain the refusals
	}{
		{"a wait that was too short", []string{"", "30", "2"}, 0},
		{"one that was far too short", []string{"", "30", "2", "1", "0"}, 0},
		{"a long wait after a short one", []string{"", "30", "", "1", "", "60"}, 5 * sec},
	} {
		synctest.Test(t, func(t *testing.T) {
			says := ""
			tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/a" && says != "" {
					return testnet.Answer(r, 429, http.Header{"Retry-After": {says}}, nil), nil
				}
				return testnet.Answer(r, 200, nil, nil), nil
			}), throttle.Config{})
			throttle.Jitter(tr, func() float64 { return 0 })
			for range 10 {
				mustGet(t, tr, "http://h/b")
				time.Sleep(sec)
			}
			for _, says = range test.says {
				mustGet(t, tr, "http://h/a")
				if says == "1" { // which is for all
					time.Sleep(2 * sec)
				}
				start := time.Now()
				mustGet(t, tr, "http://h/b")
				if waited := time.Since(start); waited > test.most {
					t.Errorf("%s: after %q, another kind waited for %v", test.name, says, waited)
				}
				time.Sleep(sec)
			}
		})
	}
}
