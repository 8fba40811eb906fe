package population

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// A Run is a case and what one caller made of it.
type Run struct {
	Case *Case
	Result
}

// Tables renders what the callers made of the cases, weir before all, as
// Markdown. Each case was played by all callers, or by weir alone.
func Tables(runs []Run) string {
	var b strings.Builder
	ours := by(runs, func(r Run) bool { return r.Caller == "weir" })
	if len(ours) == 0 {
		ours = runs
	}
	table(&b, "All callers", callerRows(runs))
	versus(&b, runs)
	table(&b, "What can be reached: a client that knows all once it has heard of the limit", taught(ours))
	table(&b, "weir, by kind of server", rows(ours, func(r Run) string { return r.Case.Kind }))
	table(&b, "weir, by dialect", rows(ours, func(r Run) string { return r.Case.Dialect.name }))
	table(&b, "weir, by what else differs", classes(ours))
	slow := by(ours, func(r Run) bool { return r.Case.Works.kind != "" })
	table(&b, "weir, by how long the server works", rows(ours, func(r Run) string { return r.Case.Works.class() }))
	table(&b, "weir, servers that work for long, by kind", rows(slow, func(r Run) string { return r.Case.Kind }))
	table(&b, "weir, servers that work for long, by dialect", rows(slow, func(r Run) string { return r.Case.Dialect.name }))
	matrix(&b, runs)
	worst(&b, ours, 15)
	return b.String()
}

func by(runs []Run, in func(Run) bool) (some []Run) {
	for _, r := range runs {
		if in(r) {
			some = append(some, r)
		}
	}
	return some
}

// A row is a table's line: what some runs have in common.
type row struct {
	name string
	runs []Run
}

// rows groups runs by a name, in the order of the names.
func rows(runs []Run, name func(Run) string) (all []row) {
	for _, r := range runs {
		n := name(r)
		i := slices.IndexFunc(all, func(x row) bool { return x.name == n })
		if i < 0 {
			all = append(all, row{name: n})
			i = len(all) - 1
		}
		all[i].runs = append(all[i].runs, r)
	}
	slices.SortFunc(all, func(a, b row) int { return cmp.Compare(a.name, b.name) })
	return all
}

// callerRows are the callers in their order, with and without the dialect that
// tells refusals from outages by nothing.
func callerRows(runs []Run) (all []row) {
	names := []string{}
	for _, r := range runs {
		if !slices.Contains(names, r.Caller) {
			names = append(names, r.Caller)
		}
	}
	for _, n := range names {
		all = append(all, row{n, by(runs, func(r Run) bool { return r.Caller == n })})
	}
	for _, n := range names {
		all = append(all, row{n + ", without bare 503", by(runs, func(r Run) bool { return r.Caller == n && r.Case.Dialect.name != "bare 503" })})
	}
	return all
}

// taught is what a pupil makes of the same cases; it never stalls, and quotas that are raised are
// known to it.
func taught(ours []Run) []row {
	var all []Run
	for _, r := range ours {
		all = append(all, Run{r.Case, r.Case.Taught()})
	}
	heard := by(all, func(r Run) bool { return r.Case.Dialect.name != "bare 503" })
	return slices.Concat([]row{{"all", all}, {"without bare 503", heard}}, classes(all), rows(all, func(r Run) string { return r.Case.Kind }))
}

// classes are kinds of case that cut across the others.
func classes(runs []Run) []row {
	class := func(name string, in func(c *Case) bool) row {
		return row{name, by(runs, func(r Run) bool { return in(r.Case) })}
	}
	kinds := func(names ...string) func(c *Case) bool {
		return func(c *Case) bool { return slices.Contains(names, c.Kind) }
	}
	return []row{
		class("one ordinary limiter, or two", kinds("window by clock", "window from first request", "sliding log", "sliding counter", "token bucket",
			"nginx limit_req", "two limits", "refused requests count")),
		class("routes, bans, others' use, concurrency", kinds("limits by route", "bans", "shared with others", "concurrency")),
		class("states its quota on all answers", func(c *Case) bool { return c.Dialect.states && c.Everywhere }),
		class("states its quota on refusals only", func(c *Case) bool { return c.Dialect.states && !c.Everywhere }),
		class("states no quota", func(c *Case) bool { return !c.Dialect.states }),
		class("Config{}", func(c *Case) bool { return c.Wait == 0 }),
		class("MaxWait 10 min", func(c *Case) bool { return c.Wait > 0 }),
		class("batch", func(c *Case) bool { return c.Demand.Load == 0 }),
		class("Poisson", func(c *Case) bool { return c.Demand.Kind == "Poisson" }),
		class("bursts", func(c *Case) bool { return c.Demand.Kind == "bursts" }),
		class("open demand below 0.85 of the rate", func(c *Case) bool { return c.Demand.Load > 0 && c.Demand.Load < .85 }),
		class("round trip from 150 ms", func(c *Case) bool { return c.RTT >= 150*time.Millisecond }),
		class("the same, and no refusal lasts over 2 s", func(c *Case) bool { return c.RTT >= 150*time.Millisecond && c.longest <= 2*time.Second }),
		class("works for long on what it accepts", func(c *Case) bool { return c.Works.kind != "" }),
		class("answers at once, or limits requests at a time", func(c *Case) bool { return c.Works.kind == "" }),
		class("clock off by a second or more", func(c *Case) bool { return c.Skew.Abs() >= time.Second }),
	}
}

const head = "cases | that lose | lost % | refusals p50 / p90 / p99 | time p50 / p90 / p99 | stall p90 | raised quota found p50 / p90"

func table(b *strings.Builder, title string, all []row) {
	fmt.Fprintf(b, "## %s\n\n| | %s |\n| --- |%s\n", title, head, strings.Repeat(" ---: |", strings.Count(head, "|")+1))
	for _, r := range all {
		if len(r.runs) > 0 {
			fmt.Fprintf(b, "| %s | %s |\n", r.name, line(r.runs))
		}
	}
	b.WriteByte('\n')
}

// line is the figures of some runs. Times are those of the cases in which
// nothing was lost: who gives up is soon done.
func line(runs []Run) string {
	var calls, lost, losing int
	var refusals, times, stalls, finds []float64
	for _, r := range runs {
		calls, lost = calls+r.Calls, lost+r.Lost
		refusals, stalls = append(refusals, r.refusals()), append(stalls, r.Stall)
		if r.Lost > 0 {
			losing++
		} else {
			times = append(times, r.Time)
		}
		if r.Found >= 0 {
			finds = append(finds, r.Found)
		}
	}
	return fmt.Sprintf("%d | %d | %.2f | %s | %s | %s | %s", len(runs), losing, 100*float64(lost)/float64(calls),
		quantiles(refusals, .5, .9, .99), quantiles(times, .5, .9, .99), quantiles(stalls, .9), quantiles(finds, .5, .9))
}

// quantiles are written with two or three digits that count.
func quantiles(v []float64, at ...float64) string {
	if len(v) == 0 {
		return "-"
	}
	var all []string
	for _, q := range at {
		all = append(all, digits(quantile(v, q)))
	}
	return strings.Join(all, " / ")
}

// quantile is the least value that a share q of them does not exceed.
func quantile(v []float64, q float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[max(0, int(math.Ceil(q*float64(len(v))))-1)]
}

func digits(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x < .9995:
		return strings.TrimPrefix(fmt.Sprintf("%.3f", x), "0")
	case x < 9.995:
		return fmt.Sprintf("%.2f", x)
	case x < 99.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// versus compares weir with each other caller case by case, where neither
// lost anything.
func versus(b *strings.Builder, runs []Run) {
	others := rows(by(runs, func(r Run) bool { return r.Caller != "weir" }), func(r Run) string { return r.Caller })
	type key struct {
		seed  uint64
		index int
	}
	ours := map[key]Run{}
	for _, r := range runs {
		if r.Caller == "weir" {
			ours[key{r.Case.Seed, r.Index}] = r
		}
	}
	if len(others) == 0 || len(ours) == 0 {
		return
	}
	b.WriteString("## Case by case\n\n| weir beside | cases where neither loses | weir at least 1.5 times slower | as much faster | cases only weir loses | only the other |\n| --- | ---: | ---: | ---: | ---: | ---: |\n")
	for _, o := range others {
		var both, slower, faster, mine, its int
		for _, r := range o.runs {
			switch w := ours[key{r.Case.Seed, r.Index}]; {
			case w.Lost > 0 && r.Lost == 0:
				mine++
			case w.Lost == 0 && r.Lost > 0:
				its++
			case w.Lost > 0:
			default:
				both++
				if w.Time > 1.5*r.Time {
					slower++
				} else if r.Time > 1.5*w.Time {
					faster++
				}
			}
		}
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %d |\n", o.name, both, slower, faster, mine, its)
	}
	b.WriteByte('\n')
}

// matrix has for each kind of server what each caller loses and its time.
func matrix(b *strings.Builder, runs []Run) {
	callers := callerRows(runs)
	callers = callers[:len(callers)/2]
	if len(callers) < 2 {
		return
	}
	b.WriteString("## All callers, by kind of server: lost %, refusals p90, time p90\n\n|")
	for _, c := range callers {
		b.WriteString(" | " + c.name)
	}
	fmt.Fprintf(b, " |\n| --- |%s\n", strings.Repeat(" ---: |", len(callers)))
	for _, k := range rows(runs, func(r Run) string { return r.Case.Kind }) {
		b.WriteString("| " + k.name)
		for _, c := range callers {
			f := strings.Split(line(by(k.runs, func(r Run) bool { return r.Caller == c.name })), " | ")
			p90 := func(s string) string { return append(strings.Split(s, " / "), "-")[1] }
			fmt.Fprintf(b, " | %s; %s; %s", f[2], p90(f[3]), p90(f[4]))
		}
		b.WriteString(" |\n")
	}
	b.WriteByte('\n')
}

// Badness is one number for a run: ten times the share of calls that was lost,
// and how often time doubled, and refusals.
func (r *Run) Badness() float64 {
	bad := 10*float64(r.Lost)/float64(r.Calls) + math.Log2(1+r.refusals())
	if r.Lost == 0 {
		bad += max(0, math.Log2(r.Time))
	}
	return bad
}
