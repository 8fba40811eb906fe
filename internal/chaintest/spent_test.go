package chaintest

import (
	"math"
	"math/rand/v2"
	"path"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// A spending is a limit on requests per window, which begins with the first request.
type spending struct {
	size  int
	per   time.Duration
	hints float64 // are so many times too long

	left int
	ends time.Duration
}

// take counts one request, or says how long to wait.
func (s *spending) take(now time.Duration) (wait time.Duration) {
	if now >= s.ends {
		s.left, s.ends = s.size, now+s.per
	}
	if s.left > 0 {
		s.left--
		return 0
	}
	return max(time.Millisecond, time.Duration(float64(s.ends-now)*s.hints))
}

// spendings draws the limits of a random server, by the last segment of paths: about half of
// what it serves draws on a limit, its own or one that several share.
func spendings(dice *rand.Rand) (kinds int, by map[string]*spending) {
	kinds = 2 + int(math.Exp(dice.Float64()*math.Log(22)))
	by = map[string]*spending{}
	shared := new(spending)
	for i := range kinds {
		s := shared
		if i == 0 || dice.IntN(2) == 0 {
			s = new(spending)
		}
		*s = spending{
			size:  int(math.Exp(dice.Float64() * math.Log(100))),
			per:   time.Duration(math.Exp(math.Log(5)+dice.Float64()*math.Log(700)) * float64(time.Second)),
			hints: []float64{.5, .9, 1, 1, 3}[dice.IntN(5)],
		}
		if last := strconv.Itoa(i); i < kinds-1 && dice.IntN(2) == 0 {
			by[last] = s
		}
	}
	return kinds, by
}

// A limit that is spent binds what draws on it, and nothing else: whatever some kinds of request,
// or some URLs of one kind, are told, all others are served.
func TestASpentLimitBindsOnlyWhatDrawsOnIt(t *testing.T) {
	for _, test := range []struct {
		below string
		lost  float64 // at most, of what draws on no limit
	}{{"/", .01}, {"/v1/items/", .06}} {
		came, served := 0, 0
		for seed := range uint64(testnet.Drawn(40, 16)) {
			synctest.Test(t, func(t *testing.T) {
				dice := rand.New(rand.NewPCG(seed, 78))
				kinds, by := spendings(dice)
				h := hinting{status: []int{429, 429, 503}[dice.IntN(3)], refuses: func(last string, now time.Duration) time.Duration {
					if s := by[last]; s != nil {
						return s.take(now)
					}
					return 0
				}}
				h.call(t, time.Duration(50+dice.IntN(300))*time.Millisecond, func(i int) string {
					return path.Join(test.below, strconv.Itoa(rand.New(rand.NewPCG(seed, uint64(i))).IntN(kinds)))
				})
				for last, n := range h.came {
					if by[last] == nil {
						came, served = came+n, served+h.served[last]
					}
				}
			})
		}
		lost := 1 - float64(served)/float64(came)
		t.Logf("%s: lost %.4f of %d", test.below, lost, came)
		testnet.Judge(t, lost <= test.lost, "%s: %.3f of what draws on no limit was lost, want at most %v", test.below, lost, test.lost)
	}
}
