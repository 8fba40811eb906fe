package breaker

import (
	"cmp"
	"fmt"
	"net/http"
	"time"
)

// Config says when a host's circuit opens and for how long. The zero Config
// is a cautious breaker that is on.
type Config struct {
	// Disable keeps circuits from opening by themselves. Force still works.
	Disable bool

	// Window is how far back calls count for FailureRate and SlowRate, in
	// tenths that roll on. It is at least twice as long as an attempt may
	// take; weir.New sees to that. Zero: DefaultWindow.
	Window time.Duration

	// MinCalls is how many calls must have counted in the Window before a
	// rate means anything. Zero: 20.
	MinCalls int

	// FailureRate is the share of failures among the calls of the Window
	// from which on the circuit opens: above 0, at most 1. It also decides
	// the vote of probes, and how long a run of failures may be is then
	// Consecutive alone. Zero: failures that look like chance do not open the
	// circuit, as the package's documentation has it; 0.5 if Consecutive is negative.
	FailureRate float64

	// Consecutive is how many failures in a row without any answer (refused
	// connections, resets, silence) open the circuit, whatever MinCalls and
	// FailureRate say; four times as many failures of any kind in a row do so
	// as well. A host that lately failed at random is allowed more of both, unless
	// FailureRate is set. Zero: 5. Negative: neither does.
	Consecutive int

	// SlowCall is how long a call may take from the wire to the headers
	// before it counts as slow, beside counting as success or failure. Zero:
	// slowness does not count.
	SlowCall time.Duration

	// SlowRate is the share of slow calls from which on the circuit opens:
	// above 0, at most 1. Zero: 1.
	SlowRate float64

	// OpenFor is the shortest time from the opening to the first probe, and
	// from one probe that failed to the next. It is longer by up to a fifth, at
	// random, and shorter only if MaxOpenFor leaves no room for that. A Retry-After
	// of the answer that opened the circuit raises it, up to MaxOpenFor. Zero:
	// 250 ms, or MaxOpenFor if that is shorter.
	OpenFor time.Duration

	// MaxOpenFor is the longest time between two probes if any requests come at
	// all. One of a hundred requests that are turned away (or made to wait) is
	// sent as a probe, but no two within OpenFor, and the first one of an outage
	// after 5 s at the latest. So many processes together send a dead host one in
	// a hundred of their requests. How long it takes until a host is found to work
	// again depends on the traffic and not on the outage: half a second at 200
	// calls a second, 5 s at 20, up to MaxOpenFor below two. Programs that make few
	// calls may set it to some seconds. Set it to OpenFor to probe by the clock
	// alone. Zero: 60 s, or OpenFor if that is longer.
	MaxOpenFor time.Duration

	// Probes is how many good probes close a half-open circuit. They are sent one
	// at a time; after a good one the next follows at once. If the first probe
	// fails, or more than six fail for each good one, the circuit opens again.
	// With a FailureRate it opens when so many have failed that their share
	// reaches FailureRate, or when a probe fails and none of the last five calls
	// was good (of the last Consecutive, if that is fewer). A probe that is
	// ignored, lost, or ends in a panic does not count, and another is sent
	// instead. If a probe has no answer after OpenFor, the next one is sent beside
	// it; each further one waits twice as long. Zero: 3.
	Probes int

	// Patience is how long one request may wait for a circuit that is not
	// closed, counted from when it first had to, if its deadline allows. New
	// requests wait at the Door, those on their way when the circuit opened at the
	// Meter, and running retry loops before their next attempt, which then costs
	// neither one of the request's attempts nor allowance. Loops also wait a moment
	// when the last calls have failed, from two on if so many are no chance; when
	// the host has failed Consecutive times in a row, that costs them nothing
	// either. So their attempts are not used up before the circuit opens. If an
	// outage is shorter than the callers' deadlines by a second or so, no request
	// that may be repeated fails because of it, except the very first if calls are
	// few.
	//
	// Requests that wait are sent in the order in which they came, first as
	// probes. When the circuit has closed, they are sent at a third of the rate at
	// which they came, at least ten a second, or faster if the time of one would
	// otherwise end before its turn. One whose time runs out may end an open
	// period that has grown, as a probe, at most once a second and never before
	// the server's Retry-After. At most 10000 wait for one circuit.
	//
	// Zero: refuse at once, except in four cases, in which a request waits, but
	// never longer than its deadline. First, the host comes and goes: it failed
	// before for 10 s or less, not by timeouts, and has worked since then for no
	// more than ten times as long. A request then waits until the host has been
	// away for twice as long as the time before, and for 20 s at most. Second, the
	// host was silent only to callers with shorter deadlines than this one's.
	// Third, the host is only suspected of silence. Fourth, nobody came for a second
	// or more, and the request comes within 100 ms of one that became a probe. It
	// then waits until as many probes as Probes have had time to be answered, 250 ms
	// each or as long as the slowest answer lately took, and is refused when the
	// first one fails. In the last three cases a request waits for half a Window at
	// most, which is 30 s in a weir.Transport with the default attempt timeout. All
	// cases but the third need a Config without Fallback and FailureRate. The
	// package's documentation says what silence is. Requests that wait so cause no
	// more probes. 1 ns: always refuse at once.
	Patience time.Duration

	// RetriesOnly makes a circuit that is not closed refuse retries and hedges
	// only. First attempts pass and serve as probes. It needs a retry layer
	// between Door and Meter, and cannot be used together with Patience.
	RetriesOnly bool

	// Shard names the part of a host that a request goes to, for example its first
	// path segment. Each part has a circuit of its own, so that one bad part does
	// not stop the rest. Shard is called once by the Door and once per attempt by
	// the Meter, and must return the same each time. At most 256 shards of a host
	// have circuits; requests to others pass. A shard's name never shows, only
	// eight hex digits of a MAC of it. Nil: one circuit per host.
	Shard func(*http.Request) string

	// Classify judges how an attempt ended, given what its base returned; it
	// does not touch the body. Default leaves it to the table in the
	// package's documentation. Nil: the table.
	Classify func(*http.Response, error) Outcome

	// Fallback answers for a request that the Door or the Meter refused, and,
	// while the circuit is not closed, for one that ended in an error or in a
	// 5xx of the host, as probes may: from a cache, from another host, with an
	// empty answer. It gets the request as the Door got it, its body closed
	// (GetBody opens another), and the error; for an answer a *StatusError. A
	// refused request was not sent; any other may have been processed.
	//
	// A response goes to the caller. So does an error, unless the host gave an
	// answer: then that one does, and so does what there was before if both are
	// nil. Fallback is called once per request, by the Door on the way out, never
	// for a request whose caller has cancelled it; one whose deadline has passed
	// can still be answered from memory. Nil: what there was.
	Fallback func(*http.Request, error) (*http.Response, error)

	// FallbackOn says for which other requests Fallback answers, whatever the
	// circuit's state. It is called with the answer of each, whose body it must
	// not touch, or with its error. OnFailure returns true for any error and any
	// 5xx. Nil: for no others.
	FallbackOn func(*http.Response, error) bool

	// OnStateChange is called for each change of a circuit, in the order of
	// changes. It runs on the goroutine of the request that caused the change, or
	// of the call of Force, Release or SetHost. No lock is held, so it may call
	// back into the Circuits. Nil: not called.
	OnStateChange func(Change)
}

// DefaultWindow is Config.Window's default. weir.New raises it to twice the
// attempt timeout where that is longer.
const DefaultWindow = 30 * time.Second

const (
	defaultOpenFor    = 250 * time.Millisecond
	defaultMaxOpenFor = 60 * time.Second
	minWindow         = 10 * time.Millisecond
	minOpenFor        = time.Millisecond
	maxDuration       = 100000 * time.Hour // leaves room to calculate
	maxCount          = 1 << 24
)

// settings is a Config whose defaults are resolved. A pointer to one is also
// its identity: a circuit whose settings are no longer its host's is replaced.
type settings struct {
	Config
	classic bool // FailureRate decides, not chance
}

func resolve(c Config) (*settings, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.Window = cmp.Or(c.Window, DefaultWindow)
	c.MinCalls = cmp.Or(c.MinCalls, 20)
	classic := c.FailureRate != 0 || c.Consecutive < 0
	if classic {
		c.FailureRate = cmp.Or(c.FailureRate, 0.5)
	}
	c.Consecutive = cmp.Or(c.Consecutive, 5)
	c.SlowRate = cmp.Or(c.SlowRate, 1)
	c.Probes = cmp.Or(c.Probes, 3)
	switch {
	case c.OpenFor == 0 && c.MaxOpenFor == 0:
		c.OpenFor, c.MaxOpenFor = defaultOpenFor, defaultMaxOpenFor
	case c.OpenFor == 0:
		c.OpenFor = min(defaultOpenFor, c.MaxOpenFor)
	case c.MaxOpenFor == 0:
		c.MaxOpenFor = max(defaultMaxOpenFor, c.OpenFor)
	}
	return &settings{c, classic}, nil
}

func (c *Config) check() error {
	for _, f := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{
		{"Window", c.Window, minWindow},
		{"SlowCall", c.SlowCall, 0},
		{"OpenFor", c.OpenFor, minOpenFor},
		{"MaxOpenFor", c.MaxOpenFor, minOpenFor},
		{"Patience", c.Patience, 0},
	} {
		if f.value != 0 && f.value < f.least || f.value < 0 || f.value > maxDuration {
			return fmt.Errorf("breaker: %s %v is not between %v and %v", f.name, f.value, f.least, maxDuration)
		}
	}
	for name, n := range map[string]int{"MinCalls": c.MinCalls, "Consecutive": c.Consecutive, "Probes": c.Probes} {
		if n > maxCount || n < 0 && name != "Consecutive" {
			return fmt.Errorf("breaker: %s %d is not between 0 and %d", name, n, maxCount)
		}
	}
	for name, rate := range map[string]float64{"FailureRate": c.FailureRate, "SlowRate": c.SlowRate} {
		if !(rate >= 0 && rate <= 1) {
			return fmt.Errorf("breaker: %s %v is not between 0 and 1", name, rate)
		}
	}
	if c.OpenFor != 0 && c.MaxOpenFor != 0 && c.OpenFor > c.MaxOpenFor {
		return fmt.Errorf("breaker: OpenFor %v is longer than MaxOpenFor %v", c.OpenFor, c.MaxOpenFor)
	}
	if c.RetriesOnly && c.Patience > 0 {
		return fmt.Errorf("breaker: RetriesOnly and Patience (%v) are both set; with RetriesOnly no first attempt waits", c.Patience)
	}
	if c.FallbackOn != nil && c.Fallback == nil {
		return fmt.Errorf("breaker: FallbackOn is set, but Fallback is nil")
	}
	if c.SlowRate != 0 && c.SlowCall == 0 {
		return fmt.Errorf("breaker: SlowRate is %v, but SlowCall is 0, so no call counts as slow", c.SlowRate)
	}
	return nil
}
