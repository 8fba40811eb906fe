package otelweir

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Outbox is what ObserveOutbox needs of an outbox.Transport.
type Outbox interface {
	Queues() []OutboxQueue
}

// OutboxQueue is outbox.QueueStats. It has no name of its own there either, so
// that neither package imports the other.
type OutboxQueue = struct {
	Queue     string
	Pending   int
	Dead      int
	Bytes     int64
	Oldest    time.Time
	Sending   bool
	Stuck     time.Time
	Tries     int
	Why       string
	Delivered uint64
	SetAside  uint64
}

// box reports an outbox.
type box struct {
	from                              Outbox
	names                             int // queues named
	pending, dead, bytes              metric.Int64ObservableGauge
	oldest, stuck                     metric.Float64ObservableGauge
	delivered, setAside               metric.Int64ObservableCounter
	deliveredEntries, setAsideEntries growing

	mu    sync.Mutex
	named map[string]string // what metrics call a queue, of those that have a name
}

// growing turns counts of queues, which begin anew with a queue that was
// forgotten, into sums that only grow.
type growing struct {
	seen map[string]uint64 // by queue
	sums map[string]uint64 // by what metrics call it
}

// ObserveOutbox reports the queues of an outbox whenever metrics are collected,
// until stop is called. At most [Config.MaxHosts] are named; all others are
// added up as "_other".
func (r *Reporter) ObserveOutbox(o Outbox) (stop func() error, err error) {
	m := &build{Meter: r.meter}
	b := &box{
		from: o, names: r.c.MaxHosts, named: make(map[string]string),
		pending:   m.gauge("weir.outbox.pending", "{entry}", "Entries of the outbox that are to be sent."),
		dead:      m.gauge("weir.outbox.dead", "{entry}", "Entries of the outbox that were set aside, and not replayed or discarded."),
		bytes:     m.gauge("weir.outbox.size", "By", "What the entries of the outbox take."),
		oldest:    m.level("weir.outbox.oldest", "s", "How long the oldest pending entry is kept."),
		stuck:     m.level("weir.outbox.stuck", "s", "For how long no try was a success; 0 if the last one was."),
		delivered: m.seen("weir.outbox.delivered", "{entry}", "Entries that were sent and removed."),
		setAside:  m.seen("weir.outbox.set_aside", "{entry}", "Entries that died."),
	}
	if m.err != nil {
		return nil, fmt.Errorf("otelweir: %w", m.err)
	}
	reg, err := r.meter.RegisterCallback(b.observe, b.pending, b.dead, b.bytes, b.oldest, b.stuck, b.delivered, b.setAside)
	if err != nil {
		return nil, err
	}
	return reg.Unregister, nil
}

// sum is what all queues of one name hold.
type sum struct {
	pending, dead, bytes int64
	oldest, stuck        float64
}

func (b *box) observe(_ context.Context, o metric.Observer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, queues := time.Now(), b.from.Queues()
	sums := make(map[string]*sum)
	delivered, setAside := make(map[string]uint64, len(queues)), make(map[string]uint64, len(queues))
	for _, q := range queues {
		name := b.name(q.Queue)
		s := sums[name]
		if s == nil {
			s = new(sum)
			sums[name] = s
		}
		s.pending += int64(q.Pending)
		s.dead += int64(q.Dead)
		s.bytes += q.Bytes
		if !q.Oldest.IsZero() {
			s.oldest = max(s.oldest, now.Sub(q.Oldest).Seconds())
		}
		if !q.Stuck.IsZero() {
			s.stuck = max(s.stuck, now.Sub(q.Stuck).Seconds())
		}
		delivered[q.Queue], setAside[q.Queue] = q.Delivered, q.SetAside
	}
	for name, s := range sums {
		with := queueSet(name)
		o.ObserveInt64(b.pending, s.pending, with)
		o.ObserveInt64(b.dead, s.dead, with)
		o.ObserveInt64(b.bytes, s.bytes, with)
		o.ObserveFloat64(b.oldest, s.oldest, with)
		o.ObserveFloat64(b.stuck, s.stuck, with)
	}
	for name, n := range b.deliveredEntries.add(delivered, b.name) {
		o.ObserveInt64(b.delivered, int64(n), queueSet(name))
	}
	for name, n := range b.setAsideEntries.add(setAside, b.name) {
		o.ObserveInt64(b.setAside, int64(n), queueSet(name))
	}
	return nil
}

func queueSet(name string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("weir.queue", name))
}

// name is what metrics call a queue: its own name, or that of all others.
func (b *box) name(queue string) string {
	if name, ok := b.named[queue]; ok {
		return name
	}
	if len(b.named) >= b.names {
		return other
	}
	b.named[queue] = queue
	return queue
}

// add adds what is new in counts, and returns the sums.
func (g *growing) add(counts map[string]uint64, name func(string) string) map[string]uint64 {
	if g.sums == nil {
		g.sums = make(map[string]uint64)
	}
	for queue, n := range counts {
		if was := g.seen[queue]; n >= was {
			g.sums[name(queue)] += n - was
		} else {
			g.sums[name(queue)] += n // it was forgotten, and met again
		}
	}
	g.seen = counts
	return g.sums
}
