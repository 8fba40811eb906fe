package breaker

import (
	"errors"
	"testing"

	"github.com/weirhttp/weir/internal/notsent"
)

// A refusal is temporary.
func TestRefusalIsTemporary(t *testing.T) {
	if e := new(Error); !e.Temporary() || e.Timeout() {
		t.Errorf("temporary %v, timeout %v", e.Temporary(), e.Timeout())
	}
}

// TestRefusalsSayThatTheyAre: a refusal says of itself that it is one, also
// through the wrapping of the layer that made the trip.
func TestRefusalsSayThatTheyAre(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
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
