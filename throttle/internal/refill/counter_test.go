package refill_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// A server counts units in windows of its clock; weighted says that it counts those of the last
// window, too, by the share of it that lies within one window of now.
type server struct {
	size      float64
	per       time.Duration
	weighted  bool
	end       time.Duration
	last, now float64
}

func (s *server) left(now time.Duration) float64 {
	for now >= s.end {
		s.last, s.now, s.end = s.now, 0, s.end+s.per
	}
	if !s.weighted {
		return s.size - s.now
	}
	return s.size - s.now - s.last*(s.end-now).Seconds()/s.per.Seconds()
}

// busy has j hear the answers to requests of one unit, each after the one before it, until the
// end. The client waits for the end of the window, as it is stated, when nothing is left.
func busy(j *refill.Judge, s *server, r *rand.Rand, until time.Duration) {
	trip := time.Duration(1+r.IntN(50)) * time.Millisecond
	gap := time.Duration(r.Float64() * 2 * float64(s.per) / s.size)
	for now := time.Duration(0); now < until; now += trip + time.Duration(r.Float64()*2*float64(gap)) {
		refused := s.left(now+trip/2) < 1
		if !refused {
			s.now++
		}
		left := math.Floor(s.left(now + trip/2))
		end := s.end.Truncate(time.Second) + time.Second
		a := refill.Answer{Sent: at(now), Heard: at(now + trip), Left: left, Cost: 1, Refused: refused, Size: s.size, Reset: at(end), Doubt: time.Second + trip}
		if j.Heard(&a); left < 1 {
			now = max(now, s.end)
		}
	}
}

// A sliding counter is told from a window by the clock, whatever is sent, although both state
// the same numbers in the same words.
func TestASlidingCounterIsToldFromAWindow(t *testing.T) {
	wrong := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		per := time.Duration(4000+r.IntN(60000)) * time.Millisecond
		s := &server{size: float64(4 + r.IntN(200)), per: per, weighted: seed%2 == 0}
		s.end = time.Duration(r.Int64N(int64(per)))
		var j refill.Judge
		if busy(&j, s, r, 8*per); (j.Kind() == refill.Counter) != s.weighted {
			t.Logf("seed %d: %+v: kind %d", seed, *s, j.Kind())
			wrong++
		}
	}
	if wrong > 4 {
		t.Errorf("%d of 400 servers were taken for others, want 4 at most", wrong)
	}
}

// What comes back of a counter is what the server gets back, and Until says when.
func TestACounterSaysWhatComesBack(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		per := time.Duration(8000+r.IntN(60000)) * time.Millisecond
		s := &server{size: 100, per: per, weighted: true, end: per}
		var j refill.Judge
		busy(&j, s, r, 8*per)
		from := 8*per + time.Duration(r.Int64N(int64(per/2)))
		before := s.left(from)
		for range 5 {
			to := from + time.Duration(r.Int64N(int64(2*per)))
			copied := *s
			units, full := j.Gain(at(from), at(to))
			if got, want := units, copied.left(to)-before; math.Abs(got-want) > 2+100*2/per.Seconds() {
				t.Errorf("seed %d: %v units come back, want %v", seed, got, want)
			}
			if back := j.Until(at(from), units); !full && units > 1e-3 && back.Sub(at(to)).Abs() > time.Millisecond && at(to) < back {
				t.Errorf("seed %d: %v units are back at %v, want %v", seed, units, back.Sub(at(0)), to)
			}
		}
		if back := j.Until(at(from), 1e6); back == meter.Never || back > at(from+3*per) {
			t.Errorf("seed %d: all are back at %v", seed, back)
		}
	}
}

// Windows that are too short to be told from the one after are never those of a counter, if the
// server states how long they are: the resets of a log, each when its next unit comes back, may
// be as far apart as windows of a counter.
func TestALogOfAShortWindowIsNoCounter(t *testing.T) {
	wrong := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 3))
		per := time.Duration(1+r.IntN(3)) * time.Second
		size := 2 + r.IntN(20)
		var j refill.Judge
		var log []time.Duration
		for now := time.Duration(0); now < 40*per; now += time.Duration(r.Int64N(int64(2 * per))) {
			for range 1 + r.IntN(size) { // a burst
				now += 5 * time.Millisecond
				for len(log) > 0 && log[0] <= now-per {
					log = log[1:]
				}
				a := refill.Answer{Sent: at(now), Heard: at(now + 4*time.Millisecond), Cost: 1, Size: float64(size), Per: per, Doubt: time.Second, Refused: len(log) == size}
				if !a.Refused {
					log = append(log, now)
				}
				a.Left, a.Reset = float64(size-len(log)), at((log[0]+per).Truncate(time.Second)+time.Second)
				if j.Heard(&a); j.Kind() == refill.Counter {
					wrong++
				}
			}
		}
	}
	if wrong > 0 {
		t.Errorf("a counter was seen after %d answers", wrong)
	}
}
