package throttle

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Rate is one rule: at most Limit units in any window of length Per. Units are
// requests unless Unit says otherwise.
//
// A Rate is a shape and a promise in one. The shape is a token bucket: Burst
// units may go back to back, then they follow at Limit/Per. The promise is a
// window that slides with every unit and is never exceeded, neither at the
// start nor across any border. It holds its beginning but not its end: a unit of
// 12:00:00 makes room at 12:01:00 where Per is a minute. Limits up to 128 are
// counted exactly (up to 64 with a Store). Larger ones are counted in sub-windows
// of Per/64 and on the safe side: a saturated caller gets at least 98 % of Limit,
// and memory does not depend on Limit. A [Transport] counts a unit until Per after
// the server has seen it, so that its callers get at least 90 %.
//
// A cost above Burst but within Limit is let in when the bucket is full and
// paid off by those after it; a cost above Limit never fits. The zero Rate is
// not valid.
type Rate struct {
	Limit  int           // units per window; at least 1
	Per    time.Duration // length of the window; more than zero, at most 10 years
	Burst  int           // at most that many back to back; zero: Limit/10, at least 1. Burst == Limit spends freely; Burst 1 is a leaky bucket
	Bucket int           // instead of Burst: a plain token bucket of this size, as some APIs have (40 and 2/s): at most Bucket + Limit*W/Per in any window W. A cost above Bucket is let in when the bucket is full and paid off by those after it. Zero: none
	Unit   string        // what is counted: "tokens", "bytes", ...; zero, like "requests": requests

	// Align makes windows start at multiples of Per of this place's clock (a
	// daily quota that resets at midnight there), counted from Monday,
	// January 1 of year 1, as time.Truncate does. A day on which clocks change
	// is as long as it is there. Nil: windows slide.
	Align *time.Location

	// Even spreads what is left of a window of Align over what is left of its
	// time: 2400 a day that begin at noon go at 200 an hour, and so do 1200 that
	// are left then. It replaces Burst. With a Store that is so for all processes
	// together. False: units go as they come.
	Even bool

	// WarmUp eases a cold host in: after idling, the rate climbs from a third
	// to full over this time, one unit after the other, as in Guava's
	// SmoothWarmingUp. It replaces Burst. Zero: none.
	WarmUp time.Duration
}

// Budget is what a host, a route or a key may spend. A request is sent when each
// of its Rates has room and fewer than InFlight requests are under way. The zero
// Budget is unlimited. Its text form is that of [ParseBudget].
type Budget struct {
	Rates    []Rate // all must have room: 5/s and 100000/h
	InFlight int    // requests at a time, of all processes that share a Store; a place is held until the response body is closed or read to its end. Zero: no limit
	Pool     string // budgets of the same pool name are one budget, across hosts; "": its own
}

// Cost is what one request draws on its budgets: units by name. "requests"
// absent means 1, any other unit absent means 0; a nil Cost is one request.
// Values must not be negative.
type Cost map[string]int64

const (
	requests = meter.Requests
	longest  = 10 * 365 * 24 * time.Hour // of a Per; keeps sums of instants far from overflow
)

// of returns how many of unit c draws.
func (c Cost) of(unit string) int64 { return meter.CostOf(c, unit) }

// check returns an error that names the first unit, in no special order, whose
// cost is negative.
func (c Cost) check() error {
	for unit, n := range c {
		if n < 0 {
			return fmt.Errorf("throttle: cost of %d %s is negative", n, unit)
		}
	}
	return nil
}

// unit is r.Unit with its default.
func (r Rate) unit() string { return unitName(r.Unit) }

// unitName is u, or what "" means.
func unitName(u string) string {
	if u == "" {
		return requests
	}
	return u
}

// burst is r.Burst with its default.
func (r Rate) burst() int {
	switch {
	case r.Bucket > 0:
		return r.Bucket
	case r.Burst > 0:
		return r.Burst
	case r.WarmUp > 0, r.Even:
		return 1
	}
	return max(1, r.Limit/10)
}

// spec is r as the rooms below count it.
func (r Rate) spec() meter.Spec {
	return meter.Spec{Limit: r.Limit, Per: r.Per, Burst: r.burst(), Bucket: r.Bucket > 0, Unit: r.unit(), Align: r.Align, Even: r.Even, WarmUp: r.WarmUp}
}

// check returns an error that names the field and its value.
func (r Rate) check() error {
	switch {
	case r.Limit < 1:
		return fmt.Errorf("Limit: %d is less than 1", r.Limit)
	case r.Per <= 0:
		return fmt.Errorf("Per: %v is not positive", r.Per)
	case r.Per > longest:
		return fmt.Errorf("Per: %v is more than 10 years", r.Per)
	case r.Burst < 0:
		return fmt.Errorf("Burst: %d is negative", r.Burst)
	case r.Burst > r.Limit:
		return fmt.Errorf("Burst: %d exceeds the limit of %d; a bucket may hold more", r.Burst, r.Limit)
	case r.Bucket < 0:
		return fmt.Errorf("Bucket: %d is negative", r.Bucket)
	case r.Bucket > 0 && r.Burst > 0:
		return fmt.Errorf("Bucket: %d and Burst: %d are both set; a rate has one of them", r.Bucket, r.Burst)
	case r.Bucket > 0 && r.Align != nil:
		return fmt.Errorf("Bucket: %d and Align: %v are both set; a bucket has no windows that could be aligned", r.Bucket, r.Align)
	case r.Even && r.Align == nil:
		return fmt.Errorf("Even: it needs Align, because a sliding window has no end; Burst 1 spaces units evenly without Align")
	case r.Even && (r.Burst > 1 || r.WarmUp > 0):
		return fmt.Errorf("Even: it cannot be used together with a burst (here %d) or a WarmUp (here %v)", r.burst(), r.WarmUp)
	case r.WarmUp < 0:
		return fmt.Errorf("WarmUp: %v is negative", r.WarmUp)
	case r.WarmUp > longest:
		return fmt.Errorf("WarmUp: %v is more than 10 years", r.WarmUp)
	case r.WarmUp > 0 && (r.Burst > 1 || r.Bucket > 0):
		return fmt.Errorf("WarmUp: %v and a burst of %d are both set; a rate with WarmUp has no burst", r.WarmUp, r.burst())
	}
	return checkUnit(r.Unit)
}

// checkUnit refuses what is not a word, and what looks like requests but would
// be a unit that no request draws, so that nothing were limited.
func checkUnit(unit string) error {
	for _, near := range [...]string{"req", "reqs", "request", requests} {
		if unit != requests && strings.EqualFold(unit, near) {
			return fmt.Errorf("Unit: %q is not the unit of requests: leave the unit out to count requests", unit)
		}
	}
	return checkWord("Unit", unit)
}

// check returns an error that names the field and its value.
func (b Budget) check() error {
	for i, r := range b.Rates {
		if err := r.check(); err != nil {
			return fmt.Errorf("Rates[%d].%w", i, err)
		}
	}
	if b.InFlight < 0 {
		return fmt.Errorf("InFlight: %d is negative", b.InFlight)
	}
	if b.InFlight > math.MaxInt32 {
		return fmt.Errorf("InFlight: %d is more than %d", b.InFlight, math.MaxInt32)
	}
	return nil
}

// checkWord reports whether s can stand in a budget's text as a bare word.
func checkWord(field, s string) error {
	if s != "" && !isWord(s) {
		return fmt.Errorf("%s: %q is not a word of letters, digits and -._", field, s)
	}
	return nil
}

// zero reports whether b limits nothing.
func (b Budget) zero() bool { return len(b.Rates) == 0 && b.InFlight == 0 }

// clone returns a copy that shares no memory with b.
func (b Budget) clone() Budget {
	b.Rates = slices.Clone(b.Rates)
	return b
}

// equal reports whether b and c limit the same.
func (b Budget) equal(c Budget) bool {
	return b.InFlight == c.InFlight && b.Pool == c.Pool && slices.EqualFunc(b.Rates, c.Rates, func(r, s Rate) bool {
		same := r.Align == s.Align || r.Align != nil && s.Align != nil && r.Align.String() == s.Align.String()
		r.Align, s.Align = nil, nil
		r.Unit, s.Unit = r.unit(), s.unit()
		return r == s && same
	})
}
