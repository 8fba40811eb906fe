package inspect_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/inspect"
)

// What changes between two looks is told in words, the newest first.
func TestEventsInWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := transport(t, answers{"api.example": always(500)}, weir.Config{})
		h := inspect.Handler(w, inspect.Config{})
		look(t, h, question{}) // history begins
		next := func() { time.Sleep(time.Second); look(t, h, question{}) }
		next()
		send(t, w, "api.example", 1)
		send(t, w, "other.example", 1)
		next()
		w.Throttle().Pause("api.example", time.Now().Add(time.Hour))
		next()
		w.Throttle().Resume("api.example")
		next()
		next()
		var got []string
		for _, e := range look(t, h, question{host: "api.example"}).Events {
			got = append(got, e.Text)
		}
		want := []string{"ok, was paused", "paused, was ok: paused by hand", "2 tried again, because: server error", "first seen"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if n := len(look(t, h, question{}).Events); n != len(want)+1 {
			t.Errorf("%d events of all hosts, want %d", n, len(want)+1)
		}
		if n := len(look(t, h, question{host: "api.example", part: "00000000"}).Events); n != 0 {
			t.Errorf("%d events of a partition that is not there", n)
		}
	})
}

// Counts that go on are added up and told every ten seconds.
func TestEventsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := weir.Config{Throttle: budget("1/h")}
		c.Throttle.MaxWait = -1
		w := transport(t, answers{}, c)
		send(t, w, "api.example", 1)
		h := inspect.Handler(w, inspect.Config{})
		look(t, h, question{})
		for range 25 {
			if _, err := w.RoundTrip(request(t.Context(), "api.example")); err == nil {
				t.Fatal("an answer beyond the budget")
			}
			time.Sleep(time.Second)
			look(t, h, question{})
		}
		var got []string
		for _, e := range look(t, h, question{}).Events {
			got = append(got, e.Text)
		}
		want := []string{"10 turned away: 1/h is spent", "10 turned away: 1/h is spent", "1 turned away: 1/h is spent", "refusing, was ok: 1/h is spent"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// The past is bounded: a page shows the newest 200 of the last 5000.
func TestEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keepEvents, showEvents, many = 5000, 200, 1000
		w := transport(t, answers{}, weir.Config{})
		h := inspect.Handler(w, inspect.Config{})
		look(t, h, question{})
		send(t, w, "api.example", 1)
		meet(t, w, many) // each is an event
		events := 1 + many
		for round := 0; events < 3*keepEvents; round++ {
			time.Sleep(time.Second)
			f := look(t, h, question{host: "api.example"})
			if told := slices.ContainsFunc(f.Events, func(e inspect.Event) bool { return e.Text == "first seen" }); told != (events <= keepEvents) {
				t.Errorf("%d events after its own: shown: %v", events-1, told)
			}
			if n, room := inspect.KeptEvents(h); n > 2*keepEvents || room > 4*keepEvents {
				t.Errorf("%d events kept, room for %d", n, room)
			}
			if n := len(look(t, h, question{}).Events); n != min(events, showEvents) {
				t.Errorf("%d of %d events shown", n, events)
			}
			for i := range many {
				if name := fmt.Sprintf("host%d.example", i); round%2 == 0 {
					w.Throttle().Pause(name, time.Now().Add(time.Hour))
				} else {
					w.Throttle().Resume(name)
				}
			}
			events += many
		}
	})
}
