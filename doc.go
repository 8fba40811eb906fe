// Package weir is an http.RoundTripper for programs that call other people's
// HTTP APIs. It never sends more than it may, obeys what a server says about
// its quota in whatever dialect the server says it, retries only what is safe
// to retry, and leaves a broken host alone.
//
//	client, err := weir.NewClient(weir.Config{})
//
// is all that most programs need. A request walks five rooms in a straight
// line, and its answer walks back through the same rooms:
//
//	breaker.Door    refuses at once while the host's circuit is open
//	retry           attempts, delays, replaying the body
//	throttle        waits for room in every budget the request draws on
//	breaker.Meter   admits the attempt to the circuit and reports how it ended
//	retry.Wire      the attempt's clock, and proof of what was sent
//	base            http.Transport, or whatever was passed to New
//
// Each room is a package of its own and works alone: [throttle.New],
// [retry.New] and [breaker.NewCircuits] wrap any http.RoundTripper, and
// [throttle.NewLimiter] keeps the same budgets without HTTP.
//
// # By default
//
// A host has no budget until it states or shows a limit. What it states in
// rate-limit headers is obeyed from the first answer on; a 429, or a 503 that
// says when to come back, pauses everyone who calls it; a fresh host is
// started slowly. Requests wait for budget at most 75 s, an attempt may take
// 30 s to its response headers, a request has three attempts, and retries are
// paid from an allowance per host, so that an outage is not amplified. Five
// failures in a row without any answer, or half of at least twenty calls in
// the window, open a host's circuit.
//
// # Errors
//
// A response obtained is a response returned, also the last 429 or 503. An
// error is one of these, found by [errors.As] also through *url.Error:
//
//	*throttle.Error  the wait for budget would not fit: RetryAfter says it
//	*breaker.Error   the host's circuit is open: RetryAfter says for how long
//	*retry.Error     no response after n attempts; it wraps the last error
//
// and satisfies errors.Is(err, [ErrNotSent]) if nothing was sent at all.
package weir
