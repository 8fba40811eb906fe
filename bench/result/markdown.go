package result

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Markdown is t as a table; the best figures of a column are bold.
func (t Table) Markdown() string { return t.render("**") }

// Text is t for a terminal.
func (t Table) Text() string { return t.Title + "\n\n" + t.render("") }

func (t Table) render(bold string) string {
	grid := [][]string{{""}}
	for _, c := range t.Columns {
		grid[0] = append(grid[0], c.Name)
	}
	for _, r := range t.Rows {
		line := []string{r.Name}
		for i, c := range r.Cells {
			text := c.Text(t.Columns[i])
			if t.best(i, r) {
				text = bold + text + bold
			}
			line = append(line, text)
		}
		grid = append(grid, line)
	}
	return align(grid)
}

// best reports whether r's figure in column i is the best, as shown, of those
// that may be compared.
func (t Table) best(i int, r Row) bool {
	col := t.Columns[i]
	if col.Better == 0 || r.Aside || r.Failed || r.Cells[i].None {
		return false
	}
	for _, o := range t.Rows {
		if !o.Aside && !o.Failed && !o.Cells[i].None && less(col, o.Cells[i].Value, r.Cells[i].Value) && o.Cells[i].Text(col) != r.Cells[i].Text(col) {
			return false
		}
	}
	return true
}

// less reports whether a is the better figure.
func less(c Column, a, b float64) bool {
	if c.Better > 0 {
		return a > b
	}
	return a < b
}

// Ahead lists where a rival is ahead of every row of ours, by more than noise.
func (t Table) Ahead() []string {
	var out []string
	for i, c := range t.Columns {
		ours, theirs := t.leader(i, true), t.leader(i, false)
		if c.Better == 0 || ours == nil || theirs == nil {
			continue
		}
		a, b := theirs.Cells[i], ours.Cells[i]
		if !less(c, a.Value, b.Value) || a.Text(c) == b.Text(c) {
			continue
		}
		if diff := max(a.Value-b.Value, b.Value-a.Value); diff <= c.Slack*max(a.Value, b.Value) {
			continue
		}
		out = append(out, fmt.Sprintf("%s, %s: %s %s, %s %s", t.Title, c.Name, theirs.Name, a.Text(c), ours.Name, b.Text(c)))
	}
	return out
}

// leader is the best row of ours, or of theirs, in column i.
func (t Table) leader(i int, ours bool) *Row {
	var best *Row
	for j, r := range t.Rows {
		if r.Ours != ours || r.Aside || r.Failed || r.Cells[i].None {
			continue
		}
		if best == nil || less(t.Columns[i], r.Cells[i].Value, best.Cells[i].Value) {
			best = &t.Rows[j]
		}
	}
	return best
}

// align writes a grid as a Markdown table: names to the left, figures to the
// right.
func align(grid [][]string) string {
	width := make([]int, len(grid[0]))
	for _, line := range grid {
		for i, s := range line {
			width[i] = max(width[i], utf8.RuneCountInString(s), 3)
		}
	}
	rule := make([]string, len(width))
	for i, w := range width {
		rule[i] = strings.Repeat("-", w)
		if i > 0 {
			rule[i] = strings.Repeat("-", w-1) + ":"
		}
	}
	var b strings.Builder
	for _, line := range slices.Insert(slices.Clone(grid), 1, rule) {
		for i, s := range line {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(s))
			if i == 0 {
				s += pad
			} else {
				s = pad + s
			}
			b.WriteString("| " + s + " ")
		}
		b.WriteString("|\n")
	}
	return b.String()
}
