package result

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func example() Table {
	return Table{ID: "t", Title: "Title", Columns: []Column{{Name: "ns", Better: -1, Slack: .1}, {Name: "ok", Better: 1}},
		Rows: []Row{
			{Name: "base", Aside: true, Cells: []Cell{Num(1), Num(9)}},
			{Name: "weir", Ours: true, Cells: []Cell{Num(100), Num(7)}},
			{Name: "near", Cells: []Cell{Num(95), Num(8)}},
			{Name: "lost", Failed: true, Cells: []Cell{Num(2), Num(99)}},
			{Name: "none", Cells: []Cell{None(), None()}},
		}}
}

func TestMarkdown(t *testing.T) {
	want := `|      |     ns |    ok |
| ---- | -----: | ----: |
| base |      1 |     9 |
| weir |    100 |     7 |
| near | **95** | **8** |
| lost |      2 |    99 |
| none |      - |     - |
`
	if got := example().Markdown(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := example().Text(); strings.Contains(got, "**") || !strings.HasPrefix(got, "Title\n") {
		t.Errorf("text: got\n%s", got)
	}
}

// TestAhead: what is within the noise is no lead, and neither are rows that
// did less.
func TestAhead(t *testing.T) {
	got := example().Ahead()
	if want := []string{"Title, ok: near 8, weir 7"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	table := example()
	table.Rows[2].Cells[0] = Num(80)
	if got := table.Ahead(); len(got) != 2 {
		t.Errorf("a lead of a fifth: got %q", got)
	}
}

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := Replace(path, "x"); err != nil {
		t.Errorf("no page: %v", err)
	}
	for _, tt := range []struct{ name, old, want string }{
		{"no markers", "a\n", "a\n"},
		{"one marker", "a\n<!-- bench -->\n", "a\n<!-- bench -->\n"},
		{"old text goes", "a\n<!-- bench -->\nold\n<!-- /bench -->\nz\n", "a\n<!-- bench -->\nnew\n<!-- /bench -->\nz\n"},
	} {
		if err := os.WriteFile(path, []byte(tt.old), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := Replace(path, "new\n"); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != tt.want {
			t.Errorf("%s: got %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	r := Run{Commit: "c", Sections: []Section{{Name: "s", Tables: []Table{example()}}}}
	if err := r.WriteJSON(path); err != nil {
		t.Fatal(err)
	}
	got, err := ReadJSON(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.Full("") != r.Full("") {
		t.Errorf("got\n%s\nwant\n%s", got.Full(""), r.Full(""))
	}
}

// TestBusy: a page says that the machine was busy when it was.
func TestBusy(t *testing.T) {
	r := Run{Command: "go run ./bench", Machine: Machine{Before: "5 5 5"}}
	if got := r.where(); strings.Contains(got, "Other programs") || strings.Contains(got, "busy") {
		t.Errorf("not known: %s", got)
	}
	for _, tt := range []struct {
		others float64
		says   string
		busy   bool
	}{{.3, "took 0 %", false}, {9, "took 9 %", false}, {31, "took 31 %", true}} {
		r.Machine.Others = &tt.others
		if got := r.where(); !strings.Contains(got, tt.says) || strings.Contains(got, "busy") != tt.busy {
			t.Errorf("others took %v %%: %s", tt.others, got)
		}
	}
}

// The README has weir's figures and the range of the others', the page all of them.
func TestBrief(t *testing.T) {
	r, err := ReadJSON("../results/results.json")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if brief := strings.TrimSpace(r.Brief("bench/results/")); !strings.Contains(string(readme), brief) {
		t.Errorf("README.md has not what the last run says:\n%s", brief)
	}
	table := Table{
		Columns: []Column{{Name: "ns"}, {Name: "allocations", Digits: 1}},
		Rows: []Row{
			{Name: "net/http", Aside: true, Cells: []Cell{Num(1), Num(1)}},
			{Name: "weir", Ours: true, Cells: []Cell{Num(600), Num(3)}},
			{Name: "a", Cells: []Cell{Num(500), None()}},
			{Name: "b", Cells: []Cell{Num(700), Num(24)}},
			{Name: "c", Cells: []Cell{Num(6000), Num(5)}},
		},
	}
	for i, want := range []string{"600 beside 500 to 6000", "3.0 beside 5.0 to 24.0"} {
		if got := table.ours(i) + " beside " + table.others(i); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := strings.Join(table.names(), " "); got != "a b c" {
		t.Errorf("rivals %q", got)
	}
}
