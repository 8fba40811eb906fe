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
// Metrics, with server.address and, where it says something, server.port by
// the HTTP client conventions:
//
//	weir.client.attempts           {attempt}  counter; weir.outcome, weir.then, http.response.status_code
//	weir.client.resends            {attempt}  counter of attempts after the first; weir.outcome
//	weir.client.wait.duration      s          histogram of waits for budget; weir.granted
//	weir.client.learned            {event}    counter of things learned about a server
//	weir.client.circuit.changes    {change}   counter; weir.circuit.state is the new state
//	weir.client.budget.left        {unit}     gauge; weir.budget, weir.unit
//	weir.client.queue.length       {request}  gauge
//	weir.client.circuit.state      1          gauge: 0 closed, 1 half-open, 2 open
//
// Events on the caller's span, if it records: weir.wait, weir.attempt (with
// http.request.resend_count), weir.learned, weir.circuit.
//
// A fresh host name is a fresh set of time series, so at most
// [Config.MaxHosts] hosts are named; all others are "_other". Budgets are
// named by their text, at most ten of a host.
package otelweir
