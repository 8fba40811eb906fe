package throttle_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// pauseOf is the pause that Stats shows of the only host; of a kind of request alone it
// has a Route.
func pauseOf(t *testing.T, tr *throttle.Transport) throttle.LearnedLimit {
	t.Helper()
	for _, l := range statsOf(t, tr).Learned {
		if l.Kind == throttle.LearnedPause {
			return l
		}
	}
	return throttle.LearnedLimit{}
}

// Kinds beyond the bound share one, until one makes room that was quiet for a minute:
// neither those that have requests under way nor those that are paused do.
func TestEndpointsAreBounded(t *testing.T) {
	const held = 10 // kinds with a request under way
	for quiet, want := range map[time.Duration]string{time.Minute: "other requests", time.Minute + 1: "GET /new"} {
		synctest.Test(t, func(t *testing.T) {
			tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
				switch path := r.URL.Path; {
				case strings.HasPrefix(path, "/held"):
					<-r.Context().Done()
					return nil, r.Context().Err()
				case strings.HasPrefix(path, "/new"), strings.HasPrefix(path, "/paused"):
					h := http.Header{"Ratelimit": {`"a";r=0;t=600`}, "Ratelimit-Policy": {`"a";q=9;w=600`}}
					return testnet.Answer(r, 429, h, nil), nil
				}
				return testnet.Answer(r, 200, nil, nil), nil
			}), throttle.Config{MaxPause: time.Hour})
			for i := range throttle.MostKinds - held - 1 {
				mustGet(t, tr, fmt.Sprintf("http://h/%d", i))
			}
			mustGet(t, tr, "http://h/paused")
			ctx, cancel := context.WithCancel(t.Context())
			for i := range held {
				go get(t, ctx, tr, fmt.Sprintf("http://h/held%d", i))
			}
			synctest.Wait()
			time.Sleep(quiet)
			routes := func() (all []string) {
				for _, l := range statsOf(t, tr).Learned {
					if l.Kind == throttle.LearnedPause {
						all = append(all, l.Route)
					}
				}
				return all
			}
			mustGet(t, tr, "http://h/new")
			if got := routes(); !slices.Contains(got, want) || !slices.Contains(got, "GET /paused") {
				t.Errorf("after %v: %q are paused, want %q among them", quiet, got, want)
			}
			if quiet > time.Minute { // the others make room, too, but no more than these
				for i := range throttle.MostKinds - held - 2 {
					if mustGet(t, tr, fmt.Sprintf("http://h/also%d", i)); slices.Contains(routes(), "other requests") {
						t.Fatalf("%d kinds of %d that were quiet made room", i, throttle.MostKinds-held-1)
					}
				}
				mustGet(t, tr, "http://h/new2")
				if got := routes(); !slices.Contains(got, "other requests") || !slices.Contains(got, "GET /paused") {
					t.Errorf("%q are paused, want other requests among them", got)
				}
			}
			if _, _, kinds := throttle.LearnedKept(tr, "h"); kinds != throttle.MostKinds {
				t.Errorf("%d kinds", kinds)
			}
			cancel()
		})
	}
}

// What a refusal says about when to come back: for how long, who says so, whether for its
// own kind of request alone, and whether a limit that is stated explains it, so that no
// other has to be found.
func TestHints(t *testing.T) {
	limit := func(name string, n float64, reset time.Duration) headers.Limit {
		l := left(n, reset)
		l.Name, l.Source, l.Quota = name, "x-ratelimit", headers.Opt[float64]{}
		return l
	}
	after := func(d time.Duration, limits ...headers.Limit) headers.Signal {
		return headers.Signal{RetryAfter: known(d), Limits: limits}
	}
	const ratelimit = "said by X-RateLimit"
	for _, test := range []struct {
		name             string
		s                headers.Signal
		wait             time.Duration // zero: a guess
		source           string
		named, explained bool
	}{
		{"nothing", headers.Signal{}, 0, "", false, false},
		{"Retry-After", after(5 * sec), 5 * sec, "said by Retry-After", false, false},
		{"a year", after(9999 * 24 * time.Hour), 5 * time.Minute, "said by Retry-After", false, false},
		{"some left", headers.Signal{Limits: []headers.Limit{limit("a", 1, sec)}}, 0, "", false, false},
		{"spent", headers.Signal{Limits: []headers.Limit{limit("", 0, 30*sec)}}, 30 * sec, ratelimit, false, true},
		{"spent, named", headers.Signal{Limits: []headers.Limit{limit("a", 0, 30*sec)}}, 30 * sec, ratelimit, true, true},
		{"spent, nobody knows until when", headers.Signal{Limits: []headers.Limit{limit("a", 0, 0)}}, 0, "", true, false},
		{"two spent", headers.Signal{Limits: []headers.Limit{limit("", 0, 30*sec), limit("", 0, 40*sec), limit("", 0, 20*sec)}}, 40 * sec, ratelimit, false, true},
		{"both say the same", after(30*sec, limit("", 0, 30*sec)), 30 * sec, "said by Retry-After", false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			other := limit("other", 99, time.Hour) // the server states limits with good answers, too
			answers := slices.Repeat([]speech{{Signal: headers.Signal{Limits: []headers.Limit{other}}}}, settledIn)
			test.s.Throttled, test.s.Kind = true, headers.Quota
			tr := telling(t, throttle.Config{}, append(answers, speech{status: 429, Signal: test.s})...)
			for range settledIn + 1 {
				mustGet(t, tr, "http://h/x")
			}
			p, found := pauseOf(t, tr), slices.ContainsFunc(statsOf(t, tr).Learned, func(l throttle.LearnedLimit) bool { return l.Kind == throttle.LearnedRate })
			mayBeOnes := test.wait > 2*sec && len(test.s.Limits) == 0 // nobody has asked yet whether others are to wait
			if p.Wait != test.wait && (test.wait > 0 || p.Wait <= 0 || p.Wait > 2*sec) || !strings.Contains(p.Source, test.source) || (p.Route != "") != test.named || found == (test.explained || mayBeOnes) {
				t.Errorf("%s: a rate is found: %t; paused %+v", test.name, found, p)
			}
		})
	}
}

// Where only refusals state a limit, it is waited for until its reset, but not counted: a
// rate is found beside it. Once good answers state limits, one that is spent explains refusals.
func TestOnlyRefusalsStateLimits(t *testing.T) {
	spent := speech{status: 429, Signal: headers.Signal{Throttled: true, Kind: headers.Quota, Limits: []headers.Limit{left(0, 30*sec)}}}
	states := speech{Signal: headers.Signal{Limits: []headers.Limit{left(9, 30*sec)}}}
	for _, test := range []struct {
		name  string
		good  []speech
		found bool
	}{
		{"none did", make([]speech, settledIn), true},
		{"the only one did not", make([]speech, 1), true},
		{"one did", append(make([]speech, settledIn-1), states), false},
		{"there was none", nil, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := telling(t, throttle.Config{}, append(test.good, spent)...)
			for range len(test.good) + 1 {
				mustGet(t, tr, "http://h/x")
			}
			found := slices.ContainsFunc(statsOf(t, tr).Learned, func(l throttle.LearnedLimit) bool { return l.Kind == throttle.LearnedRate })
			if p := pauseOf(t, tr); p.Wait != 30*sec || found != test.found {
				t.Errorf("%s: a rate is found: %t; paused %+v", test.name, found, p)
			}
		})
	}
}

// A wait beyond MaxPause is believed if answers before the refusal agreed on a reset that
// is about then: two of them, and by 2 s and a twentieth.
func TestHintsThatResetsSupport(t *testing.T) {
	const most = 10 * sec
	for agree, supports := range map[int]bool{1: false, 2: true} {
		for wait, near := range map[time.Duration]bool{0: true, 30 * sec: true, 26600 * time.Millisecond: false, 26700 * time.Millisecond: true, 33500 * time.Millisecond: true, 33700 * time.Millisecond: false} {
			synctest.Test(t, func(t *testing.T) {
				var answers []speech
				for i := range agree {
					answers = append(answers, stating(left(float64(9-i), time.Duration(30+agree-i)*sec)))
				}
				spent := left(0, 30*sec)
				spent.Quota = headers.Opt[float64]{} // it is the same limit all the same
				tr := telling(t, throttle.Config{MaxPause: most}, append(answers, refusal(wait, spent))...)
				for range agree {
					mustGet(t, tr, "http://h/another-kind")
					time.Sleep(sec)
				}
				mustGet(t, tr, "http://h/x")
				want := most
				if supports && near {
					want = cmp.Or(wait, 30*sec)
				}
				if got := pauseOf(t, tr).Wait; got != want {
					t.Errorf("a reset that was said %d times before, a wait of %v: paused for %v, want %v", agree, wait, got, want)
				}
			})
		}
	}
}

// When a refusal is one for requests at a time, and not for those per time.
func TestConcurrencyOrRate(t *testing.T) {
	for _, test := range []struct {
		name   string
		beside bool          // another is under way when it starts
		apart  time.Duration // since when
		trip   time.Duration // that an answer took before; zero: there was none
		s      headers.Signal
		stated bool // a limit, before
		want   bool
	}{
		{"the server says so", true, 0, 0, headers.Signal{Kind: headers.Concurrency}, false, true},
		{"it says so to the only one", false, 0, 0, headers.Signal{Kind: headers.Concurrency}, false, false},
		{"one that started alone beside another", true, sec, 0, headers.Signal{}, false, true},
		{"a round trip after the other", true, 50 * time.Millisecond, 0, headers.Signal{}, false, true},
		{"just below", true, 50*time.Millisecond - 1, 0, headers.Signal{}, false, false},
		{"a longer round trip after it", true, sec, sec, headers.Signal{}, false, true},
		{"just below that", true, sec - 1, sec, headers.Signal{}, false, false},
		{"one of a burst", true, 0, 0, headers.Signal{}, false, false},
		{"alone", false, sec, 0, headers.Signal{}, false, false},
		{"with a wait", true, sec, 0, headers.Signal{RetryAfter: known(sec)}, false, false},
		{"with limits", true, sec, 0, headers.Signal{Limits: []headers.Limit{left(0, 0)}}, false, false},
		{"of a kind with limits", true, sec, 0, headers.Signal{}, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var answers []speech
			if test.stated {
				answers = append(answers, stating(left(9, time.Hour)))
			}
			if test.trip > 0 {
				answers = append(answers, speech{after: test.trip})
			}
			if test.beside {
				answers = append(answers, speech{after: time.Minute})
			}
			test.s.Throttled = true
			tr := telling(t, throttle.Config{}, append(answers, speech{status: 429, Signal: test.s})...)
			if test.stated || test.trip > 0 {
				mustGet(t, tr, "http://h/x")
			}
			if test.beside {
				go get(t, t.Context(), tr, "http://h/x")
				synctest.Wait()
			}
			time.Sleep(test.apart)
			mustGet(t, tr, "http://h/x")
			fewer := slices.ContainsFunc(statsOf(t, tr).Learned, func(l throttle.LearnedLimit) bool {
				return l.Kind == throttle.LearnedConcurrency && l.Route != ""
			})
			if paused := pauseOf(t, tr).Wait > 0; fewer != test.want || paused == test.want {
				t.Errorf("%s: fewer at a time: %t, paused: %t", test.name, fewer, paused)
			}
			time.Sleep(time.Minute)
		})
	}
}

// The first of two is not refused because of the second.
func TestTheFirstOfTwoIsNotOneTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := speech{status: 429, Signal: headers.Signal{Throttled: true}, after: sec}
		tr := telling(t, throttle.Config{}, speech{}, refused, speech{after: time.Minute})
		mustGet(t, tr, "http://h/x")
		time.Sleep(sec)
		go get(t, t.Context(), tr, "http://h/x")
		time.Sleep(sec / 2)
		go get(t, t.Context(), tr, "http://h/x")
		time.Sleep(sec / 2)
		synctest.Wait()
		if pauseOf(t, tr).Wait <= 0 {
			t.Errorf("no pause is learned: %+v", statsOf(t, tr).Learned)
		}
		time.Sleep(time.Minute)
	})
}

// Those that are answered while a request is under way are not why it is refused, though
// they were under way when it started: it started because the first of them was answered.
func TestOthersOnTheirWayBackAreNotOneTooMany(t *testing.T) {
	for _, answered := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			before := speech{after: time.Minute}
			if answered {
				before.after = sec + time.Millisecond
			}
			refused := speech{status: 429, Signal: headers.Signal{Throttled: true}, after: sec / 2}
			tr := telling(t, throttle.Config{}, speech{after: sec}, before, refused, speech{after: time.Minute})
			mustGet(t, tr, "http://h/x")
			for _, pause := range []time.Duration{sec, sec / 10, sec * 2 / 5} { // the second starts alone beside the first
				go get(t, t.Context(), tr, "http://h/x")
				time.Sleep(pause)
			}
			synctest.Wait()
			if paused := pauseOf(t, tr).Wait > 0; paused != answered {
				t.Errorf("the one beside it was answered: %t; paused: %t, %+v", answered, paused, statsOf(t, tr).Learned)
			}
			time.Sleep(2 * time.Minute)
		})
	}
}

// A host is idle, and makes room for another, when forgetting it would lose nothing of
// what was learned that still binds.
func TestIdleLearners(t *testing.T) {
	for name, test := range map[string]struct {
		answer speech
		later  time.Duration
		idle   bool
	}{
		"nothing":             {speech{}, 0, true},
		"fewer at a time":     {speech{err: errors.New("broken")}, 59 * sec, false},
		"a minute ago":        {speech{err: errors.New("broken")}, time.Minute, true},
		"a quota in use":      {stating(left(3, 30*sec)), 0, false},
		"a full one":          {stating(left(10, 30*sec)), 0, true},
		"one without a reset": {stating(left(3, 0)), 0, true},
		"one that is over":    {stating(left(3, sec)), sec, true},
		"a pause":             {refusal(2*sec, headers.Limit{}), sec, false},
		"one of the kind":     {refusal(2*sec, headers.Limit{Name: "a", Remaining: known(0.), Source: "x"}), sec, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := telling(t, throttle.Config{MaxKeys: 1}, test.answer, speech{})
			get(t, t.Context(), tr, "http://a/x")
			time.Sleep(test.later)
			mustGet(t, tr, "http://b/x")
			kept := slices.ContainsFunc(tr.Stats().Hosts, func(h throttle.HostStats) bool { return h.Host == "a" })
			if kept == test.idle {
				t.Errorf("%s: kept %t", name, kept)
			}
		})
	}
}

// A limit is shown for a kind of request if it binds that alone, also once another that it
// bound has made room for a new kind.
func TestAKindThatIsForgottenIsBoundNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := telling(t, throttle.Config{}, stating(left(9, time.Hour)), stating(left(8, time.Hour)), speech{})
		route := func() string { return statsOf(t, tr).Learned[0].Route }
		mustGet(t, tr, "http://h/a")
		mustGet(t, tr, "http://h/b")
		if got := route(); got != "" {
			t.Errorf("it binds two kinds, but is shown for %s", got)
		}
		time.Sleep(30 * sec)
		for i := range throttle.MostKinds - 2 {
			mustGet(t, tr, fmt.Sprintf("http://h/%d", i))
		}
		mustGet(t, tr, "http://h/b")
		time.Sleep(31 * sec) // so that only the first kind was quiet for a minute
		mustGet(t, tr, "http://h/new")
		if got := route(); got != "GET /b" {
			t.Errorf("the other kind is forgotten, and it is shown for %q", got)
		}
	})
}
