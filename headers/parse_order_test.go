package headers

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// This test is in the package because the order of headers shows only in what is dropped
// of too many, and in which of several equals is kept.

// In which order headers are read depends neither on chance, nor on their number, nor on
// how they are spelled.
func TestHeadersAreReadInOrder(t *testing.T) {
	names := []string{"Retry-After", "retry-after", "A-Limit", "a-limit", "A-limit", "A-Limits", "A-Lim", "B-Limit", "A_Limit", "Z-Limit", "A-Limit2", "M-Quota", "N-Quota", "O-Quota", "P-Quota"}
	want := "Retry-After retry-after A-Limit A-limit a-limit A-Limit2 A-Limits A_Limit B-Limit M-Quota N-Quota O-Quota P-Quota Z-Limit"
	for n := range len(names) + 1 {
		for seed := range uint64(4) {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			r.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
			h := http.Header{"Date": {"x"}, "Age": {"1"}, "Content-Type": {"x"}, "X-Limit": nil}
			for _, name := range names[:n] {
				h[name] = []string{"1"}
			}
			var space [16]entry
			found, c := collect(space[:0], h)
			var got, expect []string
			for _, e := range found {
				got = append(got, e.name)
			}
			for _, name := range strings.Fields(want) {
				if h[name] != nil {
					expect = append(expect, name)
				}
			}
			if !slices.Equal(got, expect) || c.date.value != "x" || c.age.value != "1" {
				t.Fatalf("got %v, want %v; %+v", got, expect, c)
			}
		}
	}
}
