package population

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

// playAlone is Play in a bubble of its own.
func playAlone(t *testing.T, c *Case, who Caller) (r Result, log []Arrival) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { r, log = Play(c, who) })
	return r, log
}

// TestRun plays the cases that the program in folder report asks for in the
// environment; otherwise it does nothing. Each result is one line, written
// before the next case begins, so that a case that ends the program is known.
func TestRun(t *testing.T) {
	path := os.Getenv("WEIR_POPULATION_OUT")
	if path == "" {
		t.Skip("run by report")
	}
	number := func(name string) int {
		n, err := strconv.Atoi(os.Getenv("WEIR_POPULATION_" + name))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	set, seed, first, n := Set(os.Getenv("WEIR_POPULATION_SET")), number("SEED"), number("FIRST"), number("N")
	only, kind := os.Getenv("WEIR_POPULATION_ONLY"), os.Getenv("WEIR_POPULATION_KIND")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := json.NewEncoder(f)
	for i := range n {
		c := Draw(set, uint64(seed), first+i)
		if kind != "" && c.Kind != kind && c.Dialect.name != kind && !strings.HasPrefix(c.Works.class(), kind) {
			continue
		}
		for _, who := range Callers() {
			if only != "" && who.Name != only {
				continue
			}
			if err := out.Encode(Line{Began: who.Name, Index: c.Index}); err != nil {
				t.Fatal(err)
			}
			r, log := playAlone(t, c, who)
			l := Line{Index: c.Index, Result: &r}
			if n == 1 {
				l.Arrivals = slices.Clone(log)
			}
			if err := out.Encode(l); err != nil {
				t.Fatal(err)
			}
		}
	}
}
