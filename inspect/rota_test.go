package inspect_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/inspect"
	"github.com/weirhttp/weir/throttle"
)

// A look costs what has changed, not what there is: hosts at which nothing happened
// are not looked at, whatever their state was shown to be, and those that are shown
// are.
func TestQuietHostsAreNotLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const quiet, pageRows = 2000, 100
		w := transport(t, answers{"busy.example": always(200)}, weir.Config{Throttle: budget("5/s, 1000/h")})
		meet(t, w, quiet)
		h := inspect.Handler(w, inspect.Config{})
		looked := func() int { return len(inspect.LookedAt(h, time.Now())) }
		look(t, h, question{})
		if got := looked(); got != quiet {
			t.Errorf("%d looked at first, want all", got)
		}
		time.Sleep(2 * time.Second)
		look(t, h, question{q: "host7.example"}) // these were shown, and are looked at once more
		if got := looked(); got != pageRows {
			t.Errorf("%d looked at, want the %d that were shown", got, pageRows)
		}
		for range 5 {
			time.Sleep(time.Second)
			look(t, h, question{q: "host7.example"})
		}
		if got := looked(); got != 1 {
			t.Errorf("%d looked at, want the one that is shown", got)
		}
		send(t, w, "host3.example", 1)
		w.Throttle().Pause("host4.example", time.Now().Add(time.Hour))
		w.Throttle().SetBudget("host5.example", throttle.MustParseBudget("1/s"))
		w.Circuits().Force("host6.example", breaker.Open)
		time.Sleep(time.Second)
		f := look(t, h, question{q: "host7.example"})
		for _, name := range []string{"host3.example", "host4.example", "host6.example"} {
			if !slices.Contains(inspect.LookedAt(h, time.Now()), name) {
				t.Errorf("%s: what happened there was not looked at", name)
			}
		}
		if f.Counts[paused] != 1 || f.Counts["open"] != 1 || f.Total != quiet {
			t.Errorf("%+v", f.Counts)
		}
		if f := look(t, h, question{host: "host9.example"}); f.Detail == nil || f.Detail.Granted != 1 {
			t.Errorf("detail: %+v", f.Detail)
		}
		time.Sleep(2 * time.Minute) // budgets have grown
		look(t, h, question{q: "host7.example"})
		if got := looked(); got < quiet*9/10 {
			t.Errorf("%d looked at after two minutes", got)
		}
		if got := hostNamed(t, snapshot(t, h), "host5.example").Budgets; len(got) != 1 {
			t.Errorf("all hosts: %+v", got)
		}
	})
}

// Where more hosts are busy than are looked at at a time each has its turn. Those that
// are shown, or whose circuit has opened, do not wait for it.
func TestBusyHostsAreLookedAtInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mostLooks, pageRows, busy = 2000, 100, 4500
		w := transport(t, answers{}, weir.Config{Throttle: budget("5/s, 1000/h")})
		meet(t, w, busy)
		h := inspect.Handler(w, inspect.Config{})
		look(t, h, question{})
		time.Sleep(time.Minute)
		meet(t, w, busy)
		for i := range 10 {
			w.Circuits().Force(fmt.Sprintf("host%d.example", i*busy/10), breaker.Open)
		}
		seen := make(map[string]bool)
		for i, most := range []int{mostLooks + 10 + 1, mostLooks + pageRows + 1, busy - 2*mostLooks + pageRows + 1} {
			f := look(t, h, question{host: "host77.example", sort: "-state"})
			if f.Counts["open"] != 10 || f.Detail.Granted != 2 || f.Total != busy {
				t.Errorf("look %d: %d of %d hosts open, want 10; the one that is shown was sent %d", i, f.Counts["open"], f.Total, f.Detail.Granted)
			}
			names := inspect.LookedAt(h, time.Now())
			if len(names) > most {
				t.Errorf("look %d: %d hosts looked at, want at most %d", i, len(names), most)
			}
			for _, name := range names {
				seen[name] = true
			}
			time.Sleep(time.Second)
		}
		if len(seen) != busy {
			t.Errorf("%d hosts had their turn in three looks, want %d", len(seen), busy)
		}
	})
}
