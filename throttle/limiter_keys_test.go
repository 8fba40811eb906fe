package throttle_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
)

func limiterOf(t testing.TB, c throttle.LimiterConfig) *throttle.Limiter {
	t.Helper()
	l, err := throttle.NewLimiter(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func budgetsOf(texts map[string]string) map[string]throttle.Budget {
	m := make(map[string]throttle.Budget)
	for key, text := range texts {
		m[key] = throttle.MustParseBudget(text)
	}
	return m
}

// allowed is how many of n units key may have at once.
func allowed(l *throttle.Limiter, key string, n int) (count int) {
	for range n {
		if l.Try(key, nil).Allowed {
			count++
		}
	}
	return count
}

// A star in a key of Budgets stands for any text; each key that it names has a
// budget of its own, and of several that name it the longest counts.
func TestBudgetsByPatternOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOf(t, throttle.LimiterConfig{
			Default: throttle.MustParseBudget("1/m"),
			Budgets: budgetsOf(map[string]string{
				"*:reply":       "5/m burst 5",
				"vip:*":         "3/m burst 3",
				"vip:*:reply":   "7/m burst 7",
				"vip:ann:reply": "9/m burst 9",
				"a*b*c":         "2/m burst 2",
			}),
		})
		for _, test := range []struct {
			key  string
			want int
		}{
			{"ann:reply", 5}, {"bob:reply", 5}, {":reply", 5}, {"ann:reply:late", 1},
			{"vip:", 3}, {"vip:bob:post", 3}, {"vip:bob:reply", 7}, {"vip:ann:reply", 9}, {"vip:x:y:reply", 7},
			{"abc", 2}, {"aXbYc", 2}, {"abbc", 2}, {"ac", 1}, {"acb", 1}, {"other", 1}, {"", 1},
		} {
			if got := allowed(l, test.key, 20); got != test.want {
				t.Errorf("%q: %d of 20 let through, want %d", test.key, got, test.want)
			}
		}
	})
}

// What cannot be meant is an error that names the field and the value.
func TestLimiterRefusesWhatCannotBeMeant(t *testing.T) {
	say := func(string) throttle.Budget { return throttle.Budget{} }
	for _, test := range []struct {
		name string
		c    throttle.LimiterConfig
		want []string
	}{
		{"two stars", throttle.LimiterConfig{Budgets: budgetsOf(map[string]string{"a**": "1/s"})}, []string{`Budgets["a**"]`, "two * in a row mean the same as one"}},
		{"two patterns of one length", throttle.LimiterConfig{Budgets: budgetsOf(map[string]string{"a:*": "1/s", "*:b": "2/s"})}, []string{`Budgets["a:*"]`, `Budgets["*:b"]`}},
		{"a Default that is never used", throttle.LimiterConfig{Default: throttle.MustParseBudget("1/s"), Budget: say}, []string{"Default: 1/s and Budget are both set"}},
		{"a pool", throttle.LimiterConfig{Budgets: budgetsOf(map[string]string{"k": "1/s, pool p"})}, []string{`Budgets["k"].Pool: "p"`}},
		{"no budget", throttle.LimiterConfig{Budgets: map[string]throttle.Budget{"k*": {Rates: []throttle.Rate{{}}}}}, []string{`Budgets["k*"].Rates[0].Limit: 0`}},
	} {
		_, err := throttle.NewLimiter(test.c)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q in it", test.name, err, want)
			}
		}
	}
	for _, pair := range [][2]string{{"a*", "b*"}, {"*a", "*b"}, {"x*y", "x*z"}, {"ab*", "*ba*c"}} {
		c := throttle.LimiterConfig{Budgets: budgetsOf(map[string]string{pair[0]: "1/s", pair[1]: "2/s"})}
		if _, err := throttle.NewLimiter(c); err != nil {
			t.Errorf("%q: %v, want none: no key is named by both", pair, err)
		}
	}
}

// Two patterns of one length are refused exactly if there is a key that both name.
func TestPatternsThatNameOneKey(t *testing.T) {
	texts, keys := words("ab*c", 4), words("abc", 6) // what two patterns have in common, if anything, is no longer than both
	plain := throttle.MustParseBudget("1/s")
	var patterns []string
	named := make(map[string][]bool) // by pattern, of keys
	for _, text := range texts {
		if strings.Contains(text, "**") || !strings.Contains(text, "*") {
			continue
		}
		patterns = append(patterns, text)
		l := limiterOf(t, throttle.LimiterConfig{Budgets: map[string]throttle.Budget{text: plain}})
		names := make([]bool, len(keys))
		for i, key := range keys {
			b, err := l.BudgetOf(key)
			names[i] = err == nil && len(b.Rates) > 0
		}
		named[text] = names
	}
	length := func(pattern string) int { return len(strings.ReplaceAll(pattern, "*", "")) }
	for i, a := range patterns {
		for j := i % 3; j < i; j += 3 {
			b := patterns[j]
			if length(a) != length(b) {
				continue
			}
			key := ""
			for k := range keys {
				if named[a][k] && named[b][k] {
					key = keys[k]
					break
				}
			}
			both := key != "" || length(a) == 0
			for _, order := range [][2]string{{a, b}, {b, a}} {
				l := limiterOf(t, throttle.LimiterConfig{Budgets: map[string]throttle.Budget{order[0]: plain}})
				if err := l.SetBudget(order[1], plain); (err != nil) != both {
					t.Fatalf("%q after %q: %v; both name %q: %t", order[1], order[0], err, key, both)
				}
			}
		}
	}
}

// words are all texts of the given letters with at most n of them.
func words(letters string, n int) []string {
	all, last := []string{""}, []string{""}
	for range n {
		var next []string
		for _, text := range last {
			for _, letter := range letters {
				next = append(next, text+string(letter))
			}
		}
		all, last = append(all, next...), next
	}
	return all
}

// Budget is asked once for a key as long as that is kept, and its budgets hold.
func TestBudgetsThatAreData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		l := limiterOf(t, throttle.LimiterConfig{
			Budgets: budgetsOf(map[string]string{"free": "1/m"}),
			Budget: func(key string) throttle.Budget {
				asked++
				_, text, _ := strings.Cut(key, " ")
				b, err := throttle.ParseBudget(text)
				if err != nil {
					return throttle.Budget{Rates: []throttle.Rate{{Limit: -1}}}
				}
				return b
			},
		})
		for key, want := range map[string]int{"ann 3/m burst 3": 3, "bob 5/m burst 5": 5, "free": 1, "bob unlimited": 20} {
			if got := allowed(l, key, 20); got != want {
				t.Errorf("%q: %d of 20, want %d", key, got, want)
			}
		}
		if asked != 3 {
			t.Errorf("asked %d times for 3 keys that Budgets does not name", asked)
		}
		if d := l.Try("eve 0/m", nil); d.Allowed || d.RetryAfter != unknown {
			t.Errorf("without a budget: %+v", d)
		}
		_, err := l.Take(t.Context(), "eve 0/m", nil)
		var refused *throttle.Error
		if err == nil || errors.As(err, &refused) || !strings.Contains(err.Error(), "Budget.Rates[0].Limit: -1") {
			t.Errorf("got %v, want what Budget returned", err)
		}
		if n, err := l.TakeUpTo(t.Context(), "eve 0/m", "requests", 3); n != 0 || err == nil {
			t.Errorf("a part: %d, %v", n, err)
		}
	})
}

// A panic of Budget goes to the caller and holds nobody up.
func TestBudgetThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := true
		l := limiterOf(t, throttle.LimiterConfig{MaxKeys: 1, Budget: func(string) throttle.Budget {
			if bad {
				panic("no plan")
			}
			return throttle.MustParseBudget("2/m burst 2")
		}})
		func() {
			defer func() { recover() }()
			l.Try("k", nil)
		}()
		bad = false
		if got := allowed(l, "k", 5); got != 2 {
			t.Errorf("%d of 5 after a panic, want 2", got)
		}
		time.Sleep(2 * time.Minute)
		if got := allowed(l, "other", 5); got != 2 {
			t.Errorf("%d of 5 for another key, want 2", got)
		}
		if own, _ := throttle.KeysKept(l); own != 1 {
			t.Errorf("%d keys kept: the place is still held", own)
		}
	})
}

// TestAKeyIsThreeLinesOfMemory: a processor fetches 64 bytes at a time, and a grant
// waits for those. An entry of three lines begins with one; a little more, and it
// would lie across four.
func TestAKeyIsThreeLinesOfMemory(t *testing.T) {
	if n := throttle.KeySize; n > 192 {
		t.Errorf("a key takes %d bytes, want at most 192", n)
	}
}

// TestTheFirstKeyIsDroppedAsOthersAre: a Limiter finds its first key sooner, also one that was
// dropped to make room. What is spent of it counts all the same.
func TestTheFirstKeyIsDroppedAsOthersAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOf(t, throttle.LimiterConfig{MaxKeys: 1, Default: throttle.MustParseBudget("1/s burst 1")})
		for round := range 5 {
			for _, key := range []string{"a", "b"} { // the other one is idle, and is dropped
				if n := allowed(l, key, 2); n != 1 {
					t.Errorf("round %d: %s was allowed %d of 2 units", round, key, n)
				}
				time.Sleep(2 * time.Second)
			}
		}
	})
}
