package throttle

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pooling is a Transport whose partitions, named by the first segment of the
// path, share a pool of one request an hour on paths that end in /x. It keeps so
// many of each.
func pooling(t *testing.T, keys int) *Transport {
	return newTransport(t, newBase(nil), Config{
		MaxKeys: keys, MaxWait: -1,
		Budgets:   map[string]Budget{"h": MustParseBudget("1/m"), "h/*/x": MustParseBudget("1/h, pool p")},
		Partition: func(r *http.Request) string { part, _, _ := strings.Cut(r.URL.Path[1:], "/"); return part },
	})
}

func (t *Transport) goes(tb testing.TB, path string) bool {
	resp, err := get(tb, tb.Context(), t, "http://h/"+path)
	var e *Error
	switch {
	case err == nil:
		resp.Body.Close()
	case !errors.As(err, &e):
		tb.Error(err)
	}
	return err == nil
}

// Partitions of a pool that have nothing in use make room for others, however
// many there were.
func TestIdlePartitionsOfAPoolMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := pooling(t, 3)
		for _, part := range strings.Split("abcdefghij", "") {
			if !tr.goes(t, part+"/x") {
				t.Errorf("%s is refused, though all others were idle", part)
			}
			time.Sleep(time.Hour)
		}
		for _, part := range []string{"k", "l", "m"} {
			if !tr.goes(t, part+"/x") {
				t.Errorf("%s shares with others, though there is room", part)
			}
		}
		if n := len(tr.pools); n > 3 {
			t.Errorf("%d partitions of the pool are kept, want 3", n)
		}
	})
}

// Partitions of a pool with something in use are kept. Those beyond share, until
// what they have drawn together is back.
func TestPartitionsOfAPoolAreNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := pooling(t, 3) // the host's, a's and b's
		for _, step := range []struct {
			minute time.Duration
			part   string
			goes   bool
		}{
			{0, "a", true}, {10, "b", true}, {20, "c", true}, {30, "d", false}, {40, "a", false}, {50, "c", false},
			{62, "e", true},  // in place of a
			{75, "c", false}, // though b, too, could make room
			{85, "c", true},
		} {
			time.Sleep(step.minute*time.Minute - time.Duration(tr.domains.Read()))
			if got := tr.goes(t, step.part+"/x"); got != step.goes {
				t.Errorf("%s goes in minute %d: %v, want %v", step.part, step.minute, got, step.goes)
			}
		}
	})
}

// What one draws on who waits for something else is not forgotten meanwhile.
func TestAPoolThatIsWaitedBesideIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := pooling(t, 2) // the host's, and one
		if !tr.goes(t, "a/y") {
			t.Fatal("refused")
		}
		done := make(chan error)
		go func() {
			_, err := get(t, WithMaxWait(t.Context(), time.Hour), tr, "http://h/a/x")
			done <- err
		}()
		synctest.Wait()
		tr.goes(t, "b/x")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if tr.goes(t, "a/x") {
			t.Error("two requests of one partition within an hour")
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
