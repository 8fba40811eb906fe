package breaker_test

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/breaker"
)

func TestConfigErrors(t *testing.T) {
	for _, test := range []struct {
		c    breaker.Config
		want string // field and value
	}{
		{breaker.Config{Window: -time.Second}, "Window -1s"},
		{breaker.Config{Window: time.Millisecond}, "Window 1ms"},
		{breaker.Config{Window: math.MaxInt64}, "Window 2562047h47m16.854775807s"},
		{breaker.Config{MinCalls: -1}, "MinCalls -1"},
		{breaker.Config{MinCalls: 1 << 30}, "MinCalls 1073741824"},
		{breaker.Config{FailureRate: -0.5}, "FailureRate -0.5"},
		{breaker.Config{FailureRate: 1.5}, "FailureRate 1.5"},
		{breaker.Config{FailureRate: math.NaN()}, "FailureRate NaN"},
		{breaker.Config{Consecutive: 1 << 30}, "Consecutive 1073741824"},
		{breaker.Config{SlowCall: -1}, "SlowCall -1ns"},
		{breaker.Config{SlowCall: 1, SlowRate: 2}, "SlowRate 2"},
		{breaker.Config{SlowRate: 0.5}, "SlowRate is 0.5, but SlowCall is 0"},
		{breaker.Config{OpenFor: -1}, "OpenFor -1ns"},
		{breaker.Config{OpenFor: time.Microsecond}, "OpenFor 1µs"},
		{breaker.Config{MaxOpenFor: -1}, "MaxOpenFor -1ns"},
		{breaker.Config{OpenFor: time.Minute, MaxOpenFor: time.Second}, "OpenFor 1m0s"},
		{breaker.Config{Probes: -1}, "Probes -1"},
		{breaker.Config{Patience: -1}, "Patience -1ns"},
		{breaker.Config{Patience: time.Second, RetriesOnly: true}, "Patience (1s)"},
	} {
		_, err := breaker.NewCircuits(test.c)
		if err == nil || !strings.HasPrefix(err.Error(), "breaker: ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
		cs := circuits(t, breaker.Config{})
		if err := cs.SetHost("a.example", test.c); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "a.example") {
			t.Errorf("SetHost: got %v, want %q", err, test.want)
		}
	}
}

// opensAfter is how many answers in a row open the circuit of a host of its own;
// 0: more than a hundred. Before them come as many good answers as told.
func opensAfter(cs *breaker.Circuits, name string, good int, bad answer) int {
	h := &host{answer: status(200)}
	rt := cs.Door(cs.Meter(h))
	for i := range good + 100 {
		if i == good {
			h.set(bad)
		}
		if get(rt, "http://"+name+"/"); cs.State(name) == breaker.Open {
			return i - good + 1
		}
	}
	return 0
}

// A field that is zero is the default that its comment names.
func TestConfigDefaults(t *testing.T) {
	slow := func(r *http.Request) (*http.Response, error) {
		time.Sleep(time.Second)
		return status(200)(r)
	}
	mixed := func() answer { // half fail, the first first
		n := 0
		return func(r *http.Request) (*http.Response, error) {
			n++
			return status([]int{200, 500}[n%2])(r)
		}
	}
	for _, test := range []struct {
		name string
		c    breaker.Config
		bad  answer
		want int
	}{
		{"Consecutive, without an answer", breaker.Config{}, down, 5},
		{"Consecutive, of any kind", breaker.Config{}, status(500), 20},
		{"FailureRate: half are taken for chance", breaker.Config{}, mixed(), 0},
		{"FailureRate, where Consecutive is off", breaker.Config{Consecutive: -1}, mixed(), 21},
		{"FailureRate of the user's", breaker.Config{FailureRate: .6}, mixed(), 0},
		{"MinCalls", breaker.Config{FailureRate: .3}, mixed(), 21},
		{"MinCalls where all fail", breaker.Config{Consecutive: -1}, down, 20},
		{"SlowRate", breaker.Config{SlowCall: time.Second}, slow, 20},
	} {
		bubble(t, func(t *testing.T) {
			if got := opensAfter(circuits(t, test.c), "a.example", 0, test.bad); got != test.want {
				t.Errorf("%s: opened after %d calls, want %d", test.name, got, test.want)
			}
		})
	}
	bubble(t, func(t *testing.T) { // all must be slow: one quick call among them is too many
		calls := 0
		second := func(r *http.Request) (*http.Response, error) {
			if calls++; calls == 2 {
				return status(200)(r)
			}
			return slow(r)
		}
		if n := opensAfter(circuits(t, breaker.Config{SlowCall: time.Second}), "a.example", 0, second); n < 27 {
			t.Errorf("SlowRate: opened after %d calls, while the second, which was quick, counts", n)
		}
	})
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		h.set(down)
		get(rt, site)
		time.Sleep(breaker.DefaultWindow*9/10 - 1)
		if got := cs.Stats().Circuits[0].Failures; got != 1 {
			t.Errorf("Window: %d failures are counted at its end, want 1", got)
		}
		time.Sleep(breaker.DefaultWindow/10 + 1)
		if got := cs.Stats().Circuits[0].Failures; got != 0 {
			t.Errorf("Window: %d failures are counted after it, want none", got)
		}
	})
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		open(t, cs, h, rt)
		h.set(status(200))
		for i, want := range []breaker.State{breaker.HalfOpen, breaker.HalfOpen, breaker.Closed} {
			if get(rt, site); cs.State("a.example") != want {
				t.Errorf("Probes: after %d good ones the circuit is %v, want %v", i+1, cs.State("a.example"), want)
			}
		}
	})
	for _, test := range []struct{ in, want breaker.Config }{
		{breaker.Config{}, breaker.Config{OpenFor: 250 * time.Millisecond, MaxOpenFor: time.Minute}},
		{breaker.Config{OpenFor: 2 * time.Minute}, breaker.Config{OpenFor: 2 * time.Minute, MaxOpenFor: 2 * time.Minute}},
		{breaker.Config{MaxOpenFor: 100 * time.Millisecond}, breaker.Config{OpenFor: 100 * time.Millisecond, MaxOpenFor: 100 * time.Millisecond}},
	} {
		var first, later [2]time.Duration // shortest and longest: until the first probe, and to the next if nobody comes
		note := func(at *[2]time.Duration, d time.Duration) {
			if at[1] = max(at[1], d); at[0] == 0 || d < at[0] {
				at[0] = d
			}
		}
		for range 40 {
			bubble(t, func(t *testing.T) {
				cs, h, rt := rig(t, test.in)
				h.set(down)
				for range 5 {
					get(rt, site)
				}
				_, err := get(rt, site)
				var e *breaker.Error
				if !errors.As(err, &e) {
					t.Fatal(err)
				}
				note(&first, e.RetryAfter)
				if d := time.Until(cs.Stats().Circuits[0].NotBefore); d > test.want.MaxOpenFor {
					t.Errorf("%+v: the first probe is to go after %v", test.in, d)
				}
				due(t, cs)
				h.set(status(200))
				get(rt, site)
				note(&later, time.Until(cs.Stats().Circuits[0].NotBefore))
			})
		}
		for _, x := range []struct {
			name string
			got  [2]time.Duration
			want time.Duration
		}{{"OpenFor", first, test.want.OpenFor}, {"MaxOpenFor", later, test.want.MaxOpenFor}} {
			least, most := x.want, x.want*6/5
			if x.want == test.want.MaxOpenFor {
				least, most = x.want*4/5, x.want
			}
			if x.got[0] < least || x.got[1] > most || x.got[1] < x.want*9/10 {
				t.Errorf("%+v: %s between %v and %v, want about %v", test.in, x.name, x.got[0], x.got[1], x.want)
			}
		}
	}
}

// What lies on a bound is allowed.
func TestConfigBounds(t *testing.T) {
	const (
		minWindow, minOpenFor = 10 * time.Millisecond, time.Millisecond
		maxDuration           = 100000 * time.Hour
		maxCount              = 1 << 24
	)
	for _, c := range []breaker.Config{
		{Window: minWindow}, {Window: maxDuration}, {SlowCall: 1, SlowRate: 1}, {OpenFor: minOpenFor}, {MaxOpenFor: minOpenFor},
		{OpenFor: time.Second, MaxOpenFor: time.Second}, {MinCalls: maxCount}, {Probes: maxCount}, {Consecutive: maxCount}, {Consecutive: -1},
		{FailureRate: 1}, {Patience: maxDuration}, {RetriesOnly: true},
	} {
		if _, err := breaker.NewCircuits(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// What is no pattern is refused and named.
func TestSetHostRefusesWhatIsNoPattern(t *testing.T) {
	cs := circuits(t, breaker.Config{})
	for _, pat := range []string{"", "a b", "*.*.example", "a.example/path"} {
		if err := cs.SetHost(pat, breaker.Config{}); err == nil || !strings.HasPrefix(err.Error(), "breaker: ") {
			t.Errorf("%q: %v", pat, err)
		}
	}
}

func TestSetHostChangesAHostsCircuit(t *testing.T) {
	after := func(n int) breaker.Config { return breaker.Config{MinCalls: n, FailureRate: 1, Consecutive: -1} }
	cs := circuits(t, after(1))
	for pat, n := range map[string]int{"*.example": 2, "*.b.example": 3, "a.example": 4, "127.0.0.1:8080": 5} {
		if err := cs.SetHost(pat, after(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := cs.SetHost("A.EXAMPLE.", after(6)); err != nil {
		t.Errorf("the same pattern again: %v", err)
	}
	for host, want := range map[string]int{"c.test": 1, "x.example": 2, "x.b.example": 3, "a.example": 6, "127.0.0.1:8080": 5, "127.0.0.1": 1} {
		if got := opensAfter(cs, host, 0, status(500)); got != want {
			t.Errorf("%s: got %d, want %d", host, got, want)
		}
	}
	for _, pat := range []string{"", "a b c", "GET a.example", "a.example/v1", "a..b", "http://a.example"} {
		if err := cs.SetHost(pat, breaker.Config{}); err == nil || !strings.HasPrefix(err.Error(), "breaker: ") {
			t.Errorf("%q: %v", pat, err)
		}
	}
}
