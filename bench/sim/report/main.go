// Program report runs the scenarios of package sim over many seeds and writes
// their table, in Markdown, and their plots, as SVG.
//
//	go run ./sim/report -seeds 20
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

type report struct {
	Rows    []summary
	Figures []figure
	Plots   []series
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

type figure struct {
	Scenario, Strategy, Name string
	Seed                     uint64
	Value                    float64
}

func main() {
	log.SetFlags(0)
	seeds := flag.Int("seeds", 20, "seeds for each scenario and strategy")
	first := flag.Int("first", 2001, "first seed; the tests use 1 and 2")
	dir := flag.String("dir", "sim", "folder of package sim, where RESULTS.md and plots go")
	only := flag.String("only", "", "run only scenarios whose names begin like this regular expression, and print their tables")
	alone := flag.Bool("alone", false, "run weir without its rivals")
	lines := flag.Bool("lines", false, "with -only: print a line for each target instead")
	flag.Parse()
	if err := run(*dir, *first, *seeds, *only, *alone, *lines); err != nil {
		log.Fatal(err)
	}
}

func run(dir string, first, seeds int, only string, alone, lines bool) error {
	tmp, err := os.CreateTemp("", "sim-*.json")
	if err != nil {
		return err
	}
	tmp.Close()
	defer os.Remove(tmp.Name())
	begin := time.Now()
	cmd := exec.Command("go", "test", "-count=1", "-timeout=2h", "-run=^TestReport$", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "WEIR_SIM_OUT="+tmp.Name(), fmt.Sprint("WEIR_SIM_FIRST=", first), fmt.Sprint("WEIR_SIM_SEEDS=", seeds), "WEIR_SIM_ONLY="+only, fmt.Sprint("WEIR_SIM_ALONE=", alone))
	cmd.Stderr = os.Stderr
	if out, err := cmd.Output(); err != nil {
		return fmt.Errorf("go test: %w\n%s", err, out)
	}
	text, err := os.ReadFile(tmp.Name())
	if err != nil {
		return err
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	if only != "" && lines {
		fmt.Print(r.lines())
		return nil
	}
	page := r.markdown(first, seeds, time.Since(begin))
	if only != "" {
		fmt.Print(page)
		return nil
	}
	names, err := drawAll(filepath.Join(dir, "plots"), r.Plots)
	if err != nil {
		return err
	}
	for _, n := range names {
		page += fmt.Sprintf("\n![Requests, refusals and limits over time: %s](plots/%s)\n", strings.ReplaceAll(strings.TrimSuffix(n, ".svg"), "-", " "), n)
	}
	return os.WriteFile(filepath.Join(dir, "RESULTS.md"), []byte(page), 0o644)
}

// markdown renders the table: medians, and the range of all seeds.
func (r *report) markdown(first, seeds int, took time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Simulated scenarios

Written by `+"`go run ./sim/report -seeds %d -first %d`"+` with %s on %s/%s in %s.
Virtual time; medians of %d seeds, and in brackets the least and the most of them.
Makespan is a multiple of the theoretical ideal, refusals are per success. weir is told nothing about
quotas unless the scenario speaks of a budget. "Right rate" is golang.org/x/time/rate told the true rate.
"AWS adaptive" is the adaptive mode of its SDKs, made again from its description. These and naive retry read no
headers: their rows stand where the server is silent. failsafe-go (retry, breaker, timeout) and go-retryablehttp
are the libraries themselves over the simulated network, with as many retries as it takes where work has to be
done; of all headers they read Retry-After, so their rows stand where the server is silent and where it says that.
heimdall is not here: its breaker keeps goroutines that never end, which virtual time does not allow. No rival has
lanes, priorities, or an idea of what else is queued. Rows in which another strategy is better are kept; a missed
target is marked.

`, seeds, first, runtime.Version(), runtime.GOOS, runtime.GOARCH, took.Round(time.Second), seeds)
	for _, row := range r.Rows {
		var names []string
		for _, f := range r.Figures {
			if f.Scenario == row.Name && !slices.Contains(names, strings.TrimSpace(f.Name)) {
				names = append(names, strings.TrimSpace(f.Name))
			}
		}
		fmt.Fprintf(&b, "## %s\n\n| strategy | %s |\n|---|%s\n", row.Name, strings.Join(names, " | "), strings.Repeat("---|", len(names)))
		for _, st := range row.Strategies {
			fmt.Fprintf(&b, "| %s |", st)
			for _, n := range names {
				fmt.Fprintf(&b, " %s |", r.cell(row, st, n))
			}
			b.WriteByte('\n')
		}
		if t := row.told(); t != "" {
			fmt.Fprintf(&b, "| *target* |")
			for _, n := range names {
				fmt.Fprintf(&b, " %s |", row.target(n))
			}
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	b.WriteString(notes)
	return b.String()
}

// lines renders one table: each target, and what every strategy came to.
func (r *report) lines() string {
	var b strings.Builder
	var columns []string
	for _, row := range r.Rows {
		for _, st := range row.Strategies {
			if !slices.Contains(columns, st) && slices.ContainsFunc(r.Figures, func(f figure) bool { return f.Strategy == st }) {
				columns = append(columns, st)
			}
		}
	}
	fmt.Fprintf(&b, "| scenario | figure | target | %s |\n|---|---|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, row := range r.Rows {
		for _, t := range row.Targets {
			name := strings.TrimSpace(t.Figure)
			fmt.Fprintf(&b, "| %s | %s | %s |", row.Name, name, row.target(name))
			for _, st := range columns {
				fmt.Fprintf(&b, " %s |", r.cell(row, st, name))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// notes say why targets are missed, and where rivals are better.
const notes = `## Remarks

- E1 at 1/s and size 1 with Retry-After: each refusal costs a whole second, which is a request's share of the rate.
- E1 "until full" at 5/s: a reset rounded up to a second is all that server says about time; weir waits for it.
- E1 and E2: whoever asks again and again finishes as early, or earlier, at up to 30 refusals per success. What it
  costs to be refused (a ban, a longer pause, somebody else's share) is not part of these servers.
- E2 without any hint: to burst and ask again and again gets more out of a window than pacing does, at more refusals.
  With Retry-After weir recognises the window.
- E2 with x-ratelimit-requests: those who use these names mean the time until a bucket is full, and so weir takes it
  for one that refills. That it is a window is found out by refusals: one in each window, or some more if the first
  window that is seen ends at once.
- E4: about two fifths of the refusals are those of the first second, when eight newcomers meet.
- E5 at three tenths: the retry allowance is spent. From half on the circuit opens, which is its setting (FailureRate);
  a majority of its probes closes it again. The row without the breaker shows what the allowance and the in-flight
  limit permit. The targets are those of a retry allowance alone.
- E6: goodput counts the requests that were given up during the recovery.
- E7, one process: the first refusal costs 5 s, then the share of a suspected window is spread to see whether it is
  one. How slowly a guessed rate grows was chosen by this scenario, on other seeds: 14.5 to 18.7 s for 2 to 5 s.
- E8: p99 depends on whether a hedge meets the slow replica again (one in ten does).
- E9: a unit of a budget counts until Per after its answer came, here 100 ms later: 100 in 1.1 s, so that the server
  sees no more than 100 in any second.
- E10: requests of one lane come in clumps and wait for one another; with one request at a time it is three slots.
  There are no weights: a tenant of double weight is given two lanes.
- Crowd: the first flight is 64 at most. Without any hint some more are refused while the window is made out.
`

func (row summary) told() string {
	if len(row.Targets) == 0 {
		return ""
	}
	return row.Name
}

func (row summary) target(name string) string {
	var all []string
	for _, t := range row.Targets {
		if strings.TrimSpace(t.Figure) == name {
			sign := "≥"
			if t.AtMost {
				sign = "≤"
			}
			all = append(all, sign+" "+short(t.Want))
		}
	}
	return strings.Join(all, ", ")
}

func (r *report) cell(row summary, strategy, name string) string {
	var v []float64
	for _, f := range r.Figures {
		if f.Scenario == row.Name && f.Strategy == strategy && strings.TrimSpace(f.Name) == name {
			v = append(v, f.Value)
		}
	}
	if len(v) == 0 {
		return ""
	}
	slices.Sort(v)
	median := (v[(len(v)-1)/2] + v[len(v)/2]) / 2
	text := short(median)
	if v[0] != v[len(v)-1] {
		text += fmt.Sprintf(" (%s to %s)", short(v[0]), short(v[len(v)-1]))
	}
	if strategy != "weir" {
		return text
	}
	for _, t := range row.Targets {
		if strings.TrimSpace(t.Figure) != name {
			continue
		}
		if t.AtMost && median > t.Want+5e-4 || !t.AtMost && median < t.Want-5e-4 {
			return text + " **missed**"
		}
	}
	return text
}

func short(x float64) string {
	switch {
	case x == math.Trunc(x) && math.Abs(x) < 1e6:
		return fmt.Sprintf("%.0f", x)
	case math.Abs(x) >= 100:
		return fmt.Sprintf("%.0f", x)
	case math.Abs(x) >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.3f", x)
}
