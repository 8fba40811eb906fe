// Package otelweir reports what weir does to OpenTelemetry: metrics, and
// events on the span of the caller.
//
//	config := weir.Config{}
//	o, err := otelweir.New(&config, otelweir.Config{})
//	...
//	t, err := weir.New(nil, config)
//	...
//	stop, err := o.Observe(t)
//
// All metrics of a Transport have the attributes server.address and server.port,
// which OpenTelemetry's conventions for HTTP clients define; a port that is the
// scheme's own is left out. These two metrics are defined there too. What the
// conventions call a request is an attempt here:
//
//	http.client.request.duration   s          histogram, from the wire to the headers; http.request.method, http.response.status_code, error.type
//	http.client.active_requests    {request}  sent, no headers yet
//
// These come from the hooks:
//
//	weir.client.attempts           {attempt}  counter; weir.outcome, weir.then, http.response.status_code
//	weir.client.resends            {attempt}  counter of attempts after the first; weir.outcome
//	weir.client.wait.duration      s          histogram of waits for budget; weir.granted
//	weir.client.learned            {event}    counter of things learned about a server
//	weir.client.circuit.changes    {change}   counter; weir.circuit.state is the new state
//
// These come from Stats, if the Transport is observed ([Reporter.Observe]). Counters
// have the attribute weir.route ("GET /search", or a budget's pattern) and, with
// Config.MaxPartitions, weir.partition:
//
//	weir.client.sent               {attempt}  counter
//	weir.client.waits              {attempt}  counter of those that had to wait for budget
//	weir.client.wait.time          s          counter: all of these waits
//	weir.client.refusals           {attempt}  counter; weir.reason
//	weir.client.cancelled          {attempt}  counter of those given up while they waited
//	weir.client.retries            {attempt}  counter; weir.after is how the attempt before ended
//	weir.client.throttled          {answer}   counter of answers that ask for fewer requests
//	weir.client.pauses             {pause}    counter
//	weir.client.answers            {answer}   counter
//	weir.client.answer.time        s          counter: until the headers of all of these
//	weir.client.wait.expected      s          gauge: what a request made now would wait; weir.route
//	weir.client.refusing           {state}    gauge: 1 while most of the latest requests are turned away or a circuit is open (throttle.StateRefusing)
//	weir.client.queue.length       {request}  gauge
//	weir.client.queue.oldest       s          gauge: how long the oldest of these has waited
//	weir.client.budget.left        {unit}     gauge; weir.budget, weir.unit, weir.pattern
//	weir.client.limit.left         {unit}     gauge: what the server said; weir.source, weir.unit, weir.route
//	weir.client.retry.allowance    {token}    gauge
//	weir.client.circuit.state      {state}    gauge: 0 closed, 1 half-open, 2 open
//	weir.client.circuit.forced     {state}    gauge: 1 by hand
//	weir.client.circuit.trips      {trip}     counter
//	weir.client.circuit.refusals   {attempt}  counter
//	weir.client.circuit.fallbacks  {answer}   counter of requests that the program's fallback answered
//
// These come from an outbox that is observed ([Reporter.ObserveOutbox]), and have the
// attribute weir.queue:
//
//	weir.outbox.pending            {entry}    gauge: to be sent
//	weir.outbox.dead               {entry}    gauge: set aside
//	weir.outbox.size               By         gauge: of both
//	weir.outbox.oldest             s          gauge: how long the oldest pending entry is kept
//	weir.outbox.stuck              s          gauge: for how long no try was a success; 0 if the last one was
//	weir.outbox.delivered          {entry}    counter
//	weir.outbox.set_aside          {entry}    counter
//
// These come from a throttle.Limiter that is observed ([Reporter.ObserveLimiter]), and
// have the attribute weir.limiter. Its keys are added up. If a key was forgotten and
// met again between two collections, the counts are too low:
//
//	weir.limiter.queue.length      {call}     gauge
//	weir.limiter.queue.oldest      s          gauge
//	weir.limiter.refusing          {key}      gauge: keys most of whose latest calls are turned away
//	weir.limiter.granted           {call}     counter
//	weir.limiter.waits             {call}     counter
//	weir.limiter.refusals          {call}     counter by weir.reason
//	weir.limiter.overflow          {call}     counter of those for which there was no room: see throttle.LimiterStats
//
// Events on the caller's span, if it records: weir.wait, weir.attempt (with
// http.request.resend_count), weir.learned, weir.circuit.
//
// Each host name makes a set of time series, so at most [Config.MaxHosts] hosts are
// named, and at most [Config.MaxRoutes] routes of each; all others are "_other".
// Budgets are named by their text, at most ten for a host. weir.client.budget.left
// reports only budgets that requests without a partition use. The names that a server
// gives to its limits are not reported. Of the other text that a server can invent
// about them (header and unit), only the first ten values are. Counters only grow,
// also if a host is forgotten and then called again.
package otelweir
