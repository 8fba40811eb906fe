package breaker

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestConfigErrors(t *testing.T) {
	for _, test := range []struct {
		c    Config
		want string // field and value
	}{
		{Config{Window: -time.Second}, "Window -1s"},
		{Config{Window: time.Millisecond}, "Window 1ms"},
		{Config{Window: math.MaxInt64}, "Window 2562047h47m16.854775807s"},
		{Config{MinCalls: -1}, "MinCalls -1"},
		{Config{MinCalls: 1 << 30}, "MinCalls 1073741824"},
		{Config{FailureRate: -0.5}, "FailureRate -0.5"},
		{Config{FailureRate: 1.5}, "FailureRate 1.5"},
		{Config{FailureRate: math.NaN()}, "FailureRate NaN"},
		{Config{Consecutive: 1 << 30}, "Consecutive 1073741824"},
		{Config{SlowCall: -1}, "SlowCall -1ns"},
		{Config{SlowCall: 1, SlowRate: 2}, "SlowRate 2"},
		{Config{SlowRate: 0.5}, "SlowRate 0.5 without SlowCall"},
		{Config{OpenFor: -1}, "OpenFor -1ns"},
		{Config{OpenFor: time.Microsecond}, "OpenFor 1µs"},
		{Config{MaxOpenFor: -1}, "MaxOpenFor -1ns"},
		{Config{OpenFor: time.Minute, MaxOpenFor: time.Second}, "OpenFor 1m0s"},
		{Config{Probes: -1}, "Probes -1"},
		{Config{Patience: -1}, "Patience -1ns"},
		{Config{Patience: time.Second, RetriesOnly: true}, "Patience (1s)"},
	} {
		_, err := NewCircuits(test.c)
		if err == nil || !strings.HasPrefix(err.Error(), "breaker: ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
		cs := circuits(t, Config{})
		if err := cs.SetHost("a.example", test.c); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "a.example") {
			t.Errorf("SetHost: got %v, want %q", err, test.want)
		}
	}
}

func TestConfigDefaults(t *testing.T) {
	for _, test := range []struct{ in, want Config }{
		{Config{}, Config{OpenFor: 250 * time.Millisecond, MaxOpenFor: time.Minute}},
		{Config{OpenFor: 2 * time.Minute}, Config{OpenFor: 2 * time.Minute, MaxOpenFor: 2 * time.Minute}},
		{Config{MaxOpenFor: 100 * time.Millisecond}, Config{OpenFor: 100 * time.Millisecond, MaxOpenFor: 100 * time.Millisecond}},
	} {
		got := circuits(t, test.in).settings("")
		if got.OpenFor != test.want.OpenFor || got.MaxOpenFor != test.want.MaxOpenFor {
			t.Errorf("%v and %v", got.OpenFor, got.MaxOpenFor)
		}
		if got.Window != DefaultWindow || got.MinCalls != 20 || got.FailureRate != 0 || got.classic || got.Consecutive != 5 || got.SlowRate != 1 || got.Probes != 3 {
			t.Errorf("%+v", got)
		}
	}
	for _, c := range []Config{{FailureRate: .3}, {Consecutive: -1}} {
		got := circuits(t, c).settings("")
		if want := max(c.FailureRate, .5*float64(-min(c.Consecutive, 0))); !got.classic || got.FailureRate != want {
			t.Errorf("%+v: FailureRate %v", c, got.FailureRate)
		}
	}
}

// What lies on a bound is allowed.
func TestConfigBounds(t *testing.T) {
	for _, c := range []Config{
		{Window: minWindow}, {Window: maxDuration}, {SlowCall: 1, SlowRate: 1}, {OpenFor: minOpenFor}, {MaxOpenFor: minOpenFor},
		{OpenFor: time.Second, MaxOpenFor: time.Second}, {MinCalls: maxCount}, {Probes: maxCount}, {Consecutive: maxCount}, {Consecutive: -1},
		{FailureRate: 1}, {Patience: maxDuration}, {RetriesOnly: true},
	} {
		if _, err := NewCircuits(c); err != nil {
			t.Errorf("%+v: %v", c, err)
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

func TestSetHostChangesAHostsCircuit(t *testing.T) {
	cs := circuits(t, Config{MinCalls: 1})
	for pat, n := range map[string]int{"*.example": 2, "*.b.example": 3, "a.example": 4, "127.0.0.1:8080": 5} {
		if err := cs.SetHost(pat, Config{MinCalls: n}); err != nil {
			t.Fatal(err)
		}
	}
	if err := cs.SetHost("A.EXAMPLE.", Config{MinCalls: 6}); err != nil {
		t.Errorf("the same pattern again: %v", err)
	}
	for host, want := range map[string]int{"c.test": 1, "x.example": 2, "x.b.example": 3, "a.example": 6, "127.0.0.1:8080": 5, "127.0.0.1": 1} {
		if got := cs.settings(host).MinCalls; got != want {
			t.Errorf("%s: got %d, want %d", host, got, want)
		}
	}
	for _, pat := range []string{"", "a b c", "GET a.example", "a.example/v1", "a..b", "http://a.example"} {
		if err := cs.SetHost(pat, Config{}); err == nil || !strings.HasPrefix(err.Error(), "breaker: ") {
			t.Errorf("%q: %v", pat, err)
		}
	}
}
