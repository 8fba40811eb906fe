package headers

import "time"

// Opt is a value that may be absent. Remaining 0, quota 0 and reset 0 all mean
// something, so zero cannot stand for "not said". The zero Opt is "not said".
type Opt[T any] struct {
	Value T
	Known bool // false: the server did not say, and Value is zero
}

// some returns a known Opt.
func some[T any](v T) Opt[T] { return Opt[T]{v, true} }

// Signal is everything one response says about the server's quotas. It holds
// facts only: what to do about them is the caller's policy. The zero Signal is
// a response that says nothing. A Signal is a plain value; its strings may
// share memory with the response's headers or body.
type Signal struct {
	// Throttled reports that the request was refused because of a quota, a
	// concurrency limit, overload or a ban: the status said so, or the status
	// together with a header or a code in the body.
	Throttled bool

	// Kind is why. It is NoKind when the response is not throttled.
	Kind Kind

	// RetryAfter is the wait that the server asked for. It is never derived
	// from a reset. It is never negative and saturates at the largest
	// Duration. It may be known on a response that is not throttled (several
	// servers send it with every answer).
	RetryAfter Opt[time.Duration]

	// ShouldRetry is what the server said about retrying at all, in
	// x-should-retry and its like.
	ShouldRetry Opt[bool]

	// Limits are the limits the response describes, at most 64, in an order
	// that depends only on the response. Numbers are finite and not negative.
	Limits []Limit
}

// Limit is one limit of the server, as far as the response describes it.
type Limit struct {
	Name      string // policy, bucket, resource or category; "" if unnamed. At most 256 bytes, printable
	Unit      string // what is counted: "requests", "tokens", "input_tokens", "bytes", ...; "" if it is not known
	Scope     string // whom it is counted for, as the server says it: "user", "global", ...; "" if not said
	Partition string // the partition key of the IETF drafts, or an account id; "" if not said

	Quota     Opt[float64] // units per window; fractions occur (0.0167 per second)
	Used      Opt[float64] // units spent in this window; may exceed Quota
	Remaining Opt[float64] // units left; may exceed Quota
	UsedRatio Opt[float64] // share of the quota that is spent; 1 is all of it, more is possible

	Window     Opt[time.Duration] // length of the window Quota is for
	Reset      Opt[time.Duration] // from the server's now, which is its Date header if there is one; never negative
	ResetMeans ResetMeans         // what happens at Reset
	Refill     Opt[float64]       // units per second, of token buckets
	Cost       Opt[float64]       // units that this request needs, as the server computes it: it can go when so many remain

	Source string // the header (or "body") that named this limit first
}

// Left is how many units are left: Remaining or, if that is not said, Quota less Used. known is
// false if the response says neither.
func (l *Limit) Left() (units float64, known bool) {
	if !l.Remaining.Known && l.Quota.Known && l.Used.Known {
		return max(0, l.Quota.Value-l.Used.Value), true
	}
	return l.Remaining.Value, l.Remaining.Known
}

// Exhausted reports that nothing is left, as far as the response says: then this limit is the
// reason of a refusal.
func (l *Limit) Exhausted() bool {
	if left, known := l.Left(); known {
		return left <= 0
	}
	return l.UsedRatio.Known && l.UsedRatio.Value >= 1
}

// Kind is why a request was refused. Waiting helps with Quota, Concurrency and
// Overload; it does not with Ban and NoAllowance.
type Kind uint8

const (
	NoKind      Kind = iota // not throttled, or the server gave no reason
	Quota                   // a number of units per time is spent
	Concurrency             // too many requests in flight, or a lock
	Overload                // the server has no capacity, whoever asks
	Ban                     // the client is shut out for ignoring earlier refusals
	NoAllowance             // there is no quota at all, or none until a bill is paid or a day ends
)

// String returns the kind in lower case, as "no allowance".
func (k Kind) String() string {
	names := [...]string{"unknown", "quota", "concurrency", "overload", "ban", "no allowance"}
	if int(k) < len(names) {
		return names[k]
	}
	return "invalid"
}

// ResetMeans is what is true once a limit's Reset has passed.
type ResetMeans uint8

const (
	Unknown  ResetMeans = iota // the server does not say
	Boundary                   // a new window begins, with the whole quota
	Full                       // the bucket is full; part of the quota is back earlier
	Next                       // the next unit, or some more quota, is there; not all of it
)

// String returns the meaning in lower case.
func (m ResetMeans) String() string {
	names := [...]string{"unknown", "boundary", "full", "next"}
	if int(m) < len(names) {
		return names[m]
	}
	return "invalid"
}
