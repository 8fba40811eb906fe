// Package weir is an http.RoundTripper for programs that call other people's
// HTTP APIs. It keeps to the budgets that are configured and to the quotas that
// servers state, in whatever dialect. A quota that nobody states it finds by a
// few refusals. It retries only what is safe to send twice, and leaves a broken
// host alone.
//
//	client, err := weir.NewClient(weir.Config{})
//
// is all that most programs need. A request passes five layers, and its answer
// passes them in the opposite order:
//
//	breaker.Door    refuses at once while the host's circuit is open
//	retry           attempts, delays, replaying the body
//	throttle        waits for room in every budget the request draws on
//	breaker.Meter   admits the attempt to the circuit and reports how it ended
//	retry.Wire      the attempt's clock, and proof of what was sent
//	base            http.Transport, or whatever was passed to New
//
// A budget is how much may be sent to a host, such as 5 requests a second and 20
// at a time. A circuit is what is known about whether a host works; while it is
// open, requests are refused without being sent. Each layer also works alone:
// [throttle.New],
// [retry.New] and [breaker.NewCircuits] wrap any http.RoundTripper, and
// [throttle.NewLimiter] keeps the same budgets without HTTP.
//
// # What a request goes through
//
// If its host is known to be broken, the Door refuses it at once, before it has
// spent any budget. Otherwise it queues, in order of arrival within its priority,
// until there is room in everything that binds it: budgets that were configured,
// limits that the server stated, the rate at which the server was found to
// accept, and a pause that another request's 429 began. It then takes what it
// costs from all of these at once. So a request that gives up while it waits
// costs nothing, and a change of a budget counts for all that wait. A request
// whose wait certainly cannot end before its deadline, or within MaxWait, fails
// at once, and the error says how long the wait would be. If the wait is only
// estimated, the request waits until then.
//
// Only then does the attempt's timeout start. When the answer comes back, the
// throttle reads what it says about quotas, the circuit counts whether the host
// works, and retry decides whether the request is sent again. That needs three
// things. The request is idempotent, has an Idempotency-Key, or was certainly
// not processed. The delay fits the deadline. The host's allowance, which pays
// for all retries to a host, is not used up. A retry keeps its place in the queue.
//
// # By default
//
// A host has no budget until it states or shows a limit. What it states in
// rate-limit headers is obeyed from the first answer on, until answers contradict
// it. A 429, or a 503 that says when to come back, pauses all requests to the
// host. A new host gets few requests at a time at first. A request waits at most
// 75 s for budget and has three attempts; each must have its response headers
// within 30 s. Retries are paid from an allowance per host, so that a host that
// is down is not flooded with them. Its circuit opens after five failures in a
// row without any answer, after twenty of any kind, or after more in a row if
// the host fails at random.
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
// [github.com/weirhttp/weir/headers]), bind in addition to configured budgets, in
// their own units. They are kept apart by credential: the Authorization header,
// or what throttle.Config.Credential returns. So put what adds that header
// (oauth2.Transport) around a Transport, not below it, where all callers would
// look like one. If a server says nothing but 429, its rate is found as TCP finds
// a link's: it rises until requests are refused, and then falls. Nothing that is
// learned ever loosens what was configured. [Transport.Stats],
// throttle.Config.OnLearn and the page of package inspect show all that was
// learned, and why.
//
// # Bodies and streams
//
// A response body is not read ahead: streams arrive as they are sent, the body of
// a 101 can be written to, and closing it frees the request's place. A request
// body is sent again only if net/http could do so (GetBody), or if
// Retry.BufferBody keeps it.
//
// # Errors
//
// If a server answered, its answer is returned, also the last 429 or 503. An
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
