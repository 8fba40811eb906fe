package breaker

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
)

// Tests in this file were written for changes of the code that no other test
// noticed; docs/testing-weir.md says how they are found.

// A Door or Meter that stands alone does not claim that nothing was sent.
func TestAloneMarksSent(t *testing.T) {
	cs := circuits(t, Config{})
	h := &host{answer: down}
	for name, rt := range map[string]http.RoundTripper{"door": cs.Door(h), "meter": cs.Meter(h)} {
		if _, err := get(rt, site); !errors.Is(err, errReset) || errors.Is(err, notsent.Err) {
			t.Errorf("%s: %v; want the base's error, which proves nothing", name, err)
		}
	}
}

// What is no pattern is refused and named.
func TestSetHostRefusesWhatIsNoPattern(t *testing.T) {
	cs := circuits(t, Config{})
	for _, pat := range []string{"", "a b", "*.*.example", "a.example/path"} {
		if err := cs.SetHost(pat, Config{}); err == nil || !strings.HasPrefix(err.Error(), "breaker: ") {
			t.Errorf("%q: %v", pat, err)
		}
	}
}

// A limit that is spent says nothing about the host, whatever the status.
func TestThrottledServerErrors(t *testing.T) {
	for code, want := range map[string]Outcome{
		"ThrottlingException": Ignore, "ConcurrentLimitExceeded": Ignore, "ServiceUnavailable": Failure,
	} {
		r := httptest.NewRequest("GET", site, nil)
		if got := outcomeOf(t, Config{}, r, answerWith(503, "X-Amzn-ErrorType", code)); got != want {
			t.Errorf("503 %s: got %v, want %v", code, got, want)
		}
	}
}

// Stats leaves out slow calls that have left the window.
func TestSlowCallsLeaveStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cs := circuits(t, Config{Window: 10 * time.Second, SlowCall: time.Second})
		rt := cs.Meter(&host{answer: func(r *http.Request) (*http.Response, error) {
			time.Sleep(2 * time.Second)
			return status(200)(r)
		}})
		get(rt, site)
		if list := cs.Stats().Circuits; len(list) != 1 || list[0].Slow != 1 {
			t.Fatalf("stats %+v, want one slow call", list)
		}
		time.Sleep(11 * time.Second)
		for _, c := range cs.Stats().Circuits {
			if c.Slow != 0 {
				t.Errorf("stats %+v eleven seconds later", c)
			}
		}
	})
}

// The signal by which a throttle takes a wait over has a text of its own, in
// case it is seen.
func TestYieldText(t *testing.T) {
	if got := new(yield).Error(); !strings.HasPrefix(got, "breaker: ") {
		t.Errorf("text %q", got)
	}
}

// Shards are told apart where they show.
func TestShardsShowApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cs := circuits(t, Config{Shard: func(r *http.Request) string { return r.URL.Path }})
		rt := cs.Meter(&host{answer: down})
		for range 5 {
			get(rt, site+"a")
			get(rt, site+"b")
		}
		list := cs.Stats().Circuits
		if len(list) != 2 || list[0].Shard == list[1].Shard || len(list[0].Shard) != 8 {
			t.Errorf("stats %+v, want two circuits with names of their own", list)
		}
	})
}

// The hook is told what an operator does, and of a verdict of Classify.
func TestReasonsOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saw []Change
		cs := circuits(t, Config{
			Consecutive:   1,
			Classify:      func(*http.Response, error) Outcome { return Failure },
			OnStateChange: func(c Change) { saw = append(saw, c) },
		})
		rt := cs.Meter(&host{answer: status(200)})
		get(rt, site)
		cs.Force("a.example", Open)
		cs.Release("a.example")
		for range 20 {
			get(rt, site)
		}
		if len(saw) < 2 || saw[0].Reason != "forced open by hand" || saw[1].Reason != "released by hand" || saw[1].To != Closed {
			t.Fatalf("changes %+v", saw)
		}
		if last := saw[len(saw)-1]; last.To != Open || cs.State("a.example") != Open {
			t.Errorf("twenty answers that Classify calls failures: %+v", saw)
		}
	})
}

// A refusal is temporary.
func TestRefusalIsTemporary(t *testing.T) {
	if e := new(Error); !e.Temporary() || e.Timeout() {
		t.Errorf("temporary %v, timeout %v", e.Temporary(), e.Timeout())
	}
}

// A header value with a control character is the caller's mistake.
func TestControlCharacters(t *testing.T) {
	for value, want := range map[string]Outcome{"x\x7f": Ignore, "x\x1f": Ignore, "x\x80": Failure, "x y": Failure} {
		r := httptest.NewRequest("GET", site, nil)
		r.Header["A"] = []string{value}
		if got := outcomeOf(t, Config{}, r, failing(errReset)); got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
}

// An answer whose judge panics is closed; one that is handed on is not.
func TestPanicOfClassifyClosesAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := testnet.NewBody("x")
		cs := circuits(t, Config{Classify: func(*http.Response, error) Outcome { panic("classify") }})
		rt := cs.Meter(&host{answer: func(r *http.Request) (*http.Response, error) { return testnet.Answer(r, 200, nil, body), nil }})
		func() {
			defer func() { recover() }()
			get(rt, site)
		}()
		if body.Closes() != 1 {
			t.Errorf("closed %d times", body.Closes())
		}
	})
}

// The error of a fallback that failed comes out.
func TestErrorOfFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("no copy either")
		cs := circuits(t, Config{Fallback: func(*http.Request, error) (*http.Response, error) { return nil, gone }})
		cs.Force("a.example", Open)
		if _, err := get(cs.Door(&host{answer: down}), site); !errors.Is(err, gone) {
			t.Errorf("refused: %v, want the fallback's error", err)
		}
	})
}
