package population

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// worst lists the worst cases, and those that lose calls to a server that says
// more than a bare 503: none should.
func worst(b *strings.Builder, runs []Run, n int) {
	runs = slices.SortedFunc(slices.Values(runs), func(x, y Run) int { return cmp.Compare(y.Badness(), x.Badness()) })
	var sum float64
	for _, r := range runs {
		sum += r.Badness()
	}
	fmt.Fprintf(b, "## weir's worst cases\n\nBadness is 10 x the share lost + log2 of the time + log2(1 + refusals per success); its mean is %.3f.\n\n", sum/float64(len(runs)))
	for _, r := range runs[:min(n, len(runs))] {
		r.item(b)
	}
	b.WriteString("\n## weir's cases that lose calls, without bare 503\n\n")
	for _, r := range runs {
		if r.Lost > 0 && r.Case.Dialect.name != "bare 503" {
			r.item(b)
		}
	}
}

// Slowest lists the n cases of those without bare 503 in which weir loses no call and takes
// the most time.
func Slowest(runs []Run, n int) string {
	runs = by(runs, func(r Run) bool { return r.Caller == "weir" && r.Lost == 0 && r.Case.Dialect.name != "bare 503" })
	if n = min(n, len(runs)); n == 0 {
		return ""
	}
	slices.SortFunc(runs, func(x, y Run) int { return cmp.Compare(y.Time, x.Time) })
	var b strings.Builder
	b.WriteString("\n## weir's slowest cases\n\n")
	for _, r := range runs[:n] {
		r.item(&b)
	}
	return b.String()
}

// item is a case in a list, with the command that replays it.
func (r *Run) item(b *strings.Builder) {
	fmt.Fprintf(b, "- badness %.1f: lost %d of %d, %s refusals per success, time %s, stall %s s: %v\n  `%s`\n",
		r.Badness(), r.Lost, r.Calls, digits(r.refusals()), digits(r.Time), digits(r.Stall), r.Case, r.Case.Replay())
	for _, why := range often(r.Why, 3) {
		fmt.Fprintf(b, "  - %d x %s\n", r.Why[why], why)
	}
	if r.Panics != "" {
		fmt.Fprintf(b, "  - panic: %s\n", r.Panics)
	}
}

// often are the n commonest reasons.
func often(why map[string]int, n int) []string {
	all := slices.SortedFunc(maps.Keys(why), func(a, b string) int {
		return cmp.Or(cmp.Compare(why[b], why[a]), cmp.Compare(a, b))
	})
	return all[:min(n, len(all))]
}
