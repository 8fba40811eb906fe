package attribution_test

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/attribution"
)

// The first refusal is one kind's own for a guess, if the server says nothing of how
// long to stay away and another kind was served lately.
func TestTheFirstRefusalIsGuessedToBeItsOwn(t *testing.T) {
	for _, test := range []struct {
		guessed, served, own bool
	}{{true, true, true}, {false, true, false}, {true, false, false}} {
		var b attribution.Blame
		b.Another(zero, false)
		if own := b.Refused(zero, test.guessed, test.served); own != test.own || b.Alone(zero) != test.guessed {
			t.Errorf("%+v: its own %t, alone %t", test, own, b.Alone(zero))
		}
		if b.Refused(zero, test.guessed, test.served) {
			t.Errorf("%+v: so is the second", test)
		}
	}
}

// Two kinds that are refused within a minute are bound by one limit, unless the second
// is known to have its own; for ten minutes nothing is guessed then.
func TestTwoKindsThatAreRefusedShareALimit(t *testing.T) {
	for _, test := range []struct {
		after time.Duration
		apart bool
		both  bool
	}{{time.Minute - 1, false, true}, {time.Minute, false, false}, {sec, true, false}} {
		var b attribution.Blame
		if b.Another(zero, false) {
			t.Error("nothing was refused before")
		}
		b.Refused(zero, true, false)
		at := zero.Add(test.after)
		if both := b.Another(at, test.apart); both != test.both {
			t.Errorf("%+v: one limit %t", test, both)
		}
		if own := b.Refused(at, true, true); own == test.both {
			t.Errorf("%+v: its own %t", test, own)
		}
		if late := at.Add(attribution.Remembered); b.Alone(late) == test.both || !b.Alone(late+1) {
			t.Errorf("%+v: what they share is not remembered for ten minutes, or for longer", test)
		}
	}
}
