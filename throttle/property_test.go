package throttle_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhttp/weir/throttle"
)

// arrived is units that arrived somewhere at some time.
type arrived struct {
	at time.Duration
	n  int64
}

// judge looks for a window above r's promise, by brute force over a log in
// order of time. It knows nothing of how budgets are kept.
func judge(fail func(string, ...any), r throttle.Rate, log []arrived) {
	size := int64(r.Bucket) // a larger cost goes when the bucket is full
	for _, a := range log {
		size = max(size, a.n)
	}
	for i := range log {
		var sum int64
		for j := i; j < len(log); j++ {
			width := log[j].at - log[i].at
			sum += log[j].n
			most := float64(r.Limit)
			if r.Bucket > 0 {
				most = float64(size) + float64(r.Limit)*width.Seconds()/r.Per.Seconds() + 1e-6
			} else if width >= r.Per {
				break
			}
			if float64(sum) > most {
				fail("%v: %d units between %v and %v, at most %v", r, sum, log[i].at, log[j].at, most)
				return
			}
		}
	}
}

// bubble runs f in a bubble, in which rapid must not be told of failures, and
// tells it after.
func bubble(t *testing.T, rt *rapid.T, f func(fail func(string, ...any))) {
	var failure string
	synctest.Test(t, func(*testing.T) {
		f(func(format string, args ...any) {
			if failure == "" {
				failure = fmt.Sprintf(format, args...)
			}
		})
	})
	if failure != "" {
		rt.Fatal(failure)
	}
}

// genRate draws a rate whose arithmetic is exact in binary, so that a model may
// be asked for equality.
func genRate(t *rapid.T, largest int) throttle.Rate {
	r := throttle.Rate{
		Limit: 1 << rapid.IntRange(0, largest).Draw(t, "limit"),
		Per:   time.Second << rapid.IntRange(0, 3).Draw(t, "per"),
	}
	switch rapid.IntRange(0, 2).Draw(t, "shape") {
	case 0:
		r.Burst = 1 << rapid.IntRange(0, largest).Draw(t, "burst")
		r.Burst = min(r.Burst, r.Limit)
	case 1:
		r.Burst = r.Limit
	default:
		r.Bucket = 1 << rapid.IntRange(0, largest).Draw(t, "bucket")
	}
	return r
}

// step is one move of a schedule.
type step struct {
	sleep time.Duration
	op    int
	cost  int64
	which int
}

func genStep() *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		return step{
			sleep: time.Duration(rapid.Int64Range(0, int64(time.Second/2)).Draw(t, "sleep")),
			op:    rapid.IntRange(0, 9).Draw(t, "op"),
			cost:  rapid.Int64Range(1, 300).Draw(t, "cost"),
			which: rapid.IntRange(0, 79).Draw(t, "which"),
		}
	})
}

// tick is the time step of schedules: exact in nanoseconds and in binary.
const tick = time.Second / 64

// model decides by brute force over everything that was ever granted.
type model struct {
	rates []throttle.Rate
	log   []arrived
}

// close says that another nanosecond might decide otherwise.
func (m *model) allows(now time.Duration, c int64) (ok, close bool) {
	ok = true
	for _, r := range m.rates {
		var window int64
		level, last := 0.0, time.Duration(0)
		perSecond := float64(r.Limit) / r.Per.Seconds()
		for _, s := range m.log {
			if now-s.at < r.Per {
				window += s.n
			}
			level = max(0, level-perSecond*(s.at-last).Seconds()) + float64(s.n)
			last = s.at
		}
		level = max(0, level-perSecond*(now-last).Seconds())
		size := float64(cmp.Or(r.Bucket, r.Burst, max(1, r.Limit/10)))
		if r.Bucket == 0 && window+c > int64(r.Limit) {
			return false, false
		}
		if over := level + min(float64(c), size) - size; r.Bucket > 0 || r.Burst < r.Limit {
			ok = ok && over <= 0
			close = close || math.Abs(over) < 1e-6
		}
	}
	return ok, close
}

// TestModelAgrees: for limits that are counted exactly, every single decision
// is that of a brute-force log.
func TestModelAgrees(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var b throttle.Budget
		for range rapid.IntRange(1, 3).Draw(rt, "rates") {
			b.Rates = append(b.Rates, genRate(rt, 6))
		}
		sleeps := rapid.SliceOfN(rapid.IntRange(0, 40), 60, 60).Draw(rt, "sleeps")
		costs := rapid.SliceOfN(rapid.Int64Range(0, 9), 1, 60).Draw(rt, "costs")
		bubble(t, rt, func(fail func(string, ...any)) {
			l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: b})
			if err != nil {
				panic(err)
			}
			m, start := model{rates: b.Rates}, time.Now()
			for i, c := range costs {
				time.Sleep(tick * time.Duration(sleeps[i]))
				now := time.Since(start)
				want, close := m.allows(now, c)
				want = want || c == 0
				d := l.Try("k", throttle.Cost{requests: c})
				if d.Allowed != want && !close {
					fail("%v: at %v a cost of %d is allowed: %v, want %v; log %v", b, now, c, d.Allowed, want, m.log)
				}
				if d.Allowed {
					m.log = append(m.log, arrived{now, c})
				} else if d.RetryAfter != unknown { // waiting that long is enough, and needed
					time.Sleep(d.RetryAfter - 1)
					ok, close := m.allows(time.Since(start), c)
					early := l.Try("k", throttle.Cost{requests: c}).Allowed
					if (ok || early) && !close {
						fail("%v: %d fits before RetryAfter of %v", b, c, d.RetryAfter)
					}
					if !early {
						time.Sleep(time.Nanosecond)
						if !l.Try("k", throttle.Cost{requests: c}).Allowed {
							fail("%v: a cost of %d does not fit after RetryAfter of %v", b, c, d.RetryAfter)
						}
					}
					m.log = append(m.log, arrived{time.Since(start), c})
				}
			}
		})
	})
}

// TestNoWindowIsExceeded: takes, cancels, settlements and pauses, in any order,
// of limits of any size.
func TestNoWindowIsExceeded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var b throttle.Budget
		for range rapid.IntRange(1, 3).Draw(rt, "rates") {
			b.Rates = append(b.Rates, genRate(rt, 11))
		}
		steps := rapid.SliceOfN(genStep(), 1, 80).Draw(rt, "steps")
		bubble(t, rt, func(fail func(string, ...any)) {
			l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: b})
			if err != nil {
				panic(err)
			}
			type sent struct {
				g throttle.Grant
				i int
			}
			var log []arrived
			var open []sent
			start := time.Now()
			for _, step := range steps {
				time.Sleep(step.sleep)
				switch op := step.op; {
				case op < 6:
					c := step.cost
					g, err := l.Take(throttle.WithMaxWait(context.Background(), -1), "k", throttle.Cost{requests: c})
					if err == nil {
						log = append(log, arrived{time.Since(start), c})
						open = append(open, sent{g, len(log) - 1})
					}
				case op == 6 && len(open) > 0: // never sent: out of the log
					i := step.which % len(open)
					open[i].g.Cancel()
					open[i].g.Cancel()
					log[open[i].i].n = 0
					open = append(open[:i], open[i+1:]...)
				case op == 7 && len(open) > 0: // cost less
					i := step.which % len(open)
					n := min(step.cost, log[open[i].i].n)
					open[i].g.Settle(throttle.Cost{requests: n})
					open[i].g.Settle(throttle.Cost{requests: 0})
					log[open[i].i].n = n
					open = append(open[:i], open[i+1:]...)
				case op == 8:
					l.Pause("k", time.Now().Add(time.Second))
				}
			}
			for _, r := range b.Rates {
				judge(fail, r, log)
			}
		})
	})
}
