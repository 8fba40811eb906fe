package throttle

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// These look inside: under no lock of a domain a user's code runs, so one that is shared
// by hosts shows at no call.

// TestHostsHaveDomainsOfTheirOwn: whoever holds the lock of a host holds up
// nobody who calls another, unless budgets tie them together. Partitions and
// credentials of a host are one with it.
func TestHostsHaveDomainsOfTheirOwn(t *testing.T) {
	tr := newTransport(t, newBase(nil), Config{Partition: firstPart, Budgets: map[string]Budget{
		"x.pool": MustParseBudget("1000/s, pool p"), "*.pool": MustParseBudget("1000/s, pool p"),
	}})
	for _, url := range []string{"http://a/", "http://a/p1", "http://a/p2", "http://b/", "http://x.pool/", "http://y.pool/p1"} {
		mustGet(t, tr, url).Body.Close()
	}
	a := homeOf(tr, "a").domain.Load()
	tr.each(func(r *record) {
		e := r.lock()
		defer e.Unlock()
		want := a
		switch {
		case strings.HasSuffix(r.host, ".pool"):
			want = tr.domains.Shared
		case r.host == "b":
			want = e
			if e == a || e == tr.domains.Shared {
				t.Error("a and b have one domain")
			}
		}
		if e != want {
			t.Errorf("%s %q is not in the domain it belongs to", r.host, r.part)
		}
	})
	a.Lock()
	tr.domains.Shared.Lock()
	mustGet(t, tr, "http://b/").Body.Close()
	mustGet(t, tr, "http://b/p1").Body.Close()
	mustGet(t, tr, "http://new/").Body.Close()
	tr.domains.Shared.Unlock()
	a.Unlock()
}

// TestPartitionsOutliveTheirHost: a host that is met anew has one domain with
// partitions that were kept.
func TestPartitionsOutliveTheirHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), Config{MaxKeys: 3, Partition: firstPart, Default: MustParseBudget("5/s burst 5")})
		mustGet(t, tr, "http://a/p1").Body.Close()
		first := homeOf(tr, "a")
		for i := range 20 {
			time.Sleep(time.Minute)
			mustGet(t, tr, fmt.Sprintf("http://h%d/", i)).Body.Close()
			mustGet(t, tr, fmt.Sprintf("http://h%d/", i)).Body.Close() // the table looks at others first
		}
		again := homeOf(tr, "a")
		if again == first {
			t.Fatal("the host was not forgotten")
		}
		mustGet(t, tr, "http://a/p1").Body.Close()
		part := tr.parts.Find("a\x00p1")
		defer part.Release()
		if part.Value.domain.Load() != again.domain.Load() || again.domain.Load() == tr.domains.Shared {
			t.Error("the partition and its host have two domains")
		}
	})
}

// firstPart is a partition for each first segment that begins with "p".
func firstPart(r *http.Request) string {
	if part, _, _ := strings.Cut(r.URL.Path[1:], "/"); strings.HasPrefix(part, "p") {
		return part
	}
	return ""
}

// TestAccountsAreOfTheirScope: those of a partition are its own, not its host's.
func TestAccountsAreOfTheirScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), Config{Budgets: map[string]Budget{"GET h/p1": MustParseBudget("5/s"), "GET h/p1/b": MustParseBudget("6/s")}, Partition: firstPart})
		for _, path := range []string{"p1", "p1/b"} {
			mustGet(t, tr, "http://h/"+path)
		}
		r, entry := tr.partition(homeOf(tr, "h"), "h", "p1")
		defer entry.Release()
		if len(r.own) != 2 {
			t.Fatalf("%d accounts", len(r.own))
		}
		for _, m := range r.own {
			if m.a.Group != &r.Group {
				t.Error("an account of another scope than its own")
			}
		}
	})
}

// TestTheClockOnTheWallIsKept where a budget looks at it, and nowhere else: no test in
// virtual time can set that clock.
func TestTheClockOnTheWallIsKept(t *testing.T) {
	for text, want := range map[string]bool{"7/s, 8/m": false, "1/s, 5/d align UTC": true} {
		b := MustParseBudget(text)
		for name, c := range map[string]Config{"by default": {Default: b}, "by pattern": {Budgets: map[string]Budget{"a": b}}} {
			if got := newTransport(t, newBase(nil), c).domains.Walls.Load(); got != want {
				t.Errorf("%s %s: %t, want %t", text, name, got, want)
			}
		}
		l := newKeys(t, LimiterConfig{Budgets: map[string]Budget{"a": b}})
		l.Look("a", nil)
		if got := l.domains.Walls.Load(); got != want {
			t.Errorf("%s of a key: %t, want %t", text, got, want)
		}
	}
}

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
