package otelweir

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/inspect"
)

// queues is an outbox that says what it is told to.
type queues []OutboxQueue

func (q *queues) Queues() []OutboxQueue { return *q }

func observed(t *testing.T, q *queues, c Config) watched {
	t.Helper()
	reader := sdk.NewManualReader()
	c.MeterProvider = sdk.NewMeterProvider(sdk.WithReader(reader))
	r, err := New(&weir.Config{}, c)
	if err != nil {
		t.Fatal(err)
	}
	stop, err := r.ObserveOutbox(q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop() })
	return watched{t: t, reader: reader}
}

// The page shows the same: package outbox, whose tests hold that it fits the one,
// fits the other.
var _ inspect.Outbox = (*queues)(nil)

// What each queue of an outbox holds and what became of it is reported; sums only
// grow, also when a queue was forgotten.
func TestOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queues{
			{Queue: "a.example", Pending: 90, Dead: 3, Bytes: 5000, Oldest: time.Now().Add(-time.Hour), Stuck: time.Now().Add(-time.Minute), Delivered: 10, SetAside: 3},
			{Queue: "b.example", Delivered: 7},
		}
		w := observed(t, q, Config{})
		w.wants(
			`weir.outbox.pending{weir.queue=a.example} 90`,
			`weir.outbox.dead{weir.queue=a.example} 3`,
			`weir.outbox.size{weir.queue=a.example} 5000`,
			`weir.outbox.oldest{weir.queue=a.example} 3600`,
			`weir.outbox.stuck{weir.queue=a.example} 60`,
			`weir.outbox.delivered{weir.queue=a.example} 10`,
			`weir.outbox.set_aside{weir.queue=a.example} 3`,
			`weir.outbox.pending{weir.queue=b.example} 0`,
			`weir.outbox.delivered{weir.queue=b.example} 7`,
		)
		*q = (*q)[:1]
		w.wants(`weir.outbox.delivered{weir.queue=b.example} 7`)
		*q = append(*q, OutboxQueue{Queue: "b.example", Delivered: 2})
		w.wants(`weir.outbox.delivered{weir.queue=b.example} 9`)
	})
}

// However many queues there are, the number of time series is bounded and sums
// lose nothing.
func TestOutboxCardinality(t *testing.T) {
	q := new(queues)
	for i := range 50 {
		*q = append(*q, OutboxQueue{Queue: fmt.Sprint(i), Pending: 1, Delivered: 2})
	}
	got := observed(t, q, Config{MaxHosts: 5}).metrics()
	if n := strings.Count(got, "weir.outbox.pending{"); n != 6 {
		t.Errorf("%d series", n)
	}
	for _, line := range []string{"weir.outbox.pending{weir.queue=_other} 45\n", "weir.outbox.delivered{weir.queue=_other} 90\n"} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
}
