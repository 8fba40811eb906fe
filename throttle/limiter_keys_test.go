package throttle

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

func limiterOf(t testing.TB, c LimiterConfig) *Limiter {
	t.Helper()
	l, err := NewLimiter(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func budgetsOf(texts map[string]string) map[string]Budget {
	m := make(map[string]Budget)
	for key, text := range texts {
		m[key] = MustParseBudget(text)
	}
	return m
}

// allowed is how many of n units key may have at once.
func allowed(l *Limiter, key string, n int) (count int) {
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
		l := limiterOf(t, LimiterConfig{
			Default: MustParseBudget("1/m"),
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
	say := func(string) Budget { return Budget{} }
	for _, test := range []struct {
		name string
		c    LimiterConfig
		want []string
	}{
		{"two stars", LimiterConfig{Budgets: budgetsOf(map[string]string{"a**": "1/s"})}, []string{`Budgets["a**"]`, "two * in a row mean the same as one"}},
		{"two patterns of one length", LimiterConfig{Budgets: budgetsOf(map[string]string{"a:*": "1/s", "*:b": "2/s"})}, []string{`Budgets["a:*"]`, `Budgets["*:b"]`}},
		{"a Default that is never used", LimiterConfig{Default: MustParseBudget("1/s"), Budget: say}, []string{"Default: 1/s and Budget are both set"}},
		{"a pool", LimiterConfig{Budgets: budgetsOf(map[string]string{"k": "1/s, pool p"})}, []string{`Budgets["k"].Pool: "p"`}},
		{"no budget", LimiterConfig{Budgets: map[string]Budget{"k*": {Rates: []Rate{{}}}}}, []string{`Budgets["k*"].Rates[0].Limit: 0`}},
	} {
		_, err := NewLimiter(test.c)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q in it", test.name, err, want)
			}
		}
	}
	for _, pair := range [][2]string{{"a*", "b*"}, {"*a", "*b"}, {"x*y", "x*z"}, {"ab*", "*ba*c"}} {
		c := LimiterConfig{Budgets: budgetsOf(map[string]string{pair[0]: "1/s", pair[1]: "2/s"})}
		if _, err := NewLimiter(c); err != nil {
			t.Errorf("%q: %v, want none: no key is named by both", pair, err)
		}
	}
}

// bothName is true exactly of patterns for which there is a key.
func TestPatternsThatNameOneKey(t *testing.T) {
	var texts []string
	for n := range 5 {
		for i := range 1 << (2 * n) {
			text := ""
			for j := range n {
				text += string("ab*c"[i>>(2*j)&3])
			}
			if !strings.Contains(text, "**") {
				texts = append(texts, text)
			}
		}
	}
	matches := func(pattern, key string) bool {
		if !strings.Contains(pattern, "*") {
			return pattern == key
		}
		g, err := newGlob(pattern, nil)
		if err != nil {
			t.Fatal(err)
		}
		return g.match(key)
	}
	var keys []string
	for _, text := range texts { // what patterns of four have in common, if anything, is no longer than both
		keys = append(keys, strings.ReplaceAll(text, "*", "c"), strings.ReplaceAll(text, "*", ""))
	}
	for i := 0; i < len(texts); i += 3 {
		for j := 1; j < len(texts); j += 7 {
			a, b := texts[i], texts[j]
			if one := fmt.Sprint(bothName(a, b)); one != fmt.Sprint(bothName(b, a)) {
				t.Fatalf("%q, %q: %s one way only", a, b, one)
			}
			if bothName(a, b) {
				continue
			}
			for _, key := range keys {
				if matches(a, key) && matches(b, key) {
					t.Fatalf("%q and %q both name %q", a, b, key)
				}
			}
		}
	}
	for _, test := range []struct {
		a, b string
		want bool
	}{{"*", "", true}, {"a*", "*b", true}, {"a*", "b*", false}, {"a", "a", true}, {"a", "b", false}, {"a*c", "ab*", true}, {"*ab", "*b", true}, {"ab", "a", false}, {"a*a", "a", false}} {
		if got := bothName(test.a, test.b); got != test.want {
			t.Errorf("%q, %q: %t", test.a, test.b, got)
		}
	}
}

// Budget is asked once for a key as long as that is kept, and its budgets hold.
func TestBudgetsThatAreData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		l := limiterOf(t, LimiterConfig{
			Budgets: budgetsOf(map[string]string{"free": "1/m"}),
			Budget: func(key string) Budget {
				asked++
				_, text, _ := strings.Cut(key, " ")
				b, err := ParseBudget(text)
				if err != nil {
					return Budget{Rates: []Rate{{Limit: -1}}}
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
		var refused *Error
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
		l := limiterOf(t, LimiterConfig{MaxKeys: 1, Budget: func(string) Budget {
			if bad {
				panic("no plan")
			}
			return MustParseBudget("2/m burst 2")
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
		if got := allowed(l, "other", 5); got != 2 || l.keys.Len() != 1 {
			t.Errorf("%d of 5 for another key, %d keys kept: the place is still held", got, l.keys.Len())
		}
	})
}

// Each key has a domain of its own. Those that are taken together share one, and
// others do not get into it by that; keys without room are in the shared one.
func TestKeysHaveDomainsOfTheirOwn(t *testing.T) {
	l := limiterOf(t, LimiterConfig{Default: MustParseBudget("100/s burst 100"), MaxKeys: 6})
	of := func(key string) *queue.Domain {
		e, _ := l.lock(key)
		defer e.Unlock()
		return e
	}
	for i, key := range []string{"a", "b", "c", "d", "e", "f"} {
		l.Try(key, nil)
		for _, other := range []string{"a", "b", "c", "d", "e", "f"}[:i] {
			if of(key) == of(other) {
				t.Errorf("%s and %s share a domain", key, other)
			}
		}
	}
	for range 3 {
		for _, keys := range [][]string{{"a", "b"}, {"c", "b", "c"}, {"d", "e"}} {
			if _, err := l.TakeAll(t.Context(), keys, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if a, d := of("a"), of("d"); of("b") != a || of("c") != a || of("e") != d || a == d || of("f") == a || of("f") == d {
		t.Error("not just those that are taken together share a domain")
	}
	if of("beyond") != l.domains.Shared || l.Stats().Overflow == 0 {
		t.Error("a key without room is not in the shared domain")
	}
}

// A key that was idle when room was needed is not dropped if something was spent on
// it just then, also if nobody holds it any more.
func TestAKeyIsNotDroppedOnceSpent(t *testing.T) {
	l := limiterOf(t, LimiterConfig{Default: MustParseBudget("1/h burst 1"), MaxKeys: 1})
	var between func()
	l.keys = table.New(1, l.fresh, func(k *kept, now time.Time) bool {
		idle := l.idle(k, now)
		if f := between; f != nil && idle && k.rule != nil {
			between = nil
			f()
		}
		return idle
	})
	for name, take := range map[string]func(){
		"without holding it": func() { l.Try("k", nil) },
		"while held": func() {
			entry, e, _ := l.lockHeld("k")
			e.Unlock()
			l.Try("k", nil)
			entry.Release()
		},
	} {
		l.Look("k", nil)
		between = take
		for range 5 { // the first clears the mark of use
			l.Look("other", nil)
		}
		if between != nil {
			t.Fatalf("%s: nobody asked whether the key is idle", name)
		}
		if l.Try("k", nil).Allowed {
			t.Errorf("%s: its unit was spent twice", name)
		}
		l.Reset("k")
	}
}

// TestAKeyIsThreeLinesOfMemory: a processor fetches 64 bytes at a time, and a grant
// waits for those. An entry of three lines begins with one; a little more, and it
// would lie across four.
func TestAKeyIsThreeLinesOfMemory(t *testing.T) {
	if n := unsafe.Sizeof(table.Entry[kept]{}); n > 192 {
		t.Errorf("a key takes %d bytes, want at most 192", n)
	}
}
