package throttle

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// These look inside: which keys share a lock shows at no call, nor can a call come just
// when a key is about to be dropped.

func newKeys(t *testing.T, c LimiterConfig) *Limiter {
	t.Helper()
	l, err := NewLimiter(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Each key has a domain of its own. Those that are taken together share one, and
// others do not get into it by that; keys without room are in the shared one.
func TestKeysHaveDomainsOfTheirOwn(t *testing.T) {
	l := newKeys(t, LimiterConfig{Default: MustParseBudget("100/s burst 100"), MaxKeys: 6})
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
	l := newKeys(t, LimiterConfig{Default: MustParseBudget("1/h burst 1"), MaxKeys: 1})
	var between func()
	l.keys = table.New(1, func(string) kept { return kept{} }, func(k *kept, now time.Time) bool {
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
