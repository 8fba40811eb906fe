package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestScenarios runs weir through the scenarios that are quick, and holds it to
// loose bounds.
func TestScenarios(t *testing.T) {
	for _, sc := range scenarios() {
		if !sc.quick {
			continue
		}
		t.Run(sc.id+" "+sc.what, func(t *testing.T) {
			var figures []figure
			for seed := range uint64(2) {
				execute(t, sc, sc.strategies[0], seed+1, &figures)
			}
			for _, x := range sc.targets {
				v, _, _ := spread(values(figures, sc.name(), "weir", x.figure))
				if x.atMost && !(v <= x.test) || !x.atMost && !(v >= x.test) {
					t.Errorf("%s: got %.3f, the bound of this test is %.3f (target %.3f)", strings.TrimSpace(x.figure), v, x.test, x.want)
				}
			}
		})
	}
}

func (sc scenario) name() string { return sc.id + ": " + sc.what }

func execute(t *testing.T, sc scenario, st strategy, seed uint64, figures *[]figure) {
	virtual(t, func(t *testing.T) {
		sc.run(t, st, seed, &result{sc.name(), st.name, seed, figures})
	})
}

func values(figures []figure, scenario, strategy, name string) (v []float64) {
	for _, f := range figures {
		if f.Scenario == scenario && f.Strategy == strategy && f.Name == name {
			v = append(v, f.Value)
		}
	}
	return v
}

// TestReport runs everything for the program in folder report, which says how
// in the environment; otherwise it does nothing.
func TestReport(t *testing.T) {
	path := os.Getenv("WEIR_SIM_OUT")
	if path == "" {
		t.Skip("run by report")
	}
	first, _ := strconv.Atoi(os.Getenv("WEIR_SIM_FIRST"))
	seeds, _ := strconv.Atoi(os.Getenv("WEIR_SIM_SEEDS"))
	only := os.Getenv("WEIR_SIM_ONLY")
	out := report{Plots: plots(t, only)}
	for _, sc := range scenarios() {
		if only != "" && !strings.HasPrefix(sc.name(), only) {
			continue
		}
		row := summary{Name: sc.name()}
		for _, x := range sc.targets {
			row.Targets = append(row.Targets, goal{x.figure, x.atMost, x.want})
		}
		for _, st := range sc.strategies {
			row.Strategies = append(row.Strategies, st.name)
			for i := range seeds {
				execute(t, sc, st, uint64(first+i), &out.Figures)
			}
		}
		out.Rows = append(out.Rows, row)
		fmt.Fprintln(os.Stderr, sc.name())
	}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// report is what TestReport hands to the program; its fields are read there.
type report struct {
	Rows    []summary
	Figures []figure
	Plots   []plot
}

type summary struct {
	Name       string
	Strategies []string
	Targets    []goal
}

type goal struct {
	Figure string
	AtMost bool
	Want   float64
}

// A plot is what one server saw over time, in tenths of seconds.
type plot struct {
	Name, Strategy string
	Accepted       []int
	Refused        []int
	PerBin         float64 // seconds
}

// plots runs a few scenarios once per strategy and keeps what arrived.
func plots(t *testing.T, only string) (all []plot) {
	if only != "" {
		return nil
	}
	for _, x := range []struct {
		name string
		q    func() quota
		d    dialect
		n    int
		bin  float64
	}{
		{"bucket of 50 per second, silent", func() quota { return newBucket(50, 50) }, silent, 1500, 0.25},
		{"bucket of 50 per second, IETF headers", func() quota { return newBucket(50, 50) }, ietf, 1500, 0.25},
		{"window of 100 per 10 s, Retry-After", func() quota { return &fixed{n: 100, per: 10e9, phase: 3e9} }, retryAfter, 600, 0.5},
	} {
		for _, st := range []strategy{weirWith(patient()), naiveRetry(0, 0, 1e9), adaptiveRetry()} {
			virtual(t, func(t *testing.T) {
				s := newServer(1, x.q(), x.d)
				s.keep = true
				c := st.make(s, 1)
				jobs(t.Context(), c, x.n, 64)
				p := plot{Name: x.name, Strategy: st.name, PerBin: x.bin}
				for _, m := range s.log {
					i := int(m.at.Seconds() / x.bin)
					for len(p.Accepted) <= i {
						p.Accepted, p.Refused = append(p.Accepted, 0), append(p.Refused, 0)
					}
					if m.ok {
						p.Accepted[i]++
					} else {
						p.Refused[i]++
					}
				}
				all = append(all, p)
			})
		}
	}
	return all
}
