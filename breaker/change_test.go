package breaker

import (
	"net/http"
	"testing"
	"testing/synctest"
)

// The hook is told what an operator does, and of a verdict of Classify.
func TestReasonsOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saw []Change
		cs := circuits(t, Config{
			Consecutive:   1,
			Classify:      func(*http.Response, error) Outcome { return Failure },
			OnStateChange: func(c Change) { saw = append(saw, c) },
		})
		rt := cs.Meter(&host{answer: status(200)})
		get(rt, site)
		cs.Force("a.example", Open)
		cs.Release("a.example")
		for range 20 {
			get(rt, site)
		}
		if len(saw) < 2 || saw[0].Reason != "forced open by hand" || saw[1].Reason != "released by hand" || saw[1].To != Closed {
			t.Fatalf("changes %+v", saw)
		}
		if last := saw[len(saw)-1]; last.To != Open || cs.State("a.example") != Open {
			t.Errorf("twenty answers that Classify calls failures: %+v", saw)
		}
	})
}
