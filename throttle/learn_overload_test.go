package throttle_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle"
)

// overloaded is a 503 that says no more.
func overloaded(after time.Duration) speech { return speech{status: 503, after: after} }

// kindsOf is which kinds of limit are learned of the only host.
func kindsOf(t *testing.T, tr *throttle.Transport) map[throttle.LearnedKind]bool {
	t.Helper()
	kinds := make(map[throttle.LearnedKind]bool)
	for _, l := range statsOf(t, tr).Learned {
		if l.Kind != throttle.LearnedPause || l.Wait > 0 {
			kinds[l.Kind] = true
		}
	}
	return kinds
}

// mostlyBusy is a host that serves every sixth request, after twenty that it served, and
// then what is given.
func mostlyBusy(n int, then ...speech) []speech {
	answers := make([]speech, 20, 20+n+len(then))
	for i := range n {
		if i%6 == 5 {
			answers = append(answers, speech{})
		} else {
			answers = append(answers, overloaded(20*time.Millisecond))
		}
	}
	return append(answers, then...)
}

// An answer that says that the host is overloaded lets fewer go at a time. The host is
// taken for a limiter, which has a rate and makes requests pause, if it refuses most
// however few are under way, and serves some.
func TestOverloadedOrLimited(t *testing.T) {
	plenty := left(9, time.Hour)
	plenty.Quota, plenty.Remaining = known(1e6), known(1e6)
	good := func(n int, s speech) (list []speech) {
		for range n {
			list = append(list, s)
		}
		return list
	}
	type kinds = map[throttle.LearnedKind]bool
	const fewer, rate, pause, quota = throttle.LearnedConcurrency, throttle.LearnedRate, throttle.LearnedPause, throttle.LearnedQuota
	for _, test := range []struct {
		name   string
		c      throttle.Config
		before []speech // one after the other
		gap    time.Duration
		idle   time.Duration
		busy   int // then, at once
		wait   time.Duration
		want   kinds
	}{
		{"many at a time", throttle.Config{}, good(60, speech{}), sec, 0, 16, 0, kinds{fewer: true}},
		{"many, of a host that states what is left", throttle.Config{}, good(60, stating(plenty)), sec, 0, 16, 0, kinds{fewer: true, quota: true}},
		{"many, with a wait", throttle.Config{}, good(60, speech{}), sec, 0, 16, sec, kinds{fewer: true, pause: true}},
		{"few", throttle.Config{}, mostlyBusy(60), 0, 0, 0, 0, kinds{rate: true}},
		{"few, and only pauses are learned", throttle.Config{DisableLearning: true}, mostlyBusy(60), 0, 0, 0, 0, kinds{}},
		{"many, but it is suspected", throttle.Config{}, append(mostlyBusy(60), good(30, speech{})...), 0, 0, 1, 0, kinds{rate: true, pause: true}},
		{"suspected, and serves nobody", throttle.Config{}, mostlyBusy(60), 0, 10 * sec, 1, 0, kinds{rate: true}},
		{"suspected, and serves nobody, with a wait", throttle.Config{}, mostlyBusy(60), 0, 10 * sec, 1, sec, kinds{rate: true, pause: true}},
	} {
		synctest.Test(t, func(t *testing.T) {
			last := overloaded(20 * time.Millisecond)
			if test.wait > 0 {
				last.RetryAfter = known(test.wait)
			}
			tr := telling(t, test.c, append(test.before, last)...)
			call := func(n int) {
				var all sync.WaitGroup
				for range n {
					all.Go(func() { mustGet(t, tr, "http://a/x") })
				}
				all.Wait()
			}
			for range test.before {
				call(1)
				time.Sleep(test.gap)
			}
			time.Sleep(test.idle)
			call(test.busy)
			got := kindsOf(t, tr)
			if test.busy <= 1 {
				delete(got, fewer) // where one goes at a time, nobody notices
			}
			if len(got) != len(test.want) {
				t.Errorf("%s: %v, want %v", test.name, got, test.want)
			}
			for k := range test.want {
				if !got[k] {
					t.Errorf("%s: %v, want %v", test.name, got, test.want)
				}
			}
		})
	}
}

// Proof that a host is no limiter ends the pauses that were guessed, and what was found. It ends
// none that the host asked for.
func TestWhoIsNoLimiterPausesNobody(t *testing.T) {
	for seed := range uint64(8) {
		dice := rand.New(rand.NewPCG(seed, 2))
		chance := make([]speech, 300) // after which it fails at random
		for i := range chance {
			if chance[i].after = time.Duration(dice.IntN(20)) * time.Millisecond; dice.IntN(2) == 0 {
				chance[i].status = 503
			}
		}
		answers, c := mostlyBusy(60, chance...), throttle.Config{MaxWait: time.Hour}
		proof := 0 // the answer that is the proof
		synctest.Test(t, func(t *testing.T) {
			tr := telling(t, c, answers...)
			suspected := false
			for i, s := range answers {
				mustGet(t, tr, "http://a/x")
				got := kindsOf(t, tr)
				suspected = suspected || got[throttle.LearnedRate]
				if suspected && s.status == 503 && !got[throttle.LearnedRate] && !got[throttle.LearnedPause] {
					proof = i
					return
				}
			}
			t.Fatalf("suspected: %t, and no proof", suspected)
		})
		for i := proof - 4; i < proof; i++ { // an answer that comes late is the proof for most of these
			synctest.Test(t, func(t *testing.T) {
				tr := telling(t, c, append(slices.Clone(answers[:i]), overloaded(2*sec), refusal(time.Minute, headers.Limit{}), speech{})...)
				for range i {
					mustGet(t, tr, "http://a/x")
				}
				go get(t, t.Context(), tr, "http://a/x")
				time.Sleep(sec)
				mustGet(t, tr, "http://a/x")
				start := time.Now()
				time.Sleep(2 * sec)
				mustGet(t, tr, "http://a/x")
				if took := time.Since(start); took < time.Minute {
					t.Errorf("seed %d: after %d answers, the last of which asked for a minute, the next request took %v", seed, i+2, took)
				}
			})
		}
	}
}

// A refusal for requests at a time answers whoever asks whether a pause is over: those who
// wait for a place do not have to ask again, one after another.
func TestARefusalOfOneTooManyEndsAPause(t *testing.T) {
	for _, kind := range []headers.Kind{headers.Concurrency, headers.Quota} {
		for _, own := range []bool{false, true} { // if its kind of request has a limit of its own, it alone is paused
			synctest.Test(t, func(t *testing.T) {
				const long, pause = 5, 10 * sec
				answers := make([]speech, settledIn)
				for range long {
					answers = append(answers, speech{after: 5 * time.Minute})
				}
				answers = append(answers, refusal(pause, headers.Limit{}), speech{status: 429, Signal: headers.Signal{Throttled: true, Kind: kind, RetryAfter: known(sec)}, after: sec}, speech{after: sec})
				c := throttle.Config{MaxWait: 10 * time.Minute}
				if own {
					c.Learned = knowing(fast("GET /x"))
				}
				tr := telling(t, c, answers...)
				for range settledIn {
					mustGet(t, tr, "http://a/x")
				}
				for range long {
					go get(t, t.Context(), tr, "http://a/x")
				}
				synctest.Wait()
				mustGet(t, tr, "http://a/x")
				mustGet(t, tr, "http://a/x") // it asks when the pause is over
				if paused := pauseOf(t, tr).Kind != ""; paused != (kind == headers.Quota) {
					t.Errorf("%v, its own limit %t: paused: %t", kind, own, paused)
				}
				start := time.Now()
				var took [2]time.Duration
				var done sync.WaitGroup
				for i := range took {
					done.Go(func() {
						get(t, t.Context(), tr, "http://a/x")
						took[i] = time.Since(start)
					})
				}
				done.Wait()
				if kind == headers.Concurrency && (took[0] != took[1] || took[0] == 0) {
					t.Errorf("its own limit %t: those who wait for a place are answered after %v, want it at once", own, took)
				}
			})
		}
	}
}
