package trip

import (
	"net/http"

	"github.com/weirhttp/weir/headers"
)

// Said is what an answer means to all layers: its status and headers, the start
// of its body where a throttle reads that, and the user's word.
type Said struct {
	headers.Signal
	Ruled bool // the user decided whether it was throttled, whatever its status says

	of *http.Response
}

// Ear is a Grant that reads answers. Hear returns nil for one that says nothing.
type Ear interface {
	Hear(resp *http.Response) *Said
}

// Hear returns what the answer of the attempt under way means, as the throttle
// above reads it; nil: there is none, or the answer says nothing. An answer is
// read once, by the first layer that asks.
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

// Heard is what is known of resp; nil: nobody has read it, or it says nothing.
// What somebody else made of an answer that was read is another answer.
func (t *Trip) Heard(resp *http.Response) *Said {
	if t.rare != nil && t.rare.said != nil && t.rare.said.of == resp {
		return t.rare.said
	}
	return nil
}

// Keep notes what resp means for the layers above and below; nil: nothing.
func (t *Trip) Keep(resp *http.Response, s *Said) {
	switch {
	case s != nil:
		s.of = resp
		t.rarely().said = s
	case t.rare != nil:
		t.rare.said = nil
	}
}
