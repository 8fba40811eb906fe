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
// # What a request goes through
//
// At the Door it is refused at once if its host is known to be broken; nothing
// was spent on it. Then it queues, in order of arrival within its priority, for
// room in everything that binds it: budgets that were configured, limits that
// the server stated, the rate at which the server was found to accept, and the
// pause that somebody else's 429 began. Units are taken at the moment it goes,
// from all of these or from none, so whoever gives up while waiting costs
// nothing, and a change re-plans all who wait. A wait that certainly cannot
// end before the deadline, or within MaxWait, fails at once and says how long it
// would be; one that is only estimated goes on until then.
//
// Only then does the clock of the attempt start. What came back is heard on the
// way out: what it says about quotas by the throttle, what it says about the
// host by the circuit, and retry decides whether the request may be sent again:
// only if it is idempotent, or carries an Idempotency-Key, or was certainly not
// processed; only if the wait fits; only if the host's allowance for retries
// pays for it. A retry keeps its place in the queue.
//
// # By default
//
// A host has no budget until it states or shows a limit. What it states in
// rate-limit headers is obeyed from the first answer on, until answers
// contradict it; a 429, or a 503 that says when to come back, pauses everyone
// who calls it; a fresh host is started slowly. Requests wait for budget at most 75 s, an attempt may take
// 30 s to its response headers, a request has three attempts, and retries are
// paid from an allowance per host, so that an outage is not amplified. Five
// failures in a row without any answer, twenty of any kind, or more in a row if
// the host fails at random, open its circuit.
//
// Every field of Config that is zero means such a default. The ones that are
// changed first:
//
//	Throttle.Budgets        what you know and the server does not say
//	Throttle.MaxWait        longer for a batch job; negative: refuse, never wait
//	Retry.MaxAttempts       1 where an SDK above has its own loop
//	Retry.AttemptTimeout    for answers that take longer than 30 s to begin, as
//	                        a language model's that is not streamed
//	Breaker.Patience        to wait for a broken host instead of failing
//	Hosts                   other settings for hosts that need them
//
// # Learning
//
// Limits that headers state, in whatever dialect (package
// [github.com/weirhttp/weir/headers]), become accounts beside the configured
// ones, in their own units, kept apart by credential: what adds the Authorization
// (oauth2.Transport) stands around a Transport, not below it, where its callers
// would look like one. throttle.Config.Credential says who asks if it is not that. Where a server says nothing but 429, its rate is found as
// TCP finds a link's. Nothing that is learned ever loosens what was configured,
// and all of it shows, with its reason in words, in [Transport.Stats],
// throttle.Config.OnLearn and on the page of package inspect.
//
// # Bodies and streams
//
// A response body belongs to the caller: streams stream, 101 stays writable,
// and closing it gives the request's place back. A request body is sent again
// only if net/http could do so (GetBody), or if Retry.BufferBody keeps it.
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
// and satisfies errors.Is(err, [ErrNotSent]) if nothing was sent at all. Their
// texts name hosts, never URLs, and hold no credentials.
//
// # Many processes
//
// Budgets live in this process until Throttle.Store names a place that others
// share: github.com/weirhttp/weir/redisstore, or filestore on one machine.
// [Transport.Close] gives back what was leased from there.
package weir
