package attribution_test

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"

	"github.com/weirhttp/weir/throttle/internal/attribution"
)

// partly is how a server answers requests to one kind, in which each of limits is spent, or stays
// so, by chance. limitOf says of which limit a path is; negative: of none. stay is how likely the
// next request is to the same path.
func partly(s *attribution.Parts, seed maphash.Seed, dice *rand.Rand, answers int, stay float64, limitOf func(base, form int) int) {
	spent := make([]bool, 64)
	base, form := 0, 0
	for range answers {
		for i := range spent {
			if dice.Float64() < .1 {
				spent[i] = dice.IntN(2) == 0
			}
		}
		if dice.Float64() >= stay {
			base, form = dice.IntN(4), dice.IntN(4)
		}
		path := fmt.Sprintf("/v0/app%d/%s", base, []string{"a", "b", "c", "d"}[form])
		limit := limitOf(base, form)
		s.Count(attribution.PartOf(seed, "GET", path, len("/v0")), limit >= 0 && spent[limit])
	}
}

// Some hundred answers tell by what parts of a kind are limited that each have a limit of their
// own, or share one; and a limit of all is hardly ever taken for one of parts in the end, also if
// requests to one path follow one another.
func TestAnswersTellWhichPartsHaveLimits(t *testing.T) {
	seed := maphash.MakeSeed()
	for _, test := range []struct {
		name    string
		stay    float64
		limitOf func(base, form int) int
		way     attribution.Way
		split   attribution.Split
		least   int // of a hundred servers
	}{
		{"one limit of all", 0, func(_, _ int) int { return 0 }, 0, attribution.All, 97},
		{"one limit of all, and requests follow one another", .8, func(_, _ int) int { return 0 }, 0, attribution.All, 80},
		{"no limit", 0, func(_, _ int) int { return -1 }, 0, attribution.All, 100},
		{"each base", 0, func(base, _ int) int { return base }, attribution.ByHead, attribution.Each, 90},
		{"each form", 0, func(_, form int) int { return form }, attribution.ByForm, attribution.Each, 90},
		{"each path", 0, func(base, form int) int { return 4*base + form }, attribution.ByFull, attribution.Each, 70},
		{"two bases share one", 0, func(base, _ int) int { return min(0, 1-base) }, attribution.ByHead, attribution.Few, 90},
		{"one base", 0, func(base, _ int) int { return min(0, -base) }, attribution.ByHead, attribution.Few, 90},
	} {
		found := 0
		for i := range uint64(100) {
			var s attribution.Parts
			partly(&s, seed, rand.New(rand.NewPCG(i, 7)), 600, test.stay, test.limitOf)
			way, split := s.Found()
			if split == test.split && (split == attribution.All || way == test.way) {
				found++
			}
		}
		if t.Logf("%s: %d of 100", test.name, found); found < test.least {
			t.Errorf("%s: found %d times in 100, want %d", test.name, found, test.least)
		}
	}
}

// Only parts that were refused have limits of their own, unless all have.
func TestAPartThatIsServedHasNoLimit(t *testing.T) {
	seed := maphash.MakeSeed()
	var s attribution.Parts
	partly(&s, seed, rand.New(rand.NewPCG(1, 8)), 300, 0, func(base, _ int) int { return min(0, -base) })
	for base := range 4 {
		p := attribution.PartOf(seed, "GET", fmt.Sprintf("/v0/app%d/a", base), len("/v0"))
		if got, want := s.Own(p), base == 0; got != want {
			t.Errorf("app%d has limits of its own: %v, want %v", base, got, want)
		}
	}
}

// A kind that has ever new paths has no parts, whatever is refused.
func TestPathsThatAreCalledOnceAreNoParts(t *testing.T) {
	seed, dice := maphash.MakeSeed(), rand.New(rand.NewPCG(1, 9))
	var s attribution.Parts
	for i := range 3000 {
		if s.Count(attribution.PartOf(seed, "GET", fmt.Sprintf("/items/%d", i), len("/items")), dice.IntN(4) == 0) {
			t.Fatalf("parts were told apart after %d answers", i)
		}
	}
}

// What tells parts apart is the segment after the kind's own, the path without ids, and the path.
func TestPartOf(t *testing.T) {
	seed := maphash.MakeSeed()
	for _, test := range []struct {
		a, b             string
		head, form, full bool // are the same
	}{
		{"/v0/app1/tasks", "/v0/app1/people", true, false, false},
		{"/v0/app1/tasks", "/v0/app2/tasks", false, true, false},
		{"/v0/app1", "/v0/app1/people", true, false, false},
		{"/v0/app1", "/v0/app1", true, true, true},
		{"/v0", "/v0/", false, false, false},
		{"/", "", false, false, false},
	} {
		a, b := attribution.PartOf(seed, "GET", test.a, len("/v0")), attribution.PartOf(seed, "GET", test.b, len("/v0"))
		for w, want := range []bool{test.head, test.form, test.full} {
			if got := a[w] == b[w]; got != want {
				t.Errorf("%q and %q are one part by way %d: %v, want %v", test.a, test.b, w, got, want)
			}
		}
	}
}
