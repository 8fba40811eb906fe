package otelweir

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// Indices of Reporter.counters and Reporter.times: what is counted in weir.Stats.
const (
	sent = iota
	waits
	refusals
	cancelled
	retries
	throttled
	pauses
	answers
	circuitRefusals
	circuitTrips
	circuitFallbacks
	counted

	answerTime = iota - counted - 1
	waitTime
	timed
)

// gauges are read from weir.Stats.
type gauges struct {
	left, limitLeft, oldest, expected, allowance metric.Float64ObservableGauge
	queue, refusing, state, forced               metric.Int64ObservableGauge
	active                                       metric.Int64ObservableUpDownCounter
}

// durations are the bounds that the HTTP conventions advise, and longer ones.
func durations() metric.HistogramOption {
	return metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60)
}

// build makes instruments and remembers what went wrong.
type build struct {
	metric.Meter
	err error
}

func keep[T any](b *build, i T, err error) T {
	b.err = errors.Join(b.err, err)
	return i
}

func (b *build) counter(name, unit, text string) metric.Int64Counter {
	i, err := b.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(text))
	return keep(b, i, err)
}

func (b *build) seen(name, unit, text string) metric.Int64ObservableCounter {
	i, err := b.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(text))
	return keep(b, i, err)
}

func (b *build) seconds(name, text string) metric.Float64ObservableCounter {
	i, err := b.Float64ObservableCounter(name, metric.WithUnit("s"), metric.WithDescription(text))
	return keep(b, i, err)
}

func (b *build) gauge(name, unit, text string) metric.Int64ObservableGauge {
	i, err := b.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(text))
	return keep(b, i, err)
}

func (b *build) level(name, unit, text string) metric.Float64ObservableGauge {
	i, err := b.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(text))
	return keep(b, i, err)
}

func (b *build) histogram(name, text string) metric.Float64Histogram {
	i, err := b.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(text), durations())
	return keep(b, i, err)
}

func (r *Reporter) instruments() error {
	b := &build{Meter: r.meter}
	r.attempts = b.counter("weir.client.attempts", "{attempt}", "Attempts, by how they ended and what followed.")
	r.resends = b.counter("weir.client.resends", "{attempt}", "Attempts after a request's first.")
	r.learned = b.counter("weir.client.learned", "{event}", "Things learned about a server's limits.")
	r.changes = b.counter("weir.client.circuit.changes", "{change}", "Changes of circuits, by their new state.")
	r.wait = b.histogram("weir.client.wait.duration", "Waits for budget.")
	r.duration = b.histogram("http.client.request.duration", "Attempts, from the wire to the headers of the answer.")

	r.counters[sent] = b.seen("weir.client.sent", "{attempt}", "Attempts let through by the budgets.")
	r.counters[waits] = b.seen("weir.client.waits", "{attempt}", "Attempts that had to wait for budget.")
	r.counters[refusals] = b.seen("weir.client.refusals", "{attempt}", "Attempts turned away by a budget, by reason.")
	r.counters[cancelled] = b.seen("weir.client.cancelled", "{attempt}", "Attempts given up while they waited.")
	r.counters[retries] = b.seen("weir.client.retries", "{attempt}", "Attempts sent because of one before, by how that ended.")
	r.counters[throttled] = b.seen("weir.client.throttled", "{answer}", "Answers by which a server asked for fewer requests.")
	r.counters[pauses] = b.seen("weir.client.pauses", "{pause}", "Pauses begun.")
	r.counters[answers] = b.seen("weir.client.answers", "{answer}", "Answers whose headers came.")
	r.counters[circuitRefusals] = b.seen("weir.client.circuit.refusals", "{attempt}", "Requests turned away by an open circuit.")
	r.counters[circuitTrips] = b.seen("weir.client.circuit.trips", "{trip}", "Times that a circuit opened.")
	r.counters[circuitFallbacks] = b.seen("weir.client.circuit.fallbacks", "{answer}", "Requests that the program's fallback answered.")
	r.times[answerTime] = b.seconds("weir.client.answer.time", "Time until the headers of all answers.")
	r.times[waitTime] = b.seconds("weir.client.wait.time", "Time of all waits for budget.")

	r.queue = b.gauge("weir.client.queue.length", "{request}", "Requests that wait for budget.")
	r.refusing = b.gauge("weir.client.refusing", "{state}", "1 while most of the latest requests are turned away by a budget or pause.")
	r.oldest = b.level("weir.client.queue.oldest", "s", "How long the oldest of those has waited.")
	r.expected = b.level("weir.client.wait.expected", "s", "How long a request made now would wait for budget.")
	r.left = b.level("weir.client.budget.left", "{unit}", "Units that could be spent now.")
	r.limitLeft = b.level("weir.client.limit.left", "{unit}", "Units that the server said are left.")
	r.allowance = b.level("weir.client.retry.allowance", "{token}", "Tokens left for retries and hedges.")
	r.state = b.gauge("weir.client.circuit.state", "{state}", "State of the host's circuit: 0 closed, 1 half-open, 2 open.")
	r.forced = b.gauge("weir.client.circuit.forced", "{state}", "1 while the circuit is forced by hand.")
	active, err := r.meter.Int64ObservableUpDownCounter("http.client.active_requests", metric.WithUnit("{request}"),
		metric.WithDescription("Requests sent whose headers have not come."))
	r.active = keep(b, active, err)
	return b.err
}
