package breaker_test

import (
	"errors"
	"testing"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/notsent"
)

// A refusal is no timeout by itself.
func TestRefusalIsNoTimeout(t *testing.T) {
	if new(breaker.Error).Timeout() {
		t.Error("the zero Error is a timeout")
	}
}

// A state is read as it was written, and nothing else is.
func TestStateIsReadAsWritten(t *testing.T) {
	for _, s := range []breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen} {
		text, err := s.MarshalText()
		got := breaker.Open
		if err2 := got.UnmarshalText(text); err != nil || err2 != nil || got != s {
			t.Errorf("%v became %q and %v: %v, %v", s, text, got, err, err2)
		}
	}
	got := breaker.HalfOpen
	for _, text := range []string{"", "OPEN", "ajar", "invalid"} {
		if err := got.UnmarshalText([]byte(text)); err == nil || got != breaker.HalfOpen {
			t.Errorf("%q became %v, %v", text, got, err)
		}
	}
}

// TestRefusalsSayThatTheyAre: a refusal says of itself that it is one, also
// through the wrapping of the layer that made the trip.
func TestRefusalsSayThatTheyAre(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		h.set(down)
		for range 5 {
			get(rt, site)
		}
		_, err := get(rt, site)
		if notsent.Refused(err) != notsent.Door || !errors.Is(err, notsent.Err) {
			t.Errorf("the Door's refusal: %#v", err)
		}
		_, err = get(cs.Meter(h), site)
		if notsent.Refused(err) != notsent.Meter || !errors.Is(err, notsent.Err) {
			t.Errorf("the Meter's refusal: %#v", err)
		}
	})
}
