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
