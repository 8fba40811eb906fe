package stated

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	sec    = time.Second
	hourIn = meter.Instant(time.Hour)
)

func known[T any](v T) headers.Opt[T] { return headers.Opt[T]{Value: v, Known: true} }

func ref[T any](v T) *T { return &v }

func stating(left, size float64, reset time.Duration, m headers.ResetMeans) headers.Limit {
	return headers.Limit{Quota: known(size), Remaining: known(left), Reset: known(reset), ResetMeans: m, Source: "x"}
}

func newQuota() *Limit {
	q := New(Key{}, "x", &Terms{MaxPause: 5 * time.Minute})
	q.Count(true, false, nil)
	return &q
}

// Whatever the order in which answers come, no more is let through in a window
// than the server has.
func TestLateAnswersCannotRaiseAQuota(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		q := newQuota()
		now, left, refused := meter.Instant(1), 20.0, 0
		type flying struct {
			sent, arrives, answered meter.Instant
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
			t.Fatalf("seed %d: %v units were meter.Never used", seed, left)
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
	now := meter.Instant(0).Add(time.Hour + 30*time.Second)
	if at := q.At(now, 1); at != now {
		t.Fatalf("not let through at the reset but %v later", at.Until(now))
	}
	m := q.Take(now, 1, true)
	if m&Asks == 0 || q.At(now, 1) != now.Add(30*time.Second/askedPart) {
		t.Error("more than one request asks what there is")
	}
	q.hear(now.Add(time.Second), now, ref(stating(99, 100, 30*time.Second, headers.Boundary)), 1, false, true)
	q.Answered(now, 1, m, now)
	if got := q.level(now); got != 99 {
		t.Errorf("%v left, want 99", got)
	}
}

// While one request asks what a new window holds, others go as far as there was something
// left: that much there is, whether the window has ended or not.
func TestQuotaSpendsWhatWasLeftWhileOneAsks(t *testing.T) {
	end := hourIn.Add(30 * sec)
	for _, test := range []struct {
		name  string
		left  float64
		terms Terms
		out   int64 // under way at the reset
		want  int   // that go beside the one that asks
	}{
		{"nothing was left", 0, Terms{MaxPause: time.Minute}, 0, 0},
		{"one, for which the one that asks may have gone", 1, Terms{MaxPause: time.Minute}, 0, 0},
		{"five", 5, Terms{MaxPause: time.Minute}, 0, 4},
		{"five, two of them for requests under way", 5, Terms{MaxPause: time.Minute}, 2, 2},
		{"what is left is spread evenly", 5, Terms{MaxPause: time.Minute, Pace: true}, 0, 0},
	} {
		q := heardQuota(test.left, 100, 30*sec, 0, func(q *Limit) { q.terms = &test.terms })
		if test.out > 0 {
			q.Take(hourIn, test.out, true)
		}
		if q.Take(end, 1, true)&Asks == 0 {
			t.Fatalf("%s: nobody asks", test.name)
		}
		went := 0
		for ; went < 100 && q.At(end, 1) == end; went++ {
			if m := q.Take(end, 1, true); m != 0 {
				t.Errorf("%s: another one asks", test.name)
			}
		}
		if went != test.want {
			t.Errorf("%s: %d go beside the one that asks, want %d", test.name, went, test.want)
		}
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
