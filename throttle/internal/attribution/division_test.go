package attribution_test

import (
	"hash/maphash"
	"testing"

	"github.com/weirhttp/weir/throttle/internal/attribution"
)

// The words of a Division say all of it, and other words say none.
func TestDivisionInWords(t *testing.T) {
	for text, want := range map[string]attribution.Division{
		"each object":              {Way: attribution.ByHead, Split: attribution.Each, Every: true},
		"some URLs":                {Way: attribution.ByFull, Split: attribution.Each},
		"all URLs together":        {Way: attribution.ByFull, Split: attribution.Few, Every: true},
		"some path forms together": {Way: attribution.ByForm, Split: attribution.Few},
		"":                         {},
		"each":                     {},
		"each apple":               {},
	} {
		if got := attribution.DivisionOf(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
		if got := want.String(); got != text && want != (attribution.Division{}) {
			t.Errorf("%v: got %q, want %q", want, got, text)
		}
	}
}

// What an earlier run found holds until answers refute it: who has limits is known at once if all parts
// have, and else with the first refusal.
func TestPartsBeginWithWhatWasFound(t *testing.T) {
	seed := maphash.MakeSeed()
	path := attribution.PartOf(seed, "GET", "/v0/a", len("/v0"))
	for _, every := range []bool{true, false} {
		want := attribution.Division{Way: attribution.ByHead, Split: attribution.Each, Every: every}
		s := attribution.Divided(want)
		if got := s.Found(); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
		if s.Own(path) != every {
			t.Errorf("%v: one that was not called has limits of its own: %v", want, !every)
		}
		if s.Count(path, true); !s.Own(path) {
			t.Errorf("%v: one that was refused has none", want)
		}
	}
}
