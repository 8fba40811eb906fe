package inspect_test

import (
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/inspect"
)

// queues is an outbox that says what it is told to.
type queues []inspect.OutboxQueue

func (q queues) Queues() []inspect.OutboxQueue { return q }

// The queues of an outbox are in the data, the stuck ones first; without one
// there is no word of it.
func TestOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		w := transport(t, answers{}, weir.Config{})
		h := inspect.Handler(w, inspect.Config{Outbox: queues{
			{Queue: "a.example", Delivered: 7},
			{Queue: "b.example", Pending: 2, Oldest: now.Add(-time.Minute), Sending: true},
			{Queue: "c.example", Pending: 90, Dead: 3, Bytes: 5000, Oldest: now.Add(-time.Hour), Stuck: now.Add(-30 * time.Second), Tries: 4, Why: "answer 503", SetAside: 3},
			{Queue: "d.example", Dead: 1},
			{Queue: "e.example", Pending: 1, Oldest: now},
		}})
		want := []inspect.Kept{
			{Queue: "c.example", State: "stuck", Pending: 90, Dead: 3, Bytes: 5000, Oldest: 3600, Stuck: 30, Tries: 4, Why: "answer 503", SetAside: 3},
			{Queue: "b.example", State: "sending", Pending: 2, Oldest: 60},
			{Queue: "e.example", State: "waiting", Pending: 1},
			{Queue: "d.example", State: "ok", Dead: 1},
			{Queue: "a.example", State: "ok", Delivered: 7},
		}
		if got := snapshot(t, h).Outbox; !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if f := look(t, h, question{}); !reflect.DeepEqual(f.Outbox, want) || f.Queues != 5 {
			t.Errorf("in an event: %+v", f.Outbox)
		}
		if f := look(t, h, question{host: "a.example"}); f.Outbox != nil {
			t.Errorf("in an event about a host: %+v", f.Outbox)
		}
		if body := ask(inspect.Handler(w, inspect.Config{}), "GET", "/stats.json", nil).Body.String(); strings.Contains(body, "outbox") {
			t.Errorf("without one: %s", body)
		}
	})
}

// An event is short, however many queues there are.
func TestManyQueues(t *testing.T) {
	const keepQueues = 200
	many := make(queues, 3*keepQueues)
	f := look(t, inspect.Handler(transport(t, answers{}, weir.Config{}), inspect.Config{Outbox: many}), question{})
	if len(f.Outbox) != keepQueues || f.Queues != 3*keepQueues {
		t.Errorf("%d of %d queues", len(f.Outbox), f.Queues)
	}
}
