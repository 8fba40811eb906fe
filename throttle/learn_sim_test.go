package throttle

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
	"github.com/weirhttp/weir/throttle/internal/stated"
)

// bout is a discrete-event run of one learner against a server, without an
// engine: requests to one endpoint, all there at the start.
type bout struct {
	now    instant
	events events
	l      *learner
	k      *endpoint
	r      *rand.Rand
	trip   time.Duration // one way; a quarter more or less

	workers, left    int
	good, refused    int
	serve            func(now instant) (status int, s headers.Signal)
	took             time.Duration
	under            int
	woken            instant
	onGood, onRefuse func(now instant)
	leave            []func() // of those that wait
}

type event struct {
	at  instant
	seq int
	f   func()
}
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any     { x := (*e)[len(*e)-1]; *e = (*e)[:len(*e)-1]; return x }

func newBout(seed uint64, jobs, workers int) *bout {
	b := &bout{now: 1, r: rand.New(rand.NewPCG(seed, 5)), left: jobs, workers: workers, trip: 20 * time.Millisecond}
	b.l = newLearner(&learnTerms{Terms: stated.Terms{MaxPause: 5 * time.Minute}, words: newLearnWords(), jitter: b.r.Float64}, &scope{}, newHostStart(newLearnWords()))
	b.k = b.l.endpointOf(endpointKey{"GET", "v1"}, b.now)
	join := crowdAt(&b.l.account)
	for range min(jobs, workers) {
		b.leave = append(b.leave, join())
	}
	return b
}

func (b *bout) at(d time.Duration, f func()) {
	heap.Push(&b.events, event{b.now.Add(d), len(b.events), f})
}

func (b *bout) way() time.Duration {
	return time.Duration(float64(b.trip) * (0.75 + 0.5*b.r.Float64()))
}

func (b *bout) meters() []meter.Meter {
	m := []meter.Meter{b.l.host, b.l, b.k}
	for _, q := range b.k.quotas {
		m = append(m, q)
	}
	return m
}

// fill starts all that may start.
func (b *bout) fill() {
	for b.left > 0 && b.under < b.workers {
		ready := b.now
		for _, m := range b.meters() {
			ready = max(ready, m.At(b.now, 1))
		}
		if ready > b.now {
			if ready != never && (b.woken <= b.now || ready < b.woken) {
				b.woken = ready
				b.at(ready.Until(b.now), b.fill)
			}
			return
		}
		b.send()
	}
}

func (b *bout) send() {
	b.left--
	b.under++
	if n := len(b.leave); n > b.left {
		b.leave[n-1]()
		b.leave = b.leave[:n-1]
	}
	ms := b.meters()
	marks, sent := make([]meter.Token, len(ms)), b.now
	g := &ticket{endpoint: b.k, sent: b.now, permit: new(placed)}
	for i, m := range ms {
		marks[i] = m.Take(b.now, 1, true)
		switch m := m.(type) {
		case *endpoint:
			g.permit.Needs = append(g.permit.Needs, queue.Need{Account: &m.account, Token: marks[i]})
		case *quota:
			g.permit.Needs = append(g.permit.Needs, queue.Need{Account: m.account, Token: marks[i]})
		}
	}
	b.at(b.way(), func() {
		status, s := b.serve(b.now)
		b.at(b.way(), func() {
			b.under--
			b.l.finish(b.now, g, replied, status, s)
			for i, m := range ms {
				m.Answered(b.now, 1, marks[i], sent)
				if _, ok := m.(*quota); !ok {
					m.Return(b.now, 1, marks[i], sent, 0)
				}
			}
			if status == 200 {
				b.good++
				b.took = b.now.Until(1)
				if b.onGood != nil {
					b.onGood(b.now)
				}
			} else {
				b.refused++
				b.left++
				if b.onRefuse != nil {
					b.onRefuse(b.now)
				}
			}
			b.fill()
		})
	})
}

func (b *bout) run(t testing.TB, most time.Duration) {
	b.fill()
	for b.left+b.under > 0 {
		if len(b.events) == 0 {
			t.Fatalf("stuck at %v with %d to do", b.now.Until(1), b.left)
		}
		e := heap.Pop(&b.events).(event)
		b.now = e.at
		if b.now.Until(1) > most {
			return
		}
		e.f()
	}
}

// Servers. style 0: bare 429; 1: Retry-After in seconds, rounded up; 2:
// remaining and reset as well.
func bucketServer(rate, burst float64, style int) func(instant) (int, headers.Signal) {
	tokens, last := burst, instant(1)
	return func(now instant) (int, headers.Signal) {
		tokens = min(burst, tokens+now.Until(last).Seconds()*rate)
		last = now
		status, s := 200, headers.Signal{}
		if tokens >= 1-1e-9 {
			tokens--
		} else {
			status, s.Throttled, s.Kind = 429, true, headers.Quota
			if style > 0 {
				s.RetryAfter = known(time.Duration(math.Ceil((1-tokens)/rate)) * time.Second)
			}
		}
		if style > 1 {
			s.Limits = []headers.Limit{{Name: "default", Quota: known(rate), Window: known(time.Second),
				Remaining: known(math.Floor(tokens + 1e-9)), Reset: known(time.Second), ResetMeans: headers.Next, Source: "RateLimit"}}
		}
		return status, s
	}
}

func windowServer(n float64, per, phase time.Duration, style int) func(instant) (int, headers.Signal) {
	left, number := n, int64(0)
	return func(now instant) (int, headers.Signal) {
		t := now.Until(1) + phase
		if int64(t/per) != number {
			left, number = n, int64(t/per)
		}
		rest := ceil(per - t%per)
		status, s := 200, headers.Signal{}
		if left >= 1 {
			left--
		} else {
			status, s.Throttled, s.Kind = 429, true, headers.Quota
			if style > 0 {
				s.RetryAfter = known(rest)
			}
		}
		if style > 1 {
			s.Limits = []headers.Limit{{Quota: known(n), Remaining: known(left), Reset: known(rest), ResetMeans: headers.Boundary, Source: "X-RateLimit-Remaining"}}
		}
		if style > 2 {
			s.Limits[0].Window, s.Limits[0].ResetMeans = known(per), headers.Next
		}
		return status, s
	}
}

func slidingServer(n int, per time.Duration, style int) func(instant) (int, headers.Signal) {
	var log []instant
	return func(now instant) (int, headers.Signal) {
		for len(log) > 0 && now.Until(log[0]) >= per {
			log = log[1:]
		}
		status, s := 200, headers.Signal{}
		if len(log) < n {
			log = append(log, now)
		} else {
			status, s.Throttled, s.Kind = 429, true, headers.Quota
			if style > 0 {
				s.RetryAfter = known(ceil(per - now.Until(log[0])))
			}
		}
		if style > 1 {
			s.Limits = []headers.Limit{{Name: "default", Quota: known(float64(n)), Window: known(per), Remaining: known(float64(n - len(log))),
				Reset: known(ceil(per - now.Until(log[0]))), ResetMeans: headers.Next, Source: "RateLimit"}}
		}
		return status, s
	}
}

func ceil(d time.Duration) time.Duration {
	return (d + time.Second - 1) / time.Second * time.Second
}

func known[T any](v T) headers.Opt[T] { return headers.Opt[T]{Value: v, Known: true} }

// At one a second each refusal costs most of a request's time: feeling one's way
// goes by requests then, not by seconds.
func TestSlowRatesAreFeltForSlowly(t *testing.T) {
	var took []float64
	for seed := range uint64(41) {
		b := newBout(seed, 60, 64)
		b.serve = bucketServer(1, 1, 0)
		b.run(t, 3*time.Minute)
		if took = append(took, b.took.Seconds()/59); b.good < 60 || b.refused > 24 {
			t.Errorf("seed %d: %d done, %d refused, want 60, at most 24", seed, b.good, b.refused)
		}
	}
	slices.Sort(took)
	if median := took[len(took)/2]; median > 1.3 {
		t.Errorf("%.3f x ideal, want at most 1.3", median)
	}
}

// A server with a bucket may say five seconds to everyone: no window, as what is sent
// before the next one shows. Each refusal costs five seconds until that is found.
func TestConstantHintIsFoundToBeABucket(t *testing.T) {
	for seed := range uint64(5) {
		b := newBout(seed, 1000, 1000)
		serve := bucketServer(100, 100, 1)
		b.serve = func(now instant) (int, headers.Signal) {
			status, s := serve(now)
			if s.RetryAfter.Known {
				s.RetryAfter.Value = 5 * time.Second
			}
			return status, s
		}
		b.run(t, time.Minute)
		if took := b.took.Seconds(); took > 24 || b.refused > 50 {
			t.Errorf("seed %d: took %.1f s with %d refusals, want at most 24 and 50", seed, took, b.refused)
		}
	}
}

// A burst that is refused says how large a bucket is, not how fast it fills. It
// costs a few more refusals to find that out. What else than the pauses, less what the
// bucket saves up in them, is lost is little, but where a pause is long for so fast a
// bucket.
func TestFewRefusalsTellABucketsRate(t *testing.T) {
	for _, c := range []struct {
		rate, burst float64
		jobs        int
		trip        time.Duration
		pauses      float64
		lost        float64 // of the ideal time
	}{
		{50, 10, 500, 200 * time.Microsecond, 3, .05}, {50, 10, 500, 5 * time.Millisecond, 4, .05},
		{100, 20, 1000, 200 * time.Microsecond, 3, .05},
		{200, 50, 1000, 200 * time.Microsecond, 3, .05}, {200, 50, 1000, 5 * time.Millisecond, 7, .15}, {200, 40, 1000, 20 * time.Millisecond, 6, .4},
		{500, 100, 3000, 5 * time.Millisecond, 7, .85}, {1000, 200, 8000, 5 * time.Millisecond, 20, .6},
	} {
		var lost, pauses []float64
		for seed := range uint64(9) {
			b := newBout(seed, c.jobs, c.jobs)
			b.trip, b.serve = c.trip, bucketServer(c.rate, c.burst, 1)
			since, n := instant(0), 0.0
			b.onRefuse = func(instant) {
				if b.l.cooldown.State().Since != since {
					since, n = b.l.cooldown.State().Since, n+1
				}
			}
			b.run(t, time.Minute)
			if b.good < c.jobs {
				t.Fatalf("%v/s of %v: %d of %d done in a minute", c.rate, c.burst, b.good, c.jobs)
			}
			ideal := (float64(c.jobs) - c.burst) / c.rate
			lost, pauses = append(lost, (b.took.Seconds()-ideal-n*(1-c.burst/c.rate))/ideal), append(pauses, n)
		}
		slices.Sort(lost)
		slices.Sort(pauses)
		if lost[4] > c.lost || pauses[4] > c.pauses {
			t.Errorf("%v/s of %v, %v away: %.0f pauses and %.3f of the ideal time beside them, want at most %.0f and %.2f", c.rate, c.burst, c.trip, pauses[4], lost[4], c.pauses, c.lost)
		}
	}
}

func TestQuotasAreFoundWithFewRefusals(t *testing.T) {
	const said = 2
	type server = func(style int) func(instant) (int, headers.Signal)
	bucket := func(rate, burst float64) server {
		return func(style int) func(instant) (int, headers.Signal) { return bucketServer(rate, burst, style) }
	}
	window := func(style int) func(instant) (int, headers.Signal) {
		return windowServer(100, 10*time.Second, 3700*time.Millisecond, style)
	}
	sliding := func(style int) func(instant) (int, headers.Signal) { return slidingServer(600, time.Minute, style) }
	for _, c := range []struct {
		name   string
		serve  server
		style  int
		jobs   int
		ideal  float64 // seconds
		most   float64 // times ideal
		wasted float64 // refusals per success
	}{
		{"bucket 1/s bare", bucket(1, 1), 0, 60, 59, 1.5, .4},
		{"bucket 5/s bare", bucket(5, 5), 0, 300, 59, 1.1, .06},
		{"bucket 50/s bare", bucket(50, 50), 0, 3000, 59, 1.01, .03},
		{"bucket 500/s bare", bucket(500, 100), 0, 30000, 60, 1.1, .01},
		{"bucket 1/s retry-after", bucket(1, 1), 1, 60, 59, 1.3, .2},
		{"bucket 2/s of one retry-after", bucket(2, 1), 1, 120, 59.5, 1.35, .12},
		{"bucket 5/s of one retry-after", bucket(5, 1), 1, 300, 59.8, 1.25, .04},
		{"bucket 5/s retry-after", bucket(5, 5), 1, 300, 59, 1.05, .08},
		{"bucket 50/s retry-after", bucket(50, 50), 1, 3000, 59, 1.1, .05},
		{"bucket 500/s retry-after", bucket(500, 100), 1, 30000, 60, 1.8, .012},
		{"bucket 5/s stated", bucket(5, 5), said, 300, 59, 1.02, 0},
		{"bucket 50/s stated", bucket(50, 50), said, 3000, 59, 1.02, 0},
		{"bucket 500/s stated", bucket(500, 100), said, 30000, 60, 1.02, 0},
		{"fixed window bare", window, 0, 1000, 90 - 3.7, 1.5, .1},
		{"fixed window retry-after", window, 1, 1000, 90 - 3.7, 1.03, .04},
		{"fixed window stated", window, said, 1000, 90 - 3.7, 1.03, 0},
		{"fixed window rolling", window, 3, 1000, 90 - 3.7, 1.03, 0},
		{"sliding bare", sliding, 0, 3000, 240, 1.6, .1},
		{"sliding retry-after", sliding, 1, 3000, 240, 1.1, .03},
		{"sliding stated", sliding, said, 3000, 240, 1.03, 0},
		{"short sliding stated", func(style int) func(instant) (int, headers.Signal) { return slidingServer(100, 2*time.Second, style) }, said, 500, 8, 1.08, 0},
		{"short window stated", func(style int) func(instant) (int, headers.Signal) {
			return windowServer(100, 2*time.Second, 700*time.Millisecond, style)
		}, 3, 500, 7.3, 1.15, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			seeds := uint64(1)
			if c.jobs <= 1000 { // few refusals: chance decides about each
				seeds = 5
			}
			took, wasted := 0.0, 0.0
			for seed := range seeds {
				b := newBout(1+seed, c.jobs, 64)
				b.serve = c.serve(c.style)
				b.run(t, time.Duration(4*c.ideal)*time.Second)
				if b.good < c.jobs {
					t.Errorf("got %d of %d done", b.good, c.jobs)
				}
				took += b.took.Seconds() / c.ideal / float64(seeds)
				wasted += float64(b.refused) / float64(c.jobs) / float64(seeds)
			}
			t.Logf("%.3f x ideal, %.3f refusals per success", took, wasted)
			if took > c.most || wasted > c.wasted {
				t.Errorf("%.3f x ideal with %.3f refusals per success, want %.2f, %.2f", took, wasted, c.most, c.wasted)
			}
		})
	}
}
