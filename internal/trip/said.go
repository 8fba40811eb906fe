package trip

import (
	"net/http"

	"github.com/weirhttp/weir/headers"
)

// Said is what an answer means to all layers. It is made of the answer's status and
// headers, of the start of its body where a throttle reads that, and of what the
// throttle's Config.Classify makes of these.
type Said struct {
	headers.Signal
	Ruled bool // the user decided whether it was throttled, whatever its status is
	Guess bool // that it was throttled is a guess: it is a 503 that says no more

	of *http.Response // the answer
}

// Ear is implemented by the Grants of a throttle. Layers below it read answers by it.
type Ear interface {
	Hear(resp *http.Response) *Said // nil: the answer says nothing
}

// Hear returns what resp means, the answer of the attempt under way, as the throttle
// above reads it; nil: there is no throttle above, or the answer says nothing. An answer
// is read once, for the first layer that asks.
func (t *Trip) Hear(resp *http.Response) *Said {
	if s := t.Heard(resp); s != nil {
		return s
	}
	ear, ok := t.Grant.(Ear)
	if !ok {
		return nil
	}
	s := ear.Hear(resp)
	t.Keep(resp, s)
	return s
}

// Heard is what is known of resp; nil: no layer has read it, or it says nothing. If
// somebody between the layers replaced an answer, what was read of that is not returned.
func (t *Trip) Heard(resp *http.Response) *Said {
	if t.rare != nil && t.rare.said != nil && t.rare.said.of == resp {
		return t.rare.said
	}
	return nil
}

// Keep notes for all layers that resp means s; nil: it says nothing.
func (t *Trip) Keep(resp *http.Response, s *Said) {
	switch {
	case s != nil:
		s.of = resp
		t.rarely().said = s
	case t.rare != nil && t.rare.said != nil:
		t.rare.said = nil
	}
}
