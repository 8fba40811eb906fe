package inspect_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/inspect"
)

// Several look while requests are made.
func TestLooksAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := transport(t, answers{"b.example": always(500)}, weir.Config{Throttle: budget("1000/s burst 1000")})
		h := inspect.Handler(w, inspect.Config{})
		var done sync.WaitGroup
		for range 4 {
			done.Go(func() {
				for _, order := range []string{"state", "-queue", "left", "host"} {
					look(t, h, question{sort: order, host: "a.example"})
					time.Sleep(time.Second / 2) // the next look is a fresh one
				}
			})
			done.Go(func() {
				for range 4 {
					send(t, w, "a.example", 5)
					time.Sleep(time.Second / 2)
				}
				send(t, w, "b.example", 1)
			})
		}
		done.Wait()
		if got := hostNamed(t, snapshot(t, h), "a.example").Granted; got != 80 {
			t.Errorf("%d requests, want 80", got)
		}
	})
}

// BenchmarkSnapshot is one snapshot of 10000 hosts, each with two budgets.
func BenchmarkSnapshot(b *testing.B) {
	w := transport(b, answers{}, weir.Config{Throttle: budget("5/s, 1000/h")})
	meet(b, w, 10000)
	b.Run("Stats", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if n := len(w.Stats().Throttle.Hosts); n != 10000 {
				b.Fatal(n)
			}
		}
	})
	h := inspect.Handler(w, inspect.Config{})
	b.Run("JSON", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if n := ask(h, "GET", "/stats.json", nil).Body.Len(); n < 10000 {
				b.Fatal(n)
			}
		}
	})
	b.Run("frame", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			inspect.LookAgain(h)
			event(b, h, question{sort: "-state"})
		}
	})
}
