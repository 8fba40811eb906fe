package retry_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/retry"
)

// hedgedAfter is how long a request to rt waits for its hedge.
func hedgedAfter(t *testing.T, rt *retry.Transport, d *duel) time.Duration {
	t.Helper()
	d.lanes, d.calls = []lane{{time.Hour, 200}, {0, 200}}, 0
	start := time.Now()
	if status, err := get(t, rt, "GET"); status != 200 || d.calls != 2 {
		t.Fatal(status, err, d.calls)
	}
	return time.Since(start)
}

// Of first tries it is learned how long they take if they have a good answer, and
// of those that lost to their hedge that they took as long as that; of failures,
// which may be quick, nothing. 100 make a quantile.
func TestWhatLatencyLearns(t *testing.T) {
	const after = 100 * time.Millisecond
	for _, tt := range []struct {
		name  string
		lanes []lane
		want  time.Duration // that was learned; 0: nothing
	}{
		{"good", []lane{{50 * time.Millisecond, 200}}, 50 * time.Millisecond},
		{"not found", []lane{{50 * time.Millisecond, 404}}, 50 * time.Millisecond},
		{"lost", []lane{{time.Minute, 200}, {50 * time.Millisecond, 200}}, 150 * time.Millisecond},
		{"bad", []lane{{50 * time.Millisecond, 500}}, 0},
		{"broken", []lane{{50 * time.Millisecond, 0}}, 0},
		{"bad beside a bad hedge", []lane{{time.Second, 500}, {time.Second, 500}}, 0},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			d := new(duel)
			rt := newTransport(t, d, retry.Config{MaxAttempts: 2, Allowance: retry.Allowance{Disable: true}, Hedge: retry.Hedge{After: after, Quantile: .9}})
			for range 99 {
				d.lanes, d.calls = tt.lanes, 0
				get(t, rt, "GET")
			}
			if got := hedgedAfter(t, rt, d); got != after {
				t.Fatalf("hedged after %v, want %v: 99 are too few", got, after)
			}
			got := hedgedAfter(t, rt, d)
			if tt.want == 0 && got != after || tt.want != 0 && (got < tt.want || got > tt.want*5/4) {
				t.Errorf("hedged after %v, learned is %v", got, tt.want)
			}
		})
	}
}

// A share of the latencies is counted to its end: half of two halves is
// where the second begins.
func TestQuantileBetweenTwoHalves(t *testing.T) {
	for _, tt := range []struct {
		quantile    float64
		least, most time.Duration
	}{
		{.49, 20 * time.Millisecond, 25 * time.Millisecond},
		{.5, 80 * time.Millisecond, 100 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := new(duel)
			rt := newTransport(t, d, retry.Config{Hedge: retry.Hedge{Quantile: tt.quantile}})
			for range 50 {
				d.lanes, d.calls = []lane{{20 * time.Millisecond, 200}, {80 * time.Millisecond, 200}}, 0
				get(t, rt, "GET")
				get(t, rt, "GET")
			}
			if got := hedgedAfter(t, rt, d); got < tt.least || got > tt.most {
				t.Errorf("quantile %v: hedged after %v, want %v to %v", tt.quantile, got, tt.least, tt.most)
			}
		})
	}
}

// What is old fades.
func TestOldLatencyFades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(duel)
		rt := newTransport(t, d, retry.Config{Hedge: retry.Hedge{Quantile: .95}})
		for _, took := range []time.Duration{time.Second, 20 * time.Millisecond} {
			d.lanes = []lane{{took, 200}}
			for range 5000 {
				get(t, rt, "GET")
			}
		}
		if got := hedgedAfter(t, rt, d); got < 20*time.Millisecond || got > 30*time.Millisecond {
			t.Errorf("hedged after %v, want a little over 20ms", got)
		}
	})
}
