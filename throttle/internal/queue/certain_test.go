package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// guess is a meter that lets nobody go, but not for certain.
type guess struct{ meter.Open }

func (guess) At(now meter.Instant, _ int64) meter.Instant { return now.Add(time.Hour) }

func (guess) ETA(now meter.Instant, _, _ int64) meter.Instant { return now.Add(time.Hour) }

// What is not certain refuses nobody before its time is over: MaxWait, the deadline,
// or when no answer can come before the deadline.
func TestWaitsThatAreGuessedEndWhenTheyAreOver(t *testing.T) {
	for _, test := range []struct {
		name           string
		deadline, trip time.Duration
		cancel         time.Duration
		want           time.Duration
		late, refused  bool
	}{
		{"the time it may wait", 0, 0, 0, time.Minute, false, true},
		{"a deadline after that", 2 * time.Minute, 0, 0, time.Minute, false, true},
		{"a deadline before that", 10 * time.Second, 0, 0, 10 * time.Second, true, false},
		{"an answer that would be late", 10 * time.Second, time.Second, 0, 9 * time.Second, false, true},
		{"a caller who goes", 0, 0, 5 * time.Second, 5 * time.Second, false, false},
		{"a caller with a deadline who goes", 10 * time.Second, 0, 5 * time.Second, 5 * time.Second, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlay(t)
				a := p.account(guess{}, &queue.Label{Text: "a guess"})
				ctx, cancel := context.WithCancel(t.Context())
				if test.deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, test.deadline)
				}
				defer cancel()
				if test.cancel > 0 {
					time.AfterFunc(max(1, test.cancel), cancel)
				}
				start, pa := time.Now(), minute(ctx)
				pa.Trip = test.trip
				p.e.Lock()
				now := p.e.Now()
				q := p.player(now, a)
				w, f, r := p.e.Queue(now, &q.Request, q.Needs(now, nil), pa)
				p.e.Unlock()
				if r != nil || f.Account != a || f.At != now.Add(time.Hour) {
					t.Fatalf("refused %+v, told %+v", r, f)
				}
				w.Await(pa)
				took := time.Since(start)
				p.e.Lock()
				defer p.e.Unlock()
				end := p.e.Finish(p.e.Now(), w, pa)
				if end.Granted || (took-test.want).Abs() > time.Millisecond || (end.Late != nil) != test.late {
					t.Errorf("ended after %v: %+v, want %v", took, end, test.want)
				}
				if r := end.Late; r != nil && (r.Account != a || !r.Deadline || r.Wait != time.Hour) {
					t.Errorf("late: %+v", r)
				}
				if r := end.Refused; test.refused && (r == nil || r.Account != a || r.Wait != time.Hour || r.Bound.Round(time.Second) != test.want) {
					t.Errorf("refused: %+v", r)
				}
				if p.e.Waiting != 0 || a.Waited() {
					t.Error("it still waits")
				}
			})
		})
	}
}

// A pause refuses those that cannot wait for it, as far as it is certain, also those
// that wait already, and says its reason. Others wait until it is over.
func TestPausesRefuseWhatIsCertain(t *testing.T) {
	for _, test := range []struct {
		name    string
		gate    bool
		sure    time.Duration
		refused bool
	}{
		{"certain", false, 2 * time.Minute, true},
		{"guessed", false, 0, false},
		{"certain for less", false, time.Minute, false},
		{"certain for all of the group", true, 2 * time.Minute, true},
		{"guessed for all of the group", true, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlay(t)
				a, other := p.rate(1, 10*time.Second), p.rate(1, 10*time.Second)
				p.e.Lock()
				p.enters(a)
				w := p.waits(a)
				at := a
				if test.gate {
					at = &p.group.Gate
				}
				now := p.e.Now()
				p.e.Pause(now, at, now.Add(2*time.Minute), now.Add(test.sure), "told so")
				end := func(w *queue.Waiter) queue.Ending {
					p.e.Unlock()
					w.Await(minute(t.Context()))
					p.e.Lock()
					return p.e.Finish(p.e.Now(), w, minute(t.Context()))
				}
				q := p.player(now, a)
				late, _, r := p.e.Queue(now, &q.Request, q.Needs(now, nil), minute(t.Context()))
				if (r != nil) != test.refused || r != nil && (r.Reason != queue.Paused || r.Account != at || r.Why != "told so" || r.Wait != 2*time.Minute) {
					t.Errorf("a newcomer is refused: %+v, want it %t", r, test.refused)
				}
				if waits := p.enters(other) == nil; waits != test.gate {
					t.Errorf("one that draws on another account waits: %t", waits)
				}
				start := time.Now()
				got := end(w)
				if r := got.Refused; r == nil || (time.Since(start) == 0) != test.refused || r.Reason != queue.Paused || r.Account != at || r.Why != "told so" {
					t.Errorf("one that waits is refused after %v: %+v", time.Since(start), r)
				}
				if !test.refused {
					p.e.Pause(p.e.Now(), at, p.e.Now(), 0, "") // it ends early
					if got := end(late); !got.Granted && time.Since(start) < time.Minute {
						t.Errorf("after the pause: %+v", got)
					}
				}
				p.e.Unlock()
			})
		})
	}
}

// doubter is a request for which what was learned of others may not hold.
type doubter struct {
	*player
	until meter.Instant // Barred
}

func (d doubter) Doubts() bool { return true }

func (d doubter) Barred(now meter.Instant) (meter.Instant, *queue.Account) {
	return max(now, d.until), d.accounts[0]
}

// For one that has doubts only what is configured is certain, and what bars itself.
func TestDoubtsLeaveWhatIsConfigured(t *testing.T) {
	for _, test := range []struct {
		name       string
		configured bool
		barred     time.Duration
		refused    bool
	}{{"learned", false, 0, false}, {"configured", true, 0, true}, {"barred", false, time.Hour, true}} {
		synctest.Test(t, func(t *testing.T) {
			p := newPlay(t)
			a := p.rate(1, time.Hour)
			if !test.configured {
				a.Label = &queue.Label{Unit: meter.Requests, Text: "learned"}
			}
			p.e.Lock()
			defer p.e.Unlock()
			p.enters(a)
			now := p.e.Now()
			for _, doubts := range []bool{true, false} {
				q := p.player(now, a)
				if doubts {
					q.By = doubter{q, now.Add(test.barred)}
				}
				w, _, r := p.e.Queue(now, &q.Request, q.Needs(now, nil), minute(t.Context()))
				if want := test.refused || !doubts; (r != nil) != want {
					t.Errorf("%s: with doubts %t refused %+v, want it %t", test.name, doubts, r, want)
				}
				if w != nil {
					p.e.Abandon(now, w)
				}
			}
		})
	}
}
