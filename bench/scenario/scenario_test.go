package scenario

import (
	"math"
	"testing"
	"time"
)

// TestSmoke runs every scenario in its smallest size: nothing is said about
// speed, but every rival must come up and every table be complete.
func TestSmoke(t *testing.T) {
	for _, s := range All() {
		t.Run(s.Name, func(t *testing.T) {
			tables, plots, err := s.Run(t.Context(), Tiny)
			if err != nil {
				t.Fatal(err)
			}
			ids := make(map[string]bool)
			for _, table := range tables {
				if table.ID == "" || ids[table.ID] {
					t.Errorf("table %q: its id is empty or taken", table.ID)
				}
				ids[table.ID] = true
				if len(table.Rows) < 3 {
					t.Errorf("%s: %d rows", table.ID, len(table.Rows))
				}
				for _, r := range table.Rows {
					if r.Name == "" || len(r.Cells) != len(table.Columns) {
						t.Errorf("%s: row %q has %d cells, want %d", table.ID, r.Name, len(r.Cells), len(table.Columns))
					}
					for i, c := range r.Cells {
						if math.IsNaN(c.Value) || math.IsInf(c.Value, 0) {
							t.Errorf("%s: %s: %s is %v", table.ID, r.Name, table.Columns[i].Name, c.Value)
						}
					}
				}
			}
			for _, p := range plots {
				if err := p.WriteSVG(t.TempDir() + "/" + p.ID + ".svg"); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestIdeal(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for _, tt := range []struct {
		name string
		q    quota
		n    int
		want time.Duration
	}{
		{"window", &window{limits: []int{50}, phase: ms(370)}, 500, ms(8630)},
		{"window, first only", &window{limits: []int{50}, phase: ms(370)}, 50, 0},
		{"changing window", &window{limits: []int{100, 100, 20, 20, 20, 20, 60}, phase: ms(370)}, 500, ms(8630)},
		{"bucket", &bucket{perSecond: 50, size: 10, level: 10}, 500, ms(9800)},
		{"sliding", &slidingLog{limit: 100, per: 2 * time.Second}, 500, ms(8000)},
	} {
		if got := ideal(tt.q, tt.n); (got - tt.want).Abs() > ms(1) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestOrdeal(t *testing.T) {
	p := plan{healthy: time.Second, down: time.Second, after: time.Second, perSecond: 100}
	var o ordeal
	for i := range 300 {
		at := time.Duration(i) * 10 * time.Millisecond
		o.calls = append(o.calls, call{at, at + time.Millisecond, i < 100 || i >= 230})
		o.attempts = append(o.attempts, at)
	}
	if got, want := o.back(p), 290*time.Millisecond; got != want {
		t.Errorf("back: got %v, want %v", got, want)
	}
	if during, after := o.errors(p); during != 100 || after != 30 {
		t.Errorf("errors: got %d and %d, want 100 and 30", during, after)
	}
	if got := between(o.attempts, p.healthy, p.healthy+p.down); got != 100 {
		t.Errorf("between: got %d, want 100", got)
	}
}

func TestExcess(t *testing.T) {
	var at []time.Duration
	for i := range 50 {
		at = append(at, time.Duration(i)*10*time.Millisecond)
	}
	if got := excess(at, 100, 1); got != 0 {
		t.Errorf("an exact rate: got %d, want 0", got)
	}
	if got := excess(at, 10, 1); got < 40 || got > 45 {
		t.Errorf("ten times the rate: got %d, want 44 or so", got)
	}
	if got := most(at, 100*time.Millisecond); got != 10 {
		t.Errorf("most: got %d, want 10", got)
	}
}
