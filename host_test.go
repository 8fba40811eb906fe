package weir_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// TestTheMostSpecificHostPatternDecides: the most specific pattern that matches a host decides about all of
// its layers. What it does not set is Config's, not another pattern's.
func TestTheMostSpecificHostPatternDecides(t *testing.T) {
	c := weir.Config{
		Retry:   retry.Config{MaxAttempts: 4},
		Breaker: breaker.Config{Consecutive: 2},
		Hosts: map[string]weir.Host{
			"*.one.example":   {Retry: &retry.Config{MaxAttempts: 2}},
			"api.one.example": {Breaker: &breaker.Config{Disable: true}},
			"*.two.example":   {Breaker: &breaker.Config{Disable: true}},
			"api.two.example": {Retry: &retry.Config{MaxAttempts: 3}},
		},
	}
	for host, want := range map[string]struct {
		attempts int
		state    breaker.State
	}{
		"elsewhere.example": {2, breaker.Open}, // of 4
		"www.one.example":   {2, breaker.Open},
		"api.one.example":   {4, breaker.Closed},
		"www.two.example":   {4, breaker.Closed},
		"api.two.example":   {2, breaker.Open}, // of 3
	} {
		t.Run(host, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					n++
					return nil, io.ErrUnexpectedEOF
				}), c))(t)
				if resp, err := rt.RoundTrip(get(t, "http://"+host+"/")); err == nil {
					t.Error(resp.Status)
				}
				if got := rt.Circuits().State(host); n != want.attempts || got != want.state {
					t.Errorf("%d attempts, then %v; want %d, %v", n, got, want.attempts, want.state)
				}
			})
		})
	}
}

// TestTimeoutsCountInTheirHostsWindow: attempts that time out count in the window of their host,
// by whatever pattern either is set.
func TestTimeoutsCountInTheirHostsWindow(t *testing.T) {
	long, short := &retry.Config{AttemptTimeout: 10 * time.Minute}, &breaker.Config{Window: time.Minute}
	for name, tt := range map[string]struct {
		c    weir.Config
		want string // in the error; "": none
	}{
		"both of one host":        {weir.Config{Hosts: map[string]weir.Host{"a.example": {Retry: long, Breaker: short}}}, "twice"},
		"the window is Config's":  {weir.Config{Breaker: *short, Hosts: map[string]weir.Host{"a.example": {Retry: long}}}, `Hosts["a.example"]`},
		"the timeout is Config's": {weir.Config{Retry: *long, Hosts: map[string]weir.Host{"a.example": {Breaker: short}}}, "twice"},
		"of two patterns":         {weir.Config{Hosts: map[string]weir.Host{"*.example": {Retry: long}, "a.example": {Breaker: short}}}, ""},
		"for ever":                {weir.Config{Retry: retry.Config{AttemptTimeout: 1 << 62}}, ""},
		"for centuries":           {weir.Config{Retry: retry.Config{AttemptTimeout: 1 << 61}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := weir.New(testnet.Func(stub), tt.c)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestHostTimeoutsCount: two attempts in a row that time out are both in the
// window, whatever other patterns say about the timeout.
func TestHostTimeoutsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}), weir.Config{Retry: retry.Config{MaxAttempts: 1}, Hosts: map[string]weir.Host{
			"*.example": {Retry: &retry.Config{MaxAttempts: 1, AttemptTimeout: 10 * time.Minute}},
			"a.example": {Breaker: &breaker.Config{MinCalls: 2, Consecutive: -1}},
		}}))(t)
		for i, want := range []breaker.State{breaker.Closed, breaker.Open} {
			if resp, err := rt.RoundTrip(get(t, "http://a.example/")); err == nil {
				t.Fatal(resp.Status)
			}
			if got := rt.Circuits().State("a.example"); got != want {
				t.Errorf("after %d timeouts it is %v, want %v", i+1, got, want)
			}
		}
	})
}

// TestHostsNamedTwice: of two settings for one host neither could be relied on.
func TestHostsNamedTwice(t *testing.T) {
	c := weir.Config{Hosts: map[string]weir.Host{
		"api.example.com":  {Retry: &retry.Config{MaxAttempts: 1}},
		"API.example.com.": {Retry: &retry.Config{MaxAttempts: 5}},
	}}
	if _, err := weir.New(testnet.Func(stub), c); err == nil || !strings.Contains(err.Error(), "API.example.com.") {
		t.Errorf("got %v, want an error that names both", err)
	}
}

// SetHost may name one layer alone. The others go by Config.
func TestSetHostOfOneLayerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			n++
			return nil, io.ErrUnexpectedEOF
		}), weir.Config{Retry: retry.Config{MaxAttempts: 4}, Breaker: breaker.Config{Consecutive: 2}}))(t)
		if err := rt.SetHost("a.example", weir.Host{Throttle: &throttle.HostConfig{MaxWait: -1}}); err != nil {
			t.Fatal(err)
		}
		rt.Throttle().Pause("a.example", time.Now().Add(time.Second))
		if resp, err := rt.RoundTrip(get(t, "http://a.example/")); err == nil || n != 0 {
			t.Errorf("%d attempts at a paused host that may not wait: %v, %v", n, resp, err)
		}
		rt.Throttle().Resume("a.example")
		if resp, err := rt.RoundTrip(get(t, "http://a.example/")); err == nil || n != 2 || rt.Circuits().State("a.example") != breaker.Open {
			t.Errorf("%d attempts, then the circuit is %v; want 2 of 4, and it opens: %v", n, rt.Circuits().State("a.example"), resp)
		}
	})
}

// SetHost changes what a host has of its own while requests go, for this pattern
// alone: the circuits of others stay as they are. What a layer does not take
// changes none.
func TestSetHostChangesOnePatternAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c := weir.Config{
			Retry: retry.Config{MaxAttempts: 4}, Breaker: breaker.Config{Consecutive: 2, MaxOpenFor: time.Hour, OpenFor: time.Hour},
			Hosts: map[string]weir.Host{"down.example": {Breaker: &breaker.Config{Consecutive: 1, OpenFor: time.Hour, MaxOpenFor: time.Hour}}},
		}
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			n++
			return nil, io.ErrUnexpectedEOF
		}), c))(t)
		attempts := func(host string) int {
			n = 0
			if resp, err := rt.RoundTrip(get(t, "http://"+host+"/")); err == nil {
				t.Error(resp.Status)
			}
			return n
		}
		attempts("down.example")
		for _, h := range []weir.Host{
			{Throttle: &throttle.HostConfig{MaxPause: -1}},
			{Retry: &retry.Config{MaxAttempts: -1}, Throttle: &throttle.HostConfig{MaxWait: -1}},
			{Breaker: &breaker.Config{FailureRate: 2}, Retry: &retry.Config{MaxAttempts: 1}},
			{Breaker: &breaker.Config{Window: time.Second}, Retry: &retry.Config{MaxAttempts: 1}},
		} {
			if err := rt.SetHost("a.example", h); err == nil || !strings.Contains(err.Error(), `weir: SetHost "a.example": `) {
				t.Errorf("%+v: %v", h, err)
			}
		}
		if got := attempts("a.example"); got != 2 {
			t.Errorf("%d attempts after settings that were refused, want 2 of 4: the circuit opens", got)
		}
		if err := rt.SetHost("*.example", weir.Host{Breaker: &breaker.Config{Disable: true}, Throttle: &throttle.HostConfig{MaxWait: -1}}); err != nil {
			t.Fatal(err)
		}
		if got := rt.Circuits().State("down.example"); got != breaker.Open {
			t.Errorf("another pattern's circuit is %v", got)
		}
		rt.Throttle().Pause("b.example", time.Now().Add(time.Second))
		if got := attempts("b.example"); got != 0 {
			t.Errorf("%d attempts at a paused host that may not wait", got)
		}
		rt.Throttle().Pause("down.example", time.Now().Add(time.Second)) // its own pattern says nothing of waits
		if err := rt.SetHost("DOWN.example.", weir.Host{}); err != nil {
			t.Fatal(err)
		}
		if got := attempts("down.example"); got != 2 {
			t.Errorf("%d attempts, want 2: Config's again, after the pause", got)
		}
		rt.Throttle().Resume("b.example")
		if got := attempts("b.example"); got != 4 {
			t.Errorf("%d attempts, want 4 where no circuit opens", got)
		}
	})
}
