package throttle_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
)

// pooling is a Transport whose partitions, named by the first segment of the
// path, share a pool of one request an hour on paths that end in /x. It keeps so
// many of each.
func pooling(t *testing.T, keys int) *throttle.Transport {
	return newTransport(t, newBase(nil), throttle.Config{
		MaxKeys: keys, MaxWait: -1,
		Budgets:   map[string]throttle.Budget{"h": throttle.MustParseBudget("1/m"), "h/*/x": throttle.MustParseBudget("1/h, pool p")},
		Partition: func(r *http.Request) string { part, _, _ := strings.Cut(r.URL.Path[1:], "/"); return part },
	})
}

// letThrough reports whether a request is let through.
func letThrough(t testing.TB, tr *throttle.Transport, path string) bool {
	resp, err := get(t, t.Context(), tr, "http://h/"+path)
	var e *throttle.Error
	switch {
	case err == nil:
		resp.Body.Close()
	case !errors.As(err, &e):
		t.Error(err)
	}
	return err == nil
}

// Partitions of a pool that have nothing in use make room for others, however
// many there were.
func TestIdlePartitionsOfAPoolMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := pooling(t, 3)
		for _, part := range strings.Split("abcdefghij", "") {
			if !letThrough(t, tr, part+"/x") {
				t.Errorf("%s is refused, though all others were idle", part)
			}
			time.Sleep(time.Hour)
		}
		for _, part := range []string{"k", "l", "m"} {
			if !letThrough(t, tr, part+"/x") {
				t.Errorf("%s shares with others, though there is room", part)
			}
		}
		if n := throttle.PoolsKept(tr); n > 3 {
			t.Errorf("%d partitions of the pool are kept, want 3", n)
		}
	})
}

// Partitions of a pool with something in use are kept. Those beyond share, until
// what they have drawn together is back.
func TestPartitionsOfAPoolAreNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
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
			time.Sleep(step.minute*time.Minute - time.Since(start))
			if got := letThrough(t, tr, step.part+"/x"); got != step.goes {
				t.Errorf("%s goes in minute %d: %v, want %v", step.part, step.minute, got, step.goes)
			}
		}
	})
}

// What one draws on who waits for something else is not forgotten meanwhile.
func TestAPoolThatIsWaitedBesideIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := pooling(t, 2) // the host's, and one
		if !letThrough(t, tr, "a/y") {
			t.Fatal("refused")
		}
		done := make(chan error)
		go func() {
			_, err := get(t, throttle.WithMaxWait(t.Context(), time.Hour), tr, "http://h/a/x")
			done <- err
		}()
		synctest.Wait()
		letThrough(t, tr, "b/x")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if letThrough(t, tr, "a/x") {
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
