package population

import (
	"strings"
	"testing"
)

func TestTables(t *testing.T) {
	var runs []Run
	for i := range 10 {
		c := Draw(Train, 1, i)
		c.Kind, c.Dialect = "token bucket", plain()[0]
		ours := Result{Index: i, Caller: "weir", Calls: 100, Refused: i, Time: 1 + float64(i), Stall: float64(i), Found: -1}
		if i == 9 {
			ours.Lost, ours.Why = 50, map[string]int{"429 Too Many Requests": 50}
		}
		theirs := Result{Index: i, Caller: "plain loop", Calls: 100, Refused: 200, Time: 1.1, Found: 3}
		runs = append(runs, Run{c, ours}, Run{c, theirs})
	}
	page := Tables(runs)
	for _, want := range []string{
		"| weir | 10 | 1 | 5.00 | .040 / .080 / .180 | 5.00 / 9.00 / 9.00 | 8.00 | - |",
		"| plain loop | 10 | 0 | 0.00 | 2.00 / 2.00 / 2.00 | 1.10 / 1.10 / 1.10 | 0 | 3.00 / 3.00 |",
		"| plain loop | 9 | 8 | 0 | 1 | 0 |", // case by case
		"| token bucket | 10 | 1 | 5.00 |",
		"| bare 429 | 10 | 1 | 5.00 |",
		"| token bucket | 5.00; .080; 9.00 | 0.00; 2.00; 1.10 |",
		"- badness 5.2: lost 50 of 100",
		"go run ./bench/sim/population/report -set train -seed 1 -case 9",
		"  - 50 x 429 Too Many Requests",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}

func TestQuantile(t *testing.T) {
	v := []float64{5, 1, 4, 2, 3}
	for q, want := range map[float64]float64{0: 1, .2: 1, .5: 3, .9: 5, 1: 5} {
		if got := quantile(v, q); got != want {
			t.Errorf("quantile %v: got %v, want %v", q, got, want)
		}
	}
}

func TestSlowest(t *testing.T) {
	var runs []Run
	for i := range 4 {
		c := Draw(Train, 1, i)
		c.Dialect = plain()[0]
		runs = append(runs, Run{c, Result{Index: i, Caller: "weir", Calls: 100, Time: 1 + float64(i)}})
	}
	runs[3].Lost = 1 // who gives up is soon done
	page := Slowest(runs, 1)
	if !strings.Contains(page, "-case 2") || strings.Contains(page, "-case 1") || strings.Contains(page, "-case 3") {
		t.Errorf("got %s, want case 2 alone", page)
	}
	if page := Slowest(runs, 0); page != "" {
		t.Errorf("got %q for none", page)
	}
}
