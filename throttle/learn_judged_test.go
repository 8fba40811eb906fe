package throttle_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle"
)

// A drawnLimit is a server that was drawn by lot, which states its limit.
type drawnLimit struct {
	family  string // window, bucket or log
	opens   bool   // a window begins with the first request after the last one
	size    float64
	per     time.Duration
	phase   time.Duration
	dialect int     // 0: draft 8 with a window; 1: X-RateLimit in whole seconds; 2: without a reset; 3: X-RateLimit rounded up; 4: until it is full
	after   bool    // refusals say Retry-After
	others  float64 // units a second that somebody else takes
	change  float64 // of size and rate, halfway
	jitter  float64
	trip    time.Duration
	workers int
	jobs    int
}

func drawLimit(r *rand.Rand) drawnLimit {
	logU := func(lo, hi float64) float64 { return lo * math.Pow(hi/lo, r.Float64()) }
	d := drawnLimit{
		family: []string{"window", "bucket", "log"}[r.IntN(3)], opens: r.IntN(3) == 0,
		size: math.Round(logU(4, 300)), per: time.Duration(logU(.8, 40) * 1e9), dialect: r.IntN(4), after: r.IntN(2) == 0,
		change: 1, jitter: r.Float64() * .6, trip: time.Duration(logU(2, 150) * 1e6), workers: int(logU(1, 64)),
	}
	if r.IntN(2) == 0 {
		d.per = max(d.per.Round(time.Second), time.Second)
	}
	d.phase = time.Duration(r.Float64() * float64(d.per))
	if r.IntN(3) == 0 {
		d.others = d.size / d.per.Seconds() * logU(.03, .4)
	}
	if r.IntN(4) == 0 {
		d.change = []float64{.5, 2, .33, 3}[r.IntN(4)]
	}
	if d.family == "bucket" && r.IntN(4) == 0 {
		d.dialect = 4
	}
	d.jobs = int(min(10*d.size, 1200)) + 20
	return d
}

// serve is d as a server that is asked at instants that rise.
func (d *drawnLimit) serve(r *rand.Rand) func(now time.Duration) (int, headers.Signal) {
	last := time.Duration(-1)
	size := d.size
	tokens, opened, open := size, time.Duration(0), false
	var log []time.Duration
	take := func(now time.Duration) (ok bool, left float64, next, full time.Duration) {
		switch d.family {
		case "bucket":
			rate := size / d.per.Seconds()
			tokens = min(size, tokens+(now-max(0, last)).Seconds()*rate)
			last = now
			if ok = tokens >= 1-1e-9; ok {
				tokens--
			}
			return ok, math.Floor(tokens + 1e-9), time.Duration((1 - (tokens - math.Floor(tokens))) / rate * 1e9), time.Duration((size - tokens) / rate * 1e9)
		case "window":
			at := opened
			if d.opens {
				if !open || (now-opened) >= d.per {
					at, open = now, true
				}
			} else {
				at = now - (now+d.phase)%d.per
			}
			if at != opened || last < 0 {
				opened, tokens = at, size
				last = now
			}
			if ok = tokens >= 1; ok {
				tokens--
			}
			rest := d.per - (now - opened)
			return ok, tokens, rest, rest
		}
		for len(log) > 0 && (now-log[0]) >= d.per {
			log = log[1:]
		}
		if ok = float64(len(log)) < size; ok {
			log = append(log, now)
		}
		return ok, max(0, size-float64(len(log))), d.per - (now - log[0]), d.per - (now - log[len(log)-1])
	}
	half := time.Duration(float64(d.jobs) / d.size * float64(d.per) / 2)
	other := time.Duration(math.MaxInt64)
	gap := func() time.Duration { return time.Duration(r.ExpFloat64() / d.others * 1e9) }
	if d.others > 0 {
		other = gap()
	}
	return func(now time.Duration) (int, headers.Signal) {
		for other < now {
			take(other)
			other += gap()
		}
		if d.change != 1 && now > half && size == d.size {
			size = max(2, math.Round(d.size*d.change))
			tokens = min(tokens, size)
		}
		ok, left, next, full := take(now)
		status, s := 200, headers.Signal{}
		if !ok {
			status, s.Throttled, s.Kind = 429, true, headers.Quota
			if d.after {
				s.RetryAfter = known(wholeSeconds(next))
			}
		}
		l := headers.Limit{Quota: known(size), Remaining: known(left), Source: "X-RateLimit-Remaining"}
		switch d.dialect {
		case 0:
			l.Name, l.Source, l.Window, l.Reset, l.ResetMeans = "default", "RateLimit", known(d.per.Round(time.Second)), known(wholeSeconds(next)), headers.Next
			if l.Window.Value == 0 {
				l.Window = known(time.Second)
			}
		case 1:
			l.Reset = known((next + time.Second/2) / time.Second * time.Second)
		case 3:
			l.Reset = known(wholeSeconds(full))
		case 4:
			l.Reset, l.ResetMeans = known(full), headers.Full
		}
		s.Limits = []headers.Limit{l}
		return status, s
	}
}

// TestWhatALimitIsIsFoundOut: of servers drawn by lot, of which a third is used by
// others and a quarter changes its limit, hardly a window is taken for anything else,
// and most buckets are found. (A bucket that is never emptied shows nothing.)
func TestWhatALimitIsIsFoundOut(t *testing.T) {
	const servers = 300
	count := map[string]int{}
	for i := range uint64(servers) {
		r := rand.New(rand.NewPCG(7, i))
		d := drawLimit(r)
		window := true
		b := play(t, i, d.jobs, d.workers, 2*time.Hour, func(b *bout) {
			b.trip, b.serve = d.trip, d.serve(r)
			b.onEnd = func() { window = throttle.StatesAWindow(b.tr, "h") }
		})
		if b.good < d.jobs {
			t.Errorf("%+v: %d of %d done", d, b.good, d.jobs)
		}
		count[d.family]++
		if window == (d.family == "window") {
			count[d.family+" right"]++
		}
		count["refused"] += b.refused
		count["good"] += b.good
	}
	t.Log(count)
	if wrong := count["window"] - count["window right"]; wrong > count["window"]/20 {
		t.Errorf("%d of %d windows are taken for something else, want at most a twentieth", wrong, count["window"])
	}
	if found := count["bucket right"]; found < count["bucket"]*6/10 {
		t.Errorf("%d of %d buckets are found, want six of ten", found, count["bucket"])
	}
}
