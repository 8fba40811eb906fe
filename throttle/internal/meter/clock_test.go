package meter_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	clockZero = meter.Instant(time.Hour)
	clockTrip = meter.Instant(20 * time.Millisecond)
	second    = meter.Instant(time.Second)
)

// A hundred answers that took up to 40 ms bound the server's clock within 60 ms (ten, at
// random instants, within some 100 ms), and nothing that a Date says moves it out of what
// it is.
func TestTheServersClockIsKnown(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		var c meter.Clock
		ahead := meter.Instant(1.7e18 + r.Float64()*1e9)
		now := clockZero
		for range 100 {
			sent := now
			arrived := sent + meter.Instant(r.Float64()*float64(clockTrip))
			now = arrived + meter.Instant(r.Float64()*float64(clockTrip))
			c.Hear(now, sent, int64((arrived+ahead)/second))
			unix, doubt := c.Ahead()
			if ahead < unix-doubt-1 || ahead > unix+doubt+1 {
				t.Fatalf("seed %d: the clock is %v ahead, believed %v +- %v", seed, ahead, unix, doubt)
			}
			now += meter.Instant(r.Float64() * .3e9)
		}
		if _, doubt := c.Ahead(); doubt > 60e6 {
			t.Errorf("seed %d: known within %v", seed, doubt)
		}
	}
}

// What the server's clock shows for certain is never too early.
func TestAnInstantOfTheServersClockIsNotTooEarly(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 4))
		var c meter.Clock
		ahead := meter.Instant(1.7e18 + r.Float64()*1e9)
		for now := clockZero; now < clockZero+20*second; now += meter.Instant(r.Float64() * .3e9) {
			c.Hear(now+clockTrip, now, int64((now+ahead+clockTrip/2)/second))
			unix := int64((now+ahead)/second) + 5
			if d := c.Shows(unix) + ahead - meter.Instant(unix)*second; d < 0 || d > second+clockTrip {
				t.Fatalf("seed %d: off by %v", seed, time.Duration(d))
			}
		}
	}
}

// An answer that contradicts all before it counts alone, and what is no date says nothing.
func TestAClockThatIsSetIsLearnedAnew(t *testing.T) {
	var c meter.Clock
	if c.Known() {
		t.Error("the zero Clock is known")
	}
	c.Hear(clockZero+clockTrip, clockZero, 1000)
	c.Hear(clockZero+second+clockTrip, clockZero+second, 5000)
	if got := c.Shows(5000); got != clockZero+second+clockTrip {
		t.Errorf("5000 s is at %v", got)
	}
	for _, d := range []int64{-1, 0, 1 << 62} {
		before := c
		if c.Hear(clockZero+clockTrip, clockZero, d); c != before {
			t.Errorf("believes the date %d", d)
		}
	}
}
