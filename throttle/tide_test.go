package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// tide is a meter that has room at times, whatever happens.
type tide struct {
	meter.Open
	turns []time.Duration // room from the first to the second, from the third on, ...
}

func (m tide) At(now instant, _ int64) instant {
	for i, t := range m.turns {
		if at := instant(1 + t); now < at {
			if i%2 == 0 {
				return at
			}
			return now
		}
	}
	return now
}

func (tide) Regain(int64) time.Duration { return time.Minute } // places in line are held

// Who waits for two accounts is let in as soon as both have room, though one
// that had it first may have none when the other gets it.
func TestRoomThatGoesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s := newEngine(), &scope{}
		s.gate = account{meter: meter.Open{}, terms: &e.gate, scope: s}
		for _, turns := range [][]time.Duration{{1 * sec, 3 * sec, 5 * sec}, {4 * sec}} {
			s.own = append(s.own, member{a: &account{meter: tide{turns: turns}, terms: &terms{text: "tide"}, scope: s}})
		}
		_, _, waited, err := e.take(&ask{scope: s}, nil, &patience{ctx: t.Context(), most: time.Minute, full: time.Minute, queue: 1})
		if err != nil || waited != 5*sec {
			t.Errorf("waited for %v, %v, want 5s", waited, err)
		}
	})
}
