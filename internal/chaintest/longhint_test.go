package chaintest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// longHints calls the paths ten times a second, of a host that refuses with status for as long
// as refuses says, by the last segment of the path. It returns how many were served, and how
// many were refused.
func longHints(t *testing.T, status int, paths func(i int) string, refuses func(last string, now time.Duration) time.Duration) (served, refused int) {
	h := hinting{status: status, refuses: refuses}
	h.call(t, 100*time.Millisecond, paths)
	for last := range h.came {
		served, refused = served+h.served[last], refused+h.refused[last]
	}
	return served, refused
}

// Refusals that ask for some time hold up what they are for, and little else: whether some
// kinds of request are refused, some URLs of one kind, or a few requests by chance.
func TestLongHintsHoldUpLittleElse(t *testing.T) {
	kinds := func(i int) string { return "/" + strconv.Itoa(i%8) }
	items := func(i int) string { return "/v1/items/" + strconv.Itoa(i%20) }
	beside := func(i int) string {
		if i%2 == 0 {
			return "/users/me"
		}
		return items(3 + i/2)
	}
	unique := func(i int) string { return "/v1/items/" + strconv.Itoa(i) }
	these := func(those ...string) func(string, *rand.Rand) bool {
		return func(last string, _ *rand.Rand) bool { return slices.Contains(those, last) }
	}
	from := func(least int) func(string, *rand.Rand) bool {
		return func(last string, _ *rand.Rand) bool { i, _ := strconv.Atoi(last); return i >= least }
	}
	chance := func(p float64) func(string, *rand.Rand) bool {
		return func(_ string, dice *rand.Rand) bool { return dice.Float64() < p }
	}
	for _, test := range []struct {
		name    string
		path    func(int) string
		refuses func(string, *rand.Rand) bool
		can     float64 // be served
		least   float64 // of that, on average: of URLs, all wait once if the other that asks is also refused, and a twentieth is lost
	}{
		{"one kind of eight", kinds, these("3"), 7. / 8, .99},
		{"two kinds of eight", kinds, these("3", "5"), 6. / 8, .99},
		{"five kinds of eight", kinds, these("1", "2", "3", "5", "6"), 3. / 8, .99},
		{"seven kinds of eight", kinds, from(1), 1. / 8, .99},
		{"fifteen kinds of 16", func(i int) string { return "/" + strconv.Itoa(i*5%16) }, from(1), 1. / 16, .99},
		{"one URL of 20", items, these("3"), .95, .99},
		{"three URLs of 20", items, these("3", "7", "8"), .85, .95},
		{"half of 20 URLs", items, from(10), .5, .7}, // ten in a row are refused before others ask
		{"one URL of 20, and another kind", beside, these("3"), .975, .99},
		{"one in a hundred, each its own URL", unique, chance(.01), .99, .9},
		{"one in ten, each its own URL", unique, chance(.1), .9, .8},
	} {
		for _, how := range []struct {
			status int
			hint   time.Duration
		}{{429, time.Minute}, {503, time.Minute}, {429, 5 * time.Second}} {
			t.Run(fmt.Sprint(test.name, ", ", how.status, ", ", how.hint), func(t *testing.T) {
				runs := testnet.Drawn(5, 2)
				total := 0
				for seed := range uint64(runs) {
					synctest.Test(t, func(t *testing.T) {
						dice := rand.New(rand.NewPCG(seed, 60))
						served, _ := longHints(t, how.status, test.path, func(last string, _ time.Duration) time.Duration {
							if test.refuses(last, dice) {
								return how.hint
							}
							return 0
						})
						total += served
					})
				}
				share := float64(total) / float64(runs) / 6000 / test.can
				t.Logf("%.3f of what can be was served", share)
				testnet.Judge(t, share >= test.least, "%.3f of what can be was served, want %v", share, test.least)
			})
		}
	}
}

// A limit of all that asks for a long wait is not taken for one of some: its window is found,
// and few ask whether all have to wait.
func TestALongHintOfAllIsKeptByAll(t *testing.T) {
	runs := testnet.Drawn(4, 2)
	for _, status := range []int{429, 503} {
		for _, each := range []string{"/v1/items/%d", "/%d"} {
			served, refused := 0, 0
			for range runs {
				synctest.Test(t, func(t *testing.T) {
					left, window := 0, time.Duration(-1)
					s, r := longHints(t, status, func(i int) string { return fmt.Sprintf(each, i%8) }, func(_ string, now time.Duration) time.Duration {
						if now/time.Minute != window {
							window, left = now/time.Minute, 100
						}
						if left--; left < 0 {
							return time.Minute - now%time.Minute
						}
						return 0
					})
					served, refused = served+s, refused+r
				})
			}
			t.Logf("%d, %s: %d served, %d refused", status, each, served/runs, refused/runs) // 121 at most in 24 runs
			testnet.Judge(t, served >= runs*1000 && refused <= runs*150, "%d, %s: %d served, %d refused; want at least 1000, and at most 150", status, each, served/runs, refused/runs)
		}
	}
}

// A limit of all whose hints are longer than it takes is found all the same: each hint alone
// seems to be for what was refused only, but the limit explains the refusals.
func TestALimitWhoseHintsAreTooLongIsFound(t *testing.T) {
	const rate, size = 5, 20.
	runs := testnet.Drawn(4, 2)
	for _, status := range []int{429, 503} {
		for name, path := range map[string]string{"kinds": "/%d", "URLs": "/v1/items/%d"} {
			served, refused := 0, 0
			for seed := range uint64(runs) {
				synctest.Test(t, func(t *testing.T) {
					left, last := size, time.Duration(0)
					of8 := func(i int) string { return fmt.Sprintf(path, rand.New(rand.NewPCG(seed, uint64(i))).IntN(8)) }
					s, r := longHints(t, status, of8, func(_ string, now time.Duration) time.Duration {
						left, last = min(size, left+rate*(now-last).Seconds()), now
						if left < 1 {
							return 5 * time.Second
						}
						left--
						return 0
					})
					served, refused = served+s, refused+r
				})
			}
			share, each := float64(served)/float64(runs)/(600*rate+size), float64(refused)/float64(served)
			t.Logf("%d, %s: served %.2f of what can be, %.2f refused for each", status, name, share, each)
			testnet.Judge(t, share >= .95 && each <= .25, "%d, %s: served %.2f of what can be, and %.2f were refused for each; want .95 and at most .25", status, name, share, each)
		}
	}
}

// TestAKindThatIsNewIsAskedFor: a kind of request of which none was sent yet does not wait
// because others were refused, however many these are.
func TestAKindThatIsNewIsAskedFor(t *testing.T) {
	for _, spent := range []int{1, 2, 3, 5, 8} {
		synctest.Test(t, func(t *testing.T) {
			h := hinting{status: 429, refuses: func(last string, _ time.Duration) time.Duration {
				if i, _ := strconv.Atoi(last); i < spent {
					return time.Hour
				}
				return 0
			}}
			h.call(t, 100*time.Millisecond, func(i int) string {
				if n := i % 10; i < 1000 {
					return fmt.Sprint("/", n%spent)
				} else if n > 0 {
					return fmt.Sprint("/", n%(spent+1))
				}
				return fmt.Sprint("/", spent)
			})
			last := strconv.Itoa(spent)
			t.Logf("%d spent: %d of %d served, %v refused", spent, h.served[last], h.came[last], h.refused)
			if h.served[last] < h.came[last] {
				t.Errorf("%d spent: %d of %d requests of another kind were served", spent, h.served[last], h.came[last])
			}
		})
	}
}

// A URL that is locked, and says so as if it were a limit of its own, holds up no other; and a
// limit of all URLs that is stated in the same words is kept by all.
func TestALongHintThatStatesALimitHoldsUpLittleElse(t *testing.T) {
	nothing := func(_ string, _ int, h http.Header) { h.Set("X-Ratelimit-Remaining", "0") }
	for _, path := range []string{"/v1/items/%d", "/%d"} {
		synctest.Test(t, func(t *testing.T) {
			h := hinting{status: 429, says: nothing, refuses: func(last string, _ time.Duration) time.Duration {
				if last == "3" || last == "8" {
					return time.Minute
				}
				return 0
			}}
			h.call(t, 100*time.Millisecond, func(i int) string { return fmt.Sprintf(path, i%20) })
			served := 0
			for _, n := range h.served {
				served += n
			}
			if t.Logf("%s: %d served, %v refused", path, served, h.refused); served < 5300 { // of 5400
				t.Errorf("%s: %d of 5400 requests to others were served, want 5300", path, served)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			left, window := 0, time.Duration(-1)
			h := hinting{status: 429, says: nothing, refuses: func(_ string, now time.Duration) time.Duration {
				if now/time.Minute != window {
					window, left = now/time.Minute, 100
				}
				if left--; left < 0 {
					return time.Minute - now%time.Minute
				}
				return 0
			}}
			h.call(t, 100*time.Millisecond, func(i int) string { return fmt.Sprintf(path, i%8) })
			refused := 0
			for _, n := range h.refused {
				refused += n
			}
			if t.Logf("%s: %d refused", path, refused); refused > 140 { // in ten windows
				t.Errorf("%s: %d were refused, want at most 140", path, refused)
			}
		})
	}
}

// URLs of one kind whose limits are stated by refusals, under one name or each under its own,
// beside a Retry-After, hold up no other URL of their kind.
func TestALimitOfOneURLHoldsUpNoOther(t *testing.T) {
	for _, all := range [][]string{{"3"}, {"3", "8"}, {"1", "3", "5", "7", "9", "11", "13", "15"}} {
		for _, named := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				h := hinting{status: 429, says: func(last string, seconds int, h http.Header) {
					name := "default"
					if named {
						name = "item" + last
					}
					h.Set("Ratelimit-Policy", fmt.Sprintf("%q;q=100;w=60", name))
					h.Set("Ratelimit", fmt.Sprintf("%q;r=0;t=%d", name, seconds))
				}, refuses: func(last string, _ time.Duration) time.Duration {
					if slices.Contains(all, last) {
						return time.Minute
					}
					return 0
				}}
				h.call(t, 100*time.Millisecond, func(i int) string { return fmt.Sprint("/v1/items/", i%20) })
				came, served := 0, 0
				for last, n := range h.came {
					if !slices.Contains(all, last) {
						came, served = came+n, served+h.served[last]
					}
				}
				if t.Logf("%v, named %v: %d of %d served", all, named, served, came); served < came*99/100 {
					t.Errorf("%v, named %v: %d of %d requests to others were served, want 99 %%", all, named, served, came)
				}
			})
		}
	}
}
