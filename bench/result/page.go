package result

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
)

const begin, end = "<!-- bench -->", "<!-- /bench -->"

// Replace puts text between the markers of a page. A page without them, or no
// page, is left alone.
func Replace(path, text string) error {
	old, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	head, rest, ok := bytes.Cut(old, []byte(begin))
	_, tail, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		return nil
	}
	page := slices.Concat(head, []byte(begin+"\n"+strings.TrimSpace(text)+"\n"+end), tail)
	if bytes.Equal(page, old) {
		return nil
	}
	return os.WriteFile(path, page, 0o644)
}

// where says on what and how r was measured.
func (r Run) where() string {
	m, busy := r.Machine, ""
	if m.Others != nil {
		busy = fmt.Sprintf(" Other programs took %.0f %% of the processors meanwhile.", *m.Others)
	}
	if m.Others != nil && *m.Others >= 10 {
		busy += " **The machine was busy with other work**: what depends on speed is rough, and the tables of waiting (quota, outage, herd) are worse than on a quiet one."
	}
	if strings.Contains(r.Command, "-quick") {
		busy += " A `-quick` run: fewer calls and shorter waits than the full one, in which the start of a quota weighs more."
	}
	return fmt.Sprintf("Measured by `%s` on %s: %s, %d cores, %s, %s; commit %s. Load average %s before, %s after; timers late by %.1f ms (median), %.1f ms (99th percentile).",
		r.Command, m.Date, m.CPU, m.Cores, m.OS, m.Go, r.Commit, m.Before, m.After, m.Timer[0], m.Timer[1]) + busy
}

// Full is the whole run as Markdown; plots are linked from folder.
func (r Run) Full(folder string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.where())
	if ahead := r.ahead(); len(ahead) > 0 {
		fmt.Fprintf(&b, "### Where a rival is ahead\n\n- %s\n\n", strings.Join(ahead, "\n- "))
	}
	if t := r.summary(); len(t.Rows) > 0 {
		fmt.Fprintf(&b, "### All in one table\n\n%s\n%s\n\n", t.Markdown(), summaryNote)
	}
	for _, s := range r.Sections {
		fmt.Fprintf(&b, "### %s\n\n%s (%.0f s)\n\n", strings.ToUpper(s.Name[:1])+s.Name[1:], s.About, s.Seconds)
		for _, p := range s.Plots {
			fmt.Fprintf(&b, "![%s](%s%s.svg)\n\n", p.Title, folder, p.ID)
		}
		for _, t := range s.Tables {
			fmt.Fprintf(&b, "**%s**\n\n%s\n%s\n\n", t.Title, t.Markdown(), t.Note)
		}
	}
	fmt.Fprintf(&b, "### Versions\n\n")
	for _, path := range slices.Sorted(keys(r.Versions)) {
		if v := r.Versions[path]; v != "" && strings.Contains(measured, " "+path+" ") {
			fmt.Fprintf(&b, "- %s %s\n", path, v)
		}
	}
	return b.String()
}

// measured are the modules whose versions a page shows.
const measured = " github.com/failsafe-go/failsafe-go github.com/hashicorp/go-retryablehttp github.com/gojek/heimdall/v7 github.com/go-resty/resty/v2 " +
	"github.com/sony/gobreaker/v2 github.com/cenkalti/backoff/v4 golang.org/x/time go.uber.org/ratelimit github.com/throttled/throttled/v2 " +
	"github.com/sethvargo/go-limiter github.com/go-redis/redis_rate/v10 github.com/redis/go-redis/v9 "

func keys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (r Run) ahead() []string {
	var out []string
	for _, s := range r.Sections {
		for _, t := range s.Tables {
			out = append(out, t.Ahead()...)
		}
	}
	return out
}

// summary has one row per rival.
func (r Run) summary() Table {
	t := Table{Columns: []Column{
		{Name: "added to a GET, ns", Better: -1}, {Name: "allocations", Better: -1, Digits: 1}, {Name: "throughput, of net/http", Better: 1, Digits: 2, Slack: .06},
		{Name: "quota not told: calls lost of 100", Better: -1, Digits: 1}, {Name: "quota not told: 429 per success", Better: -1, Digits: 2},
		{Name: "outage: attempts per call", Better: -1, Digits: 2}, {Name: "outage: recovered after ms", Better: -1}, {Name: "outage: failed of 100 calls", Better: -1},
	}}
	over, _ := r.Table("overhead")
	for _, name := range r.rivals() {
		row := Row{Name: name, Ours: strings.HasPrefix(name, "weir"), Aside: name == "net/http"}
		cost := find(over, func(s string) bool { return s == name || strings.HasPrefix(s, name+" + ") })
		row.Cells = append(row.Cells, cell(cost, 0), cell(cost, 2), r.cell("http1", name, 1))
		row.Cells = append(row.Cells, r.quota(name)...)
		row.Cells = append(row.Cells, r.cell("outage503", name, 1), r.cell("outage503", name, 2), r.outageErrors(name))
		t.Rows = append(t.Rows, row)
	}
	return t
}

const summaryNote = "The row net/http is the cost of the base alone. Timeouts are on. The quotas are those of five kinds of servers. In the outage the server answers 503. " +
	"\"weir, patient\" lets calls wait for an open circuit (`Breaker.Patience`)."

// Brief is what the README shows: three figures of weir's, what the others have
// there, and when that was measured.
func (r Run) Brief(folder string) string {
	t := r.summary()
	line := func(text string, columns ...int) string {
		var cells []any
		for _, c := range columns {
			cells = append(cells, t.ours(c))
		}
		for _, c := range columns {
			cells = append(cells, t.others(c))
		}
		return fmt.Sprintf("- "+text+"\n", cells...)
	}
	return line("**A call costs** %s ns and %s allocations. With the others it costs %s ns and %s allocations.", 0, 1) +
		line("**If the client is not told the quota**, %s of 100 calls fail, and %s requests are refused for each success. With the others %s calls fail, and %s requests are refused.", 3, 4) +
		line("**In an outage**, each call sends %s attempts to the server, and calls succeed again %s ms after it. With the others it is %s attempts, and %s ms.", 5, 6) + "\n" +
		"Measured on " + r.Machine.Date + ", at commit " + r.Commit + ". The others are " + strings.Join(t.names(), ", ") + ". [Performance](docs/performance.md) has their figures one by one, says where they are ahead, and how all this was measured.\n\n" +
		"![Refusals per success](" + folder + "quota-429.svg)\n"
}

// ours is what stands in a column of weir's row.
func (t Table) ours(column int) string {
	return cell(find(t, func(s string) bool { return s == "weir" }), column).Text(t.Columns[column])
}

// others is the range of a column over the rivals.
func (t Table) others(column int) string {
	var all []Cell
	for _, row := range t.Rows {
		if c := row.Cells[column]; !row.Ours && !row.Aside && !c.None {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return "-"
	}
	by := func(a, b Cell) int { return cmp.Compare(a.Value, b.Value) }
	return slices.MinFunc(all, by).Text(t.Columns[column]) + " to " + slices.MaxFunc(all, by).Text(t.Columns[column])
}

// names are the rivals.
func (t Table) names() (names []string) {
	for _, row := range t.Rows {
		if !row.Ours && !row.Aside {
			names = append(names, row.Name)
		}
	}
	return names
}

// rivals are the rows of the outage, in its order.
func (r Run) rivals() []string {
	t, _ := r.Table("outage503")
	var out []string
	for _, row := range t.Rows {
		out = append(out, row.Name)
	}
	return out
}

func find(t Table, match func(string) bool) *Row {
	for i, r := range t.Rows {
		if match(r.Name) {
			return &t.Rows[i]
		}
	}
	return nil
}

func cell(r *Row, i int) Cell {
	if r == nil {
		return None()
	}
	return r.Cells[i]
}

func (r Run) cell(id, name string, i int) Cell {
	t, _ := r.Table(id)
	return cell(find(t, func(s string) bool { return s == name }), i)
}

// quota sums up a rival's five quotas: calls lost of 100, 429 per success.
func (r Run) quota(name string) []Cell {
	var ok, lost, refused float64
	for i := 1; ; i++ {
		t, found := r.Table(fmt.Sprintf("quota%d", i))
		if !found {
			break
		}
		row := find(t, func(s string) bool { return s == name })
		if row == nil {
			return []Cell{None(), None()}
		}
		ok, lost, refused = ok+row.Cells[2].Value, lost+row.Cells[3].Value, refused+row.Cells[4].Value*row.Cells[2].Value
	}
	if ok == 0 {
		return []Cell{None(), None()}
	}
	return []Cell{Num(100 * lost / (ok + lost)), Num(refused / ok)}
}

// outageErrors is the share of calls made in the outage that failed.
func (r Run) outageErrors(name string) Cell {
	upstream, per, errors := r.cell("outage503", name, 0), r.cell("outage503", name, 1), r.cell("outage503", name, 4)
	if per.None || per.Value == 0 {
		return None()
	}
	return Num(100 * errors.Value / (upstream.Value / per.Value))
}
