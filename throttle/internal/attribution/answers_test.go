package attribution_test

import (
	"math/rand/v2"
	"testing"

	"github.com/weirhttp/weir/throttle/internal/attribution"
)

// tallied is how a server answers requests to so many kinds in turn at random. spent says how
// likely a limit is spent, or stays so, and of which limit a kind is; negative: of none.
func tallied(dice *rand.Rand, kinds, answers int, limitOf func(kind int) int) []attribution.Answers {
	all, spent, after := make([]attribution.Answers, kinds), make([]bool, kinds), false
	for range answers {
		for i := range spent {
			if p := .1; dice.Float64() < p {
				spent[i] = dice.IntN(2) == 0
			}
		}
		k := dice.IntN(kinds)
		limit := limitOf(k)
		refused := limit >= 0 && spent[limit]
		all[k].Count(after, refused)
		after = refused
	}
	return all
}

// Some hundred answers tell whether a limit binds all kinds or only those that were refused, and
// whether each of all has its own. One of all is hardly ever taken for another.
func TestAnswersTellWhichKindsShareALimit(t *testing.T) {
	for _, test := range []struct {
		name    string
		limitOf func(kind int) int
		want    attribution.Split
		least   int // of a hundred servers
	}{
		{"one limit of all", func(int) int { return 0 }, attribution.All, 99},
		{"no limit", func(int) int { return -1 }, attribution.All, 100},
		{"one limit of three", func(k int) int { return min(0, 2-k) }, attribution.Few, 95},
		{"three limits of one kind each", func(k int) int {
			if k < 3 {
				return k
			}
			return -1
		}, attribution.Few, 95},
		{"a limit of each", func(k int) int { return k }, attribution.Each, 90},
	} {
		found := 0
		for seed := range uint64(100) {
			if attribution.SplitOf(tallied(rand.New(rand.NewPCG(seed, 5)), 8, 300, test.limitOf)) == test.want {
				found++
			}
		}
		if t.Logf("%s: %d of 100", test.name, found); found < test.least {
			t.Errorf("%s: found %d times in 100, want %d", test.name, found, test.least)
		}
	}
}

// One kind, or several of which none was refused, share what there is; and what was found before
// is evidence no more once others may share a limit with a kind.
func TestWhatIsNotKnownIsOfAll(t *testing.T) {
	var one attribution.Answers
	for range 50 {
		one.Count(true, true)
	}
	if attribution.SplitOf([]attribution.Answers{one}) != attribution.All || attribution.SplitOf(make([]attribution.Answers, 5)) != attribution.All {
		t.Error("a split of nothing")
	}
	if one.Begin(false); one.Refused() {
		t.Error("it began anew, and was refused")
	}
	if one.Begin(true); !one.Refused() {
		t.Error("it is one of the few, and was not refused")
	}
}

// A server that changes is judged anew after a few hundred answers, and no count overflows.
func TestTalliesForget(t *testing.T) {
	var k attribution.Answers
	k.Count(false, true)
	for range 1000 {
		k.Count(false, false)
	}
	if k.Refused() {
		t.Error("a thousand answers later the refusal still counts")
	}
	for range 1 << 17 {
		k.Count(true, true)
	}
	if !k.Refused() {
		t.Error("refusals are forgotten while they go on")
	}
}
