package stated

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// slowServer has a window of size units per per that begins with its first request. It refuses at once,
// and works for a while on what it accepts.
type slowServer struct {
	size     float64
	per      time.Duration
	left     float64
	ends     meter.Instant
	atTheEnd bool // it says what is left when it answers, and not of when the request came
}

func (s *slowServer) take(now meter.Instant) (ok bool) {
	if now >= s.ends {
		s.left, s.ends = s.size, now.Add(s.per)
	}
	if s.left < 1 {
		return false
	}
	s.left--
	return true
}

func (s *slowServer) says(now meter.Instant, reset bool) headers.Limit {
	l := headers.Limit{Quota: known(s.size), Remaining: known(s.left), Source: "x"}
	if now >= s.ends {
		l.Remaining.Value = s.size
	}
	if reset {
		l.Reset = known(max(0, s.ends.Sub(now)))
	}
	return l
}

// A server states its quota and answers after many windows of it. Most of what it has is used, and few
// are refused. A thirtieth to a fifth would be used if no more than the quota were under way.
func TestALimitIsUsedAlthoughAnswersTakeLong(t *testing.T) {
	const trip, spans, step = 40 * time.Millisecond, 60 * time.Second, time.Millisecond
	for _, tt := range []struct {
		name   string
		server slowServer
		reset  bool
		works  time.Duration
		least  float64 // part of what the server has
		most   float64 // refusals for each that is accepted
	}{
		{"20 per 2 s, 10 s", slowServer{size: 20, per: 2 * sec}, true, 10 * sec, .6, .05},
		{"20 per 2 s, 10 s, as of the answer", slowServer{size: 20, per: 2 * sec, atTheEnd: true}, true, 10 * sec, .4, .2},
		{"2 per 2 s, 10 s", slowServer{size: 2, per: 2 * sec}, true, 10 * sec, .6, .25},
		{"30 per 1 s without reset, 10 s", slowServer{size: 30, per: sec}, false, 10 * sec, .3, .05},
		{"30 per 1 s, 40 ms", slowServer{size: 30, per: sec}, true, 0, .85, .02},
	} {
		t.Run(tt.name, func(t *testing.T) {
			type call struct {
				sent, answered meter.Instant
				says           headers.Limit
				ok, arrived    bool
				m              meter.Token
			}
			var good, bad float64
			r := rand.New(rand.NewPCG(1, 7))
			q, s := newQuota(), tt.server
			var out []*call
			for now := hourIn; now < hourIn.Add(spans); now = now.Add(step) {
				for n := 0; n < 50 && (q.heard == 0 && len(out) == 0 || q.heard != 0 && q.At(now, 1) <= now); n++ {
					out = append(out, &call{sent: now, m: q.Take(now, 1, true)})
				}
				kept := out[:0]
				for _, c := range out {
					if !c.arrived && now >= c.sent.Add(trip/2) {
						c.arrived, c.ok, c.answered = true, s.take(now), now.Add(trip/2)
						c.says = s.says(now, tt.reset)
						if c.ok {
							good++
							c.answered = c.answered.Add(time.Duration(float64(tt.works) * (.75 + .5*r.Float64())))
						} else {
							bad++
						}
					}
					if !c.arrived || now < c.answered {
						kept = append(kept, c)
						continue
					}
					if c.ok && s.atTheEnd {
						c.says = s.says(now, tt.reset)
					}
					q.hear(now, c.sent, &c.says, 1, !c.ok, c.m&Asks != 0)
					q.Answered(now, 1, c.m, c.sent)
				}
				out = kept
			}
			has := tt.server.size * spans.Seconds() / tt.server.per.Seconds()
			t.Logf("%.0f of %.0f accepted, %.0f refused", good, has, bad)
			if good < tt.least*has || bad > tt.most*good {
				t.Errorf("%.0f of %.0f accepted, %.0f refused", good, has, bad)
			}
		})
	}
}

// Requests that were sent before a limit was known, and that take long, hold nobody up for longer than
// a refusal takes. Those sent after them are used as if there were none, and when they end at last
// nothing is left of them.
func TestALimitIsUsedBesideEarlierRequestsThatTakeLong(t *testing.T) {
	const early, size, step = 8, 5, 20 * time.Millisecond
	q, s := newQuota(), slowServer{size: size, per: sec, ends: hourIn.Add(sec)}
	refusal := s.says(hourIn, true)
	q.Passed(hourIn, early, 1)
	q.hear(hourIn, hourIn.Add(-step), &refusal, 1, true, false)
	q.Count(true, false, nil)
	good, bad := 0, 0
	for now := hourIn; now < hourIn.Add(10*sec); now = now.Add(step) {
		for range 2 * size {
			if q.At(now, 1) > now {
				break
			}
			m := q.Take(now, 1, true)
			if s.take(now) {
				good++ // it is answered later
				continue
			}
			bad++
			refusal := s.says(now, true)
			q.hear(now, now.Add(-step), &refusal, 1, true, m&Asks != 0)
			q.Answered(now, 1, m, now)
		}
	}
	if good < 35 || bad > 10 {
		t.Errorf("%d were accepted of 50, and %d refused", good, bad)
	}
	for range early {
		q.Came()
	}
	if q.early != 0 || q.UnderWay() != float64(good) {
		t.Errorf("%v early ones and %v others are under way, want 0 and %d", q.early, q.UnderWay(), good)
	}
}

// Where requests are not counted, the one that asks tells only whether it is refused. So others wait for
// it for as long as a refusal may take, however long its answer does.
func TestOthersWaitForOneThatAsksAsLongAsARefusalTakes(t *testing.T) {
	const trip = sec / 10
	q := newQuota()
	spent := headers.Limit{Quota: known(5.), Remaining: known(0.), Reset: known(sec), Source: "x"}
	q.hear(hourIn, hourIn.Add(-trip), &spent, 1, true, false)
	q.Count(false, false, nil)
	asked := hourIn.Add(sec)
	if at := q.At(hourIn, 1); at != asked {
		t.Fatalf("one may ask at %v, want %v", at, asked)
	}
	if q.Take(asked, 1, true) != Asks {
		t.Fatal("it does not ask")
	}
	over := asked.Add(cooldown.Unrefused(trip))
	if at := q.At(asked, 1); at != over {
		t.Errorf("others may go at %v, want %v", at, over)
	}
	if m := q.Take(over, 1, true); m == Asks || q.At(over, 1) != over {
		t.Error("another one asks")
	}
}

// However requests end, what is under way is known, and what was presumed to be accepted is not counted
// twice.
func TestPresumedUnitsAreReleasedOnce(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 4))
		q := heardQuota(10, 10, 30*sec, 0, nil)
		type call struct {
			sent meter.Instant
			n    int64
			m    meter.Token
		}
		now, sum := hourIn, 0.0
		var out []call
		for range 200 {
			now = now.Add([]time.Duration{0, 1, sec / 100, sec, 3 * sec}[r.IntN(5)])
			if q.roll(now); r.IntN(2) == 0 {
				n := 1 + r.Int64N(3)
				out = append(out, call{now, n, q.Take(now, n, true)})
				sum += float64(n)
			} else if len(out) > 0 {
				i := r.IntN(len(out))
				c := out[i]
				out = append(out[:i], out[i+1:]...)
				sum -= float64(c.n)
				if r.IntN(4) == 0 {
					q.Return(now, c.n, c.m, c.sent, 0)
				} else {
					q.Answered(now, c.n, c.m, c.sent)
				}
			}
			if got := q.UnderWay(); got != sum {
				t.Fatalf("seed %d: %v under way, want %v", seed, got, sum)
			}
			for _, c := range out {
				if age := now.Sub(c.sent); q.late(c.sent) && age < cooldown.Unrefused(0) {
					t.Fatalf("seed %d: presumed to be accepted after %v", seed, age)
				}
			}
		}
	}
}
