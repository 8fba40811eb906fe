package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weirhttp/weir/internal/testnet"
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
			for seed := range uint64(testnet.Drawn(5, 1)) { // the median bears two that chance made
				execute(t, sc, sc.strategies[0], seed+1, &figures)
			}
			for _, x := range sc.targets {
				v, _, _ := spread(values(figures, sc.name(), "weir", x.figure))
				holds := x.atMost && v <= x.test || !x.atMost && v >= x.test
				testnet.Judge(t, holds, "%s: got %.3f, the bound of this test is %.3f (target %.3f)", strings.TrimSpace(x.figure), v, x.test, x.want)
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
	only, alone := os.Getenv("WEIR_SIM_ONLY"), os.Getenv("WEIR_SIM_ALONE") == "true"
	wanted := regexp.MustCompile("^(?:" + only + ")")
	out := report{}
	if only == "" {
		out.Plots = plots(t)
	}
	var runs [][]figure // one for each scenario, strategy and seed, in this order
	t.Run("run", func(t *testing.T) {
		for _, sc := range scenarios() {
			if !wanted.MatchString(sc.name()) {
				continue
			}
			out.Rows = append(out.Rows, sc.summary())
			for _, st := range sc.strategies {
				if alone && st.name != "weir" {
					continue
				}
				for i := range seeds {
					runs = append(runs, nil)
					mine := len(runs) - 1
					t.Run(fmt.Sprint(sc.name(), "/", st.name, "/", i), func(t *testing.T) {
						t.Parallel() // not begun before runs is complete
						execute(t, sc, st, uint64(first+i), &runs[mine])
					})
				}
			}
		}
	})
	out.Figures = slices.Concat(runs...)
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func (sc scenario) summary() summary {
	row := summary{Name: sc.name()}
	for _, x := range sc.targets {
		row.Targets = append(row.Targets, goal{x.figure, x.atMost, x.want})
	}
	for _, st := range sc.strategies {
		row.Strategies = append(row.Strategies, st.name)
	}
	return row
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
