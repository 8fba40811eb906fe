// Package weir is an http.RoundTripper for programs that call other people's
// HTTP APIs. It keeps to the budgets that are configured, and to the quotas that
// servers state in their headers. If a server does not state its quota, weir finds
// it from a few refusals. It retries only what is safe to send twice, and leaves a
// broken host alone.
//
//	client, err := weir.NewClient(weir.Config{})
//
// is all that most programs need. A request passes five layers, and its answer
// passes them in the opposite order:
//
//	breaker.Door    refuses the request at once while the host's circuit is open
//	retry           makes the attempts, waits between them, sends the body again
//	throttle        waits until every budget of the request has room
//	breaker.Meter   counts how the attempt ended; refuses it if the circuit is open by then
//	retry.Wire      sets the attempt's timeouts and records what was sent
//	base            is http.Transport, or whatever was passed to New
//
// A budget is how much may be sent to a host, such as 5 requests a second and 20
// at a time. A circuit is a record of whether a host works; while it is open,
// requests are refused without being sent. An attempt is one sending of a request.
// Each layer also works alone: [throttle.New], [retry.New] and
// [breaker.NewCircuits] wrap any http.RoundTripper, and [throttle.NewLimiter] keeps
// the same budgets without HTTP.
//
// # What a request goes through
//
// If the host is known to be broken, the Door refuses the request at once, before
// it has spent any budget. Otherwise the request queues, in order of arrival within
// its priority, until every limit that applies to it has room: the configured
// budgets, the limits that the server stated, and the rate that the server was
// found to accept. It also waits for the end of a pause that another request's 429
// began. Then it takes what it costs from all of these limits at once. So a request
// that gives up while it waits costs nothing, and a budget that is changed applies
// to the requests that wait already. A request whose wait certainly cannot end
// before its deadline, or within MaxWait, fails at once, and the error says how
// long the wait would be. If the wait is only estimated, the request waits until
// its deadline, or for MaxWait.
//
// Only then does the attempt's timeout start. When the answer comes back, the
// throttle reads what it says about quotas, the circuit counts whether the host
// works, and retry decides whether the request is sent again. It is sent again only
// if it is idempotent, has an Idempotency-Key, or was certainly not processed; if
// the delay ends before the deadline; and if the host's allowance for retries is
// not used up. A retry keeps its place in the queue.
//
// # By default
//
// A host has no budget until it states or shows a limit. What it states in
// rate-limit headers is obeyed from the first answer on, until answers contradict
// it. A 429, or a 503 that says when to come back, pauses all requests to the
// host. A new host gets few requests at a time at first. A request waits at most
// 75 s for budget and has three attempts; each must have its response headers
// within 30 s. Each host has an allowance for retries, so that a host that is down
// is not flooded with them. Its circuit opens after five attempts in a row that got
// no answer, or after twenty failures in a row of any kind. If the host fails at
// random, it takes more failures in a row.
//
// Every field of Config that is zero means such a default. These fields are set
// most often:
//
//	Throttle.Budgets        limits that you know and that the server does not state
//	Throttle.MaxWait        longer for a batch job; negative: refuse, never wait
//	Retry.MaxAttempts       1 where an SDK above has its own loop
//	Retry.AttemptTimeout    for answers that take longer than 30 s to begin, as
//	                        a language model's that is not streamed
//	Breaker.Patience        to wait for a broken host instead of failing
//	Hosts                   other settings for hosts that need them
//
// # Learning
//
// Limits that headers state apply in addition to configured budgets, in their own
// units. Package [github.com/weirhttp/weir/headers] reads the many formats of such
// headers. Each credential has limits of its own: the Authorization header, or what
// throttle.Config.Credential returns, tells the credentials apart. So put the
// RoundTripper that adds that header (oauth2.Transport) around a Transport. If it
// stood below, all callers would look like one. If a server says nothing but 429,
// weir compares what was accepted and refused with the kinds of limiter that
// servers use, and tries from time to time whether more is accepted. Nothing that
// is learned ever loosens what was configured. [Transport.Stats],
// throttle.Config.OnLearn and the page of package inspect show all that was
// learned, and why.
//
// # Bodies and streams
//
// Streams arrive as they are sent. The body of a 101 can be written to. Closing a
// response body, or reading it to its end, frees the request's place among those
// in flight. A request body is sent again only if it can be read again: if the
// request has GetBody, if the body is a file, or if Retry.BufferBody keeps it.
//
// # Errors
//
// If a server answered, its answer is returned, whatever the status. [errors.As]
// finds these errors, also through the *url.Error of http.Client:
//
//	*throttle.Error  the wait for budget would be too long: RetryAfter says how long
//	*breaker.Error   the host's circuit is open: RetryAfter says for how long
//	*retry.Error     several attempts brought no response; it wraps the last error
//
// errors.Is(err, [ErrNotSent]) is true only if nothing was sent at all. The texts
// of these errors name hosts, never URLs, and contain no credentials.
//
// # Many processes
//
// Budgets are kept in this process, unless Throttle.Store is a store that several
// processes share: github.com/weirhttp/weir/redisstore, or filestore on one
// machine. [Transport.Close] gives back the units that this process has booked
// there and not used.
package weir
