package stated

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// clone is a copy of q that shares nothing with it that Hear or At may change.
func (q *Limit) clone() *Limit {
	c := *q
	if c.trail != nil {
		t := *c.trail
		t.spent.Entries = slices.Clone(t.spent.Entries)
		c.trail = &t
	}
	return &c
}

// waits says whether somebody waits.
type waits bool

func (w waits) Waited() bool { return bool(w) }

// A server of any kind states one limit, in one order or another, now and then
// nonsense. What a glance tells of an answer or a wait is what the whole of it tells.
func TestAGlanceTellsTheSame(t *testing.T) {
	var expected, ample, heard, asked int
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 8))
		pick := func(list ...float64) float64 { return list[r.IntN(len(list))] }
		span := func(list ...time.Duration) time.Duration { return list[r.IntN(len(list))] }
		q := New(Key{Window: span(0, 0, 2*sec, time.Minute, time.Hour)}, "x",
			&Terms{MaxPause: span(sec, 5*time.Minute, 1<<62), Pace: r.IntN(8) == 0, Fleet: r.IntN(8) == 0})
		q.Count(r.IntN(8) > 0, r.IntN(4) == 0, waits(r.IntN(8) == 0))
		if r.IntN(4) == 0 {
			q.judge.Lean(refill.Kind(r.IntN(3)))
		}
		size, reset, means := pick(0, 1, 10, 1e5, 1e15), span(0, sec/2, 20*sec, time.Hour, 1<<62), headers.ResetMeans(r.IntN(4))
		left, now, sane := size, hourIn, r.IntN(2) == 0
		type call struct {
			sent meter.Instant
			mark meter.Token
			cost int64
		}
		var out []call
		for range 60 {
			now = now.Add(span(0, 1, sec/1000, sec/1000, sec/10, 2*sec))
			n := int64(pick(1, 1, 1, 1, 3))
			if q.ample(now, float64(n)) {
				ample++
				if c := q.clone(); c.wait(now, float64(n)) != 0 || !reflect.DeepEqual(c, &q) {
					t.Fatalf("seed %d: %+v has room, and then is %+v", seed, q, c)
				}
			}
			if asked++; q.At(now, n) <= now {
				out = append(out, call{now, q.Take(now, n, true), n})
			}
			if len(out) == 0 || r.IntN(4) == 0 && len(out) < 5 {
				continue
			}
			i := 0
			if !sane {
				i = r.IntN(len(out))
			}
			x := out[i]
			out = slices.Delete(out, i, i+1)
			l := headers.Limit{Source: "x", ResetMeans: means, Reset: headers.Opt[time.Duration]{Value: reset, Known: true}, Remaining: known(left)}
			left -= float64(x.cost)
			if l.Quota = known(size); r.IntN(4) == 0 {
				l.Quota.Known = false
			}
			reset -= span(0, 0, sec/1000, sec/10)
			if q.ID.Window > 0 {
				l.Window = known(q.ID.Window)
			}
			if !sane && r.IntN(3) == 0 { // anything at all
				left = pick(0, 1, -1, size, size/2, left+1, left+3, 1e300)
				reset = span(-sec, 0, 1, sec, reset+sec/2, reset+sec, reset+3*sec, 1<<62)
				l.Remaining.Known, l.Used = r.IntN(4) > 0, known(pick(0, 1))
				l.Refill = headers.Opt[float64]{Value: pick(0, 1, 1e9), Known: r.IntN(8) == 0}
				l.Quota = known(pick(size, size+1, 0))
				l.ResetMeans = headers.ResetMeans(r.IntN(4))
			}
			a := Answer{Sent: x.sent, Limit: &l, Drew: r.IntN(8) > 0, Asked: x.mark&Asks != 0, Refused: r.IntN(16) == 0}
			if q.exact() {
				a.Cost = float64(x.cost)
			}
			whole, short := q.clone(), q.clone()
			whole.Weigh(now, &a)
			whole.judged(now, &a)
			whole.learn(now, &a)
			heard++
			if short.Expects(now, &a) {
				expected++
			} else {
				if !reflect.DeepEqual(short, &q) {
					t.Fatalf("seed %d: it learned from what it left to others: %+v, was %+v", seed, short, q)
				}
				short.Weigh(now, &a)
				short.Hear(now, &a)
			}
			if !reflect.DeepEqual(short, whole) {
				t.Fatalf("seed %d: after %+v of %+v\n%+v\nwant\n%+v", seed, a, l, short, whole)
			}
			q = *short
			q.Answered(now, x.cost, x.mark, x.sent)
			q.Return(now, x.cost, x.mark, x.sent, now)
			if r.IntN(32) == 0 {
				q.Unmentioned(now, false, r.IntN(2) == 0, 1)
			}
			if r.IntN(32) == 0 {
				q.Lost(now, 1)
			}
		}
	}
	if expected < heard/10 || ample < asked/10 {
		t.Errorf("%d of %d answers were expected, %d of %d waits were none", expected, heard, ample, asked)
	}
}
