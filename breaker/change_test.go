package breaker_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/weirhttp/weir/breaker"
)

// The hook is told what an operator does, and of a verdict of Classify.
func TestReasonsOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saw []breaker.Change
		cs := circuits(t, breaker.Config{
			Consecutive:   1,
			Classify:      func(*http.Response, error) breaker.Outcome { return breaker.Failure },
			OnStateChange: func(c breaker.Change) { saw = append(saw, c) },
		})
		rt := cs.Meter(&host{answer: status(200)})
		get(rt, site)
		cs.Force("a.example", breaker.Open)
		cs.Release("a.example")
		for range 20 {
			get(rt, site)
		}
		if len(saw) < 2 || saw[0].Reason != "forced open by hand" || saw[1].Reason != "released by hand" || saw[1].To != breaker.Closed {
			t.Fatalf("changes %+v", saw)
		}
		if last := saw[len(saw)-1]; last.To != breaker.Open || cs.State("a.example") != breaker.Open {
			t.Errorf("twenty answers that Classify calls failures: %+v", saw)
		}
	})
}
