package throttle_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// A kind of request of which some wait is not forgotten for others, however long they wait, nor is what
// was found of it: else those that come would be refused.
func TestAKindIsKeptWhileRequestsOfItWait(t *testing.T) {
	const runs = 7 // in one of ten another limit is taken for likelier, and more are refused
	var refused [runs]int
	for run := range refused {
		synctest.Test(t, func(t *testing.T) { refused[run] = refusedWhileOthersCome(t) })
	}
	if slices.Sort(refused[:]); refused[runs/2] > 3 {
		t.Errorf("of 16 calls so many were refused: %v; want none in most runs, or as many as show that the limit is what it was", refused)
	}
}

// refusedWhileOthersCome is how many of 16 calls are refused that a limit of their kind holds up, while
// requests of far more kinds come than are kept.
func refusedWhileOthersCome(t *testing.T) int {
	const per = 3 * time.Minute
	var mu sync.Mutex
	var last time.Time
	refused := 0
	tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		time.Sleep(20 * time.Millisecond)
		if !strings.HasPrefix(r.URL.Path, "/rare/") {
			return testnet.Answer(r, 200, nil, nil), nil
		}
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) < per {
			refused++
			return testnet.Answer(r, 429, nil, nil), nil
		}
		last = time.Now()
		return testnet.Answer(r, 200, nil, nil), nil
	}), throttle.Config{MaxWait: time.Hour})
	get := func(path string) { mustServe(t, tr, "http://h/"+path) }
	for i := range 10 { // so that it is found that this kind is limited, and that no other is
		get(fmt.Sprintf("rare/%d", i))
		get("other/x")
		get("other/x")
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() { get(fmt.Sprintf("rare/a%d", i)) })
	}
	synctest.Wait()
	mu.Lock()
	refused = 0
	mu.Unlock()
	for round := range 4 {
		time.Sleep(2 * time.Minute)
		if throttle.Waiting(t, tr) == 0 {
			t.Fatal("nobody waits")
		}
		for i := range 2 * throttle.MostKinds {
			get(fmt.Sprintf("more%d/x", i))
		}
		for i := range 3 {
			wg.Go(func() { get(fmt.Sprintf("rare/%d-%d", round, i)) })
		}
		synctest.Wait()
	}
	wg.Wait()
	return refused
}

// A host is not forgotten for others as long as a limit that it showed may bind, be it one of all its
// requests or of one kind.
func TestAHostIsKeptWhileALimitOfItBinds(t *testing.T) {
	for _, limited := range []string{"/", "/rare/"} {
		synctest.Test(t, func(t *testing.T) {
			const per = 3 * time.Minute
			last := time.Time{}
			tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
				time.Sleep(20 * time.Millisecond)
				if r.URL.Host != "h" || !strings.HasPrefix(r.URL.Path, limited) {
					return testnet.Answer(r, 200, nil, nil), nil
				}
				if time.Since(last) < per {
					return testnet.Answer(r, 429, nil, nil), nil
				}
				last = time.Now()
				return testnet.Answer(r, 200, nil, nil), nil
			}), throttle.Config{MaxWait: time.Hour, MaxKeys: 10})
			found := func() bool {
				h := statsOf(t, tr)
				return h.Host == "h" && slices.ContainsFunc(h.Learned, func(l throttle.LearnedLimit) bool { return l.Kind == throttle.LearnedRate })
			}
			for i := range 10 {
				mustServe(t, tr, fmt.Sprintf("http://h/rare/%d", i))
				mustServe(t, tr, "http://h/other/x")
			}
			if !found() {
				t.Fatalf("%s: no limit was found", limited)
			}
			time.Sleep(4 * time.Minute)
			for i := range 100 {
				mustServe(t, tr, fmt.Sprintf("http://h%d/x", i))
			}
			hosts := tr.Stats().Hosts
			if !slices.ContainsFunc(hosts, func(h throttle.HostStats) bool { return h.Host == "h" }) {
				t.Errorf("%s: the host was forgotten, of which a limit may bind", limited)
			}
		})
	}
}

// mustServe gets url until it is served.
func mustServe(t *testing.T, tr *throttle.Transport, url string) {
	t.Helper()
	for status := 0; status != 200; {
		if resp, err := testnet.Get(t, t.Context(), tr, url); err == nil {
			resp.Body.Close()
			status = resp.StatusCode
		}
	}
}
