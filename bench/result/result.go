// Package result holds what the scenarios measured and writes it: as text, as
// JSON, as Markdown and as SVG.
package result

import (
	"encoding/json"
	"os"
	"strconv"
)

// A Run is everything one run of the program measured.
type Run struct {
	Machine  Machine           `json:"machine"`
	Versions map[string]string `json:"versions"` // by module
	Commit   string            `json:"commit"`
	Command  string            `json:"command"`
	Sections []Section         `json:"sections"`
}

// Machine is where a run took place and what else it was doing.
type Machine struct {
	CPU    string     `json:"cpu"`
	Cores  int        `json:"cores"`
	OS     string     `json:"os"`
	Go     string     `json:"go"`
	Date   string     `json:"date"`
	Before string     `json:"load_before"`      // average over 1, 5 and 15 minutes
	Others *float64   `json:"others,omitempty"` // percent of the processors that other programs took meanwhile; nil: not known
	After  string     `json:"load_after"`
	Timer  [2]float64 `json:"timer_lag_ms"` // how late timers were: median, 99th percentile
}

// A Section is one scenario's share of a Run.
type Section struct {
	Name    string  `json:"name"`
	About   string  `json:"about"`
	Seconds float64 `json:"seconds"`
	Tables  []Table `json:"tables"`
	Plots   []Plot  `json:"plots,omitempty"`
}

// A Table has a row per rival.
type Table struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Note    string   `json:"note,omitempty"`
	Columns []Column `json:"columns"`
	Rows    []Row    `json:"rows"`
}

// A Column is one figure of each row.
type Column struct {
	Name   string  `json:"name"`
	Better int     `json:"better,omitempty"` // -1: less, 1: more, 0: neither
	Digits int     `json:"digits"`           // after the point
	Slack  float64 `json:"slack,omitempty"`  // differences below that share are noise
}

// A Row is one rival's figures.
type Row struct {
	Name   string `json:"name"`
	Ours   bool   `json:"ours,omitempty"`   // weir
	Aside  bool   `json:"aside,omitempty"`  // the base itself: compared with nobody
	Failed bool   `json:"failed,omitempty"` // did not do the whole work, so that its other figures say little
	Cells  []Cell `json:"cells"`
}

// A Cell is a figure, or nothing.
type Cell struct {
	Value float64 `json:"value"`
	None  bool    `json:"none,omitempty"`
}

// Num is the cell of a figure.
func Num[T ~int | ~int64 | ~float64](v T) Cell { return Cell{Value: float64(v)} }

// None is the cell of what does not apply.
func None() Cell { return Cell{None: true} }

// Text is what c reads like in column col.
func (c Cell) Text(col Column) string {
	if c.None {
		return "-"
	}
	return strconv.FormatFloat(c.Value, 'f', col.Digits, 64)
}

// A Plot is bars or lines.
type Plot struct {
	ID     string   `json:"id"`
	Title  string   `json:"title"`
	X      string   `json:"x"`
	Y      string   `json:"y"`
	Names  []string `json:"names,omitempty"` // of groups of bars; none: lines
	Series []Series `json:"series"`
}

// A Series is one rival's bars, one per name, or its line.
type Series struct {
	Name string    `json:"name"`
	X    []float64 `json:"x,omitempty"`
	Y    []float64 `json:"y"`
}

// Table returns the table of that ID.
func (r Run) Table(id string) (Table, bool) {
	for _, s := range r.Sections {
		for _, t := range s.Tables {
			if t.ID == id {
				return t, true
			}
		}
	}
	return Table{}, false
}

// WriteJSON writes r to a file.
func (r Run) WriteJSON(path string) error {
	b, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// ReadJSON reads what WriteJSON wrote.
func ReadJSON(path string) (Run, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Run{}, err
	}
	var r Run
	return r, json.Unmarshal(b, &r)
}
