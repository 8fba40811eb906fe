package throttle

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// at0 is an instant of pure tests.
func at0(d time.Duration) time.Time { return time.Time{}.Add(time.Hour + d) }

func retryIn(d time.Duration) hint { return hint{wait: d, known: true, source: "Retry-After"} }

func TestHoldObeysTheHint(t *testing.T) {
	var h hold
	if !h.refuse(at0(0), at0(-time.Second), retryIn(7*time.Second), 0, 5*time.Minute, false, 0.9) {
		t.Fatal("the first refusal is no news")
	}
	if got := h.wait(at0(0)); got != 7*time.Second {
		t.Errorf("wait %v, want the 7s that were said", got)
	}
	if got := h.wait(at0(7 * time.Second)); got != 0 {
		t.Errorf("wait %v at the end, want 0", got)
	}
	if !h.start() || h.wait(at0(7*time.Second)) != forever {
		t.Error("more than one request asks whether the pause is over")
	}
	h.over(true)
	h.good(at0(7 * time.Second))
	if h.asking || h.wait(at0(8*time.Second)) != 0 {
		t.Error("held after a good answer")
	}
}

func TestHoldTakesABurstForOneRefusal(t *testing.T) {
	var h hold
	h.refuse(at0(0), at0(-20*time.Millisecond), hint{}, time.Second, 5*time.Minute, false, 0.5)
	until := h.until
	for i := range 50 {
		if h.refuse(at0(time.Duration(i)*time.Millisecond), at0(-10*time.Millisecond), hint{}, time.Second, 5*time.Minute, false, 0.5) {
			t.Fatal("a refusal of what was sent before the pause is news")
		}
	}
	if h.until != until || h.strikes != 0 {
		t.Errorf("the pause grew to %v with %d strikes", h.until.Sub(until), h.strikes)
	}
	h.refuse(at0(0), at0(-10*time.Millisecond), retryIn(9*time.Second), time.Second, 5*time.Minute, false, 0.5)
	if got := h.wait(at0(0)); got != 9*time.Second {
		t.Errorf("wait %v, want the longest hint of the burst, 9s", got)
	}
}

func TestHoldGrowsWhenAskedInVain(t *testing.T) {
	for name, said := range map[string]hint{"without hints": {}, "hints that are too short": retryIn(time.Second)} {
		t.Run(name, func(t *testing.T) {
			var h hold
			now := at0(0)
			var waits []time.Duration
			for range 60 { // a guess takes a sixth of the time so far at most
				h.refuse(now.Add(time.Millisecond), now, said, guessed(time.Second, 5*time.Minute, h.inVain(now)), 5*time.Minute, false, 0.5)
				waits = append(waits, h.wait(now))
				now = h.until.Add(time.Millisecond)
			}
			if waits[0] > 2*time.Second {
				t.Errorf("the first pause is %v, want about a second", waits[0])
			}
			for i := 1; i < len(waits); i++ {
				if waits[i] < waits[i-1] {
					t.Errorf("pause %d is %v after %v, want them to grow", i, waits[i], waits[i-1])
				}
			}
			if last := waits[len(waits)-1]; last < 20*time.Second || last > mostGuess+time.Second {
				t.Errorf("the last pause is %v, want it long, and bounded by %v", last, mostGuess)
			}
		})
	}
}

func TestHoldLearnsHowMuchTooShortHintsAre(t *testing.T) {
	var h hold
	now := at0(0)
	h.refuse(now, now, retryIn(2*time.Second), 0, 5*time.Minute, false, 0)
	now = h.until.Add(time.Millisecond)
	h.refuse(now.Add(time.Millisecond), now, retryIn(0), 0, 5*time.Minute, false, 0)
	now = h.until.Add(time.Millisecond)
	h.good(now)
	if h.slack < 100*time.Millisecond || h.slack > mostSlack {
		t.Fatalf("slack %v after a hint that was too short", h.slack)
	}
	h.refuse(now.Add(time.Second), now.Add(time.Second), retryIn(2*time.Second), 0, 5*time.Minute, false, 0)
	if got := h.wait(now.Add(time.Second)); got <= 2*time.Second {
		t.Errorf("wait %v, want the 2s and the slack", got)
	}
	before := h.slack
	h.good(h.until.Add(time.Millisecond))
	if h.slack >= before {
		t.Error("slack does not decay when it was not needed")
	}
}

func TestHoldCapsWhatNothingSupports(t *testing.T) {
	for _, c := range []struct {
		name string
		said hint
		want time.Duration
	}{
		{"a year", retryIn(365 * 24 * time.Hour), 5 * time.Minute},
		{"the largest duration", retryIn(math.MaxInt64), 5 * time.Minute},
		{"an hour", retryIn(time.Hour), 5 * time.Minute},
		{"an hour that a reset supports", hint{wait: time.Hour, known: true, supported: true}, time.Hour},
		{"a supported year", hint{wait: 365 * 24 * time.Hour, known: true, supported: true}, mostBelieved},
		{"a negative wait", retryIn(-time.Hour), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h hold
			h.refuse(at0(0), at0(-1), c.said, 0, 5*time.Minute, false, 0.99)
			if got := h.wait(at0(0)); got != c.want {
				t.Errorf("wait %v, want %v", got, c.want)
			}
		})
	}
}

func TestHoldSpreadsNewcomers(t *testing.T) {
	for _, spread := range []float64{0, 0.5, 0.999} {
		var h hold
		h.refuse(at0(0), at0(-1), retryIn(5*time.Second), 0, 5*time.Minute, true, spread)
		if got, want := h.wait(at0(0)), 5*time.Second+time.Duration(spread*float64(firstSpread)); got != want {
			t.Errorf("wait %v, want %v", got, want)
		}
	}
}

func stating(left, size float64, reset time.Duration, m headers.ResetMeans) headers.Limit {
	return headers.Limit{Quota: known(size), Remaining: known(left), Reset: known(reset), ResetMeans: m, Source: "x"}
}

func newQuota() *quota {
	return &quota{terms: &learnTerms{maxPause: 5 * time.Minute}, counted: true}
}

// Whatever the order in which answers come, no more is let through in a window
// than the server has.
func TestLateAnswersCannotRaiseAQuota(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		q := newQuota()
		now, left, refused := instant(1), 20.0, 0
		type flying struct {
			sent, arrives, answered instant
			says                    float64
			seen                    bool
			m                       meter.Token
		}
		var all []*flying
		for step := range 4000 {
			now = now.Add(time.Millisecond)
			if q.heard == 0 && step > 0 || len(all) < 40 && q.At(now, 1) <= now {
				if q.heard != 0 || len(all) < 2 {
					f := &flying{sent: now, arrives: now.Add(time.Duration(1+r.IntN(30)) * time.Millisecond), m: q.Take(now, 1, true)}
					f.answered = f.arrives.Add(time.Duration(1+r.IntN(60)) * time.Millisecond)
					all = append(all, f)
				}
			}
			for _, f := range all {
				if f.arrives == now {
					if left >= 1 {
						left--
					} else {
						refused++
					}
					f.says = left
				}
			}
			for _, f := range all {
				if f.answered <= now && !f.seen {
					f.seen = true
					q.hear(now, f.sent, ref(stating(f.says, 20, time.Hour, headers.Boundary)), 1, false, f.m != 0)
					q.Answered(now, 1, f.m, now)
				}
			}
		}
		if refused > 0 {
			t.Fatalf("seed %d: %d requests beyond the quota", seed, refused)
		}
		if left > 0 {
			t.Fatalf("seed %d: %v units were never used", seed, left)
		}
	}
}

func TestQuotaWithoutResetGoesStale(t *testing.T) {
	q := newQuota()
	q.hear(hourIn, hourIn.Add(-time.Second), &headers.Limit{Remaining: known(0.0), Source: "x"}, 1, false, false)
	if d := q.wait(hourIn, 1); d <= 0 {
		t.Error("a spent quota lets one through at once")
	}
	if d := q.wait(hourIn.Add(attribution.StaleAfter+time.Second), 1); d != 0 {
		t.Errorf("wait %v for what was said a minute ago, want 0", d)
	}
}

func TestQuotaAsksAfterItsReset(t *testing.T) {
	q := newQuota()
	q.hear(hourIn, hourIn.Add(-time.Second), ref(stating(0, 100, 30*time.Second, headers.Boundary)), 1, false, false)
	if d := q.wait(hourIn, 1); d != 30*time.Second {
		t.Errorf("wait %v, want 30s", d)
	}
	now := instant(0).Add(time.Hour + 30*time.Second)
	if at := q.At(now, 1); at != now {
		t.Fatalf("not let through at the reset but %v later", at.Until(now))
	}
	m := q.Take(now, 1, true)
	if m&markAsks == 0 || q.At(now, 1) != never {
		t.Error("more than one request asks what there is")
	}
	q.hear(now.Add(time.Second), now, ref(stating(99, 100, 30*time.Second, headers.Boundary)), 1, false, true)
	q.Answered(now, 1, m, now)
	if got := q.level(now); got != 99 {
		t.Errorf("%v left, want 99", got)
	}
}

func TestQuotaFollowsAServerThatChangesIt(t *testing.T) {
	q := newQuota()
	q.hear(hourIn, hourIn.Add(-1), ref(stating(50, 100, time.Minute, headers.Boundary)), 1, false, false)
	q.hear(hourIn.Add(time.Second), hourIn.Add(500*time.Millisecond), ref(stating(3, 10, 59*time.Second, headers.Boundary)), 1, false, false)
	if got := q.level(hourIn.Add(time.Second)); got != 3 || q.size.Value != 10 {
		t.Errorf("%v of %v left, want 3 of 10", got, q.size.Value)
	}
	q.hear(hourIn.Add(2*time.Second), hourIn.Add(1500*time.Millisecond), ref(stating(900, 1000, 58*time.Second, headers.Boundary)), 1, false, false)
	if got := q.level(hourIn.Add(2 * time.Second)); got != 900 {
		t.Errorf("%v left, want the 900 that a later answer states", got)
	}
}

func ref[T any](v T) *T { return &v }
