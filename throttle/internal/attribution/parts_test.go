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
			d := s.Found()
			if d.Split == test.split && (test.split == attribution.All || d.Way == test.way) {
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

// If by chance a limit of all is taken for one of parts, where each path is called once, that is found
// out.
func TestAWrongSplitIsTakenBack(t *testing.T) {
	seed, answers, wrong := maphash.MakeSeed(), 0, 0
	for i := range uint64(200) {
		s, dice, spent := attribution.Parts{}, rand.New(rand.NewPCG(i, 77)), false
		for j := range 3000 {
			if dice.Float64() < .1 {
				spent = dice.IntN(2) == 0
			}
			s.Count(attribution.PartOf(seed, "GET", fmt.Sprint("/items/", j), len("/items")), spent && dice.IntN(4) > 0)
			if s.Found().Split != attribution.All {
				wrong++
			}
			answers++
		}
	}
	if wrong > answers/200 { // .002 was seen; .05 if what is refused is taken for known to be bound
		t.Errorf("a limit of all was taken for one of parts during %d of %d answers", wrong, answers)
	}
}

// A limit of one path is found among any number of paths that are called once, also if these were
// there before, and also if it is seldom spent.
func TestAPartIsFoundThatComesLate(t *testing.T) {
	for _, often := range []float64{.1, .01} { // how likely a limit that has units is spent by the next answer
		seed, found := maphash.MakeSeed(), 0
		for i := range uint64(20) {
			s, dice, spent := attribution.Parts{}, rand.New(rand.NewPCG(i, 78)), false
			count := func(path string, refused bool) {
				s.Count(attribution.PartOf(seed, "GET", path, len("/items")), refused)
			}
			count("/items/first", true)
			for j := range 200 {
				count(fmt.Sprint("/items/before", j), false)
			}
			for j := range 20000 {
				if dice.IntN(3) > 0 {
					count(fmt.Sprint("/items/", j), false)
					continue
				}
				if spent = dice.Float64() < often || spent && dice.Float64() < .8; spent {
					count("/items/hot", true)
				} else {
					count("/items/hot", false)
				}
			}
			hot := attribution.PartOf(seed, "GET", "/items/hot", len("/items"))
			if s.Found().Split != attribution.All && s.Own(hot) {
				found++
			}
		}
		if found < 18 {
			t.Errorf("spent by one answer in %v, a limit of one path was found %d times in 20, want 18", 1/often, found)
		}
	}
}

// Answers are counted only near refusals, and of so many parts only.
func TestPartsCostLittle(t *testing.T) {
	seed := maphash.MakeSeed()
	var s attribution.Parts
	for i := range 10000 {
		s.Count(attribution.PartOf(seed, "GET", fmt.Sprint("/items/", i/2), len("/items")), i%100 == 0)
	}
	if n := attribution.PartsSize(&s); n > 7<<10 {
		t.Errorf("parts take %d bytes, want at most 7 KB", n)
	}
	n := 0
	for !s.Quiet() {
		s.Count(attribution.PartOf(seed, "GET", "/items/1", len("/items")), false)
		n++
	}
	if n > 300 {
		t.Errorf("answers are counted until %d were served in a row, want at most 300", n)
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
