package population

import (
	"slices"
	"testing"
	"time"
)

// TestDrawIsRepeatable holds what every replay rests on.
func TestDrawIsRepeatable(t *testing.T) {
	for i := range 50 {
		a, b := Draw(Test, 3, i), Draw(Test, 3, i)
		if a.String() != b.String() || a.Ideal().Span != b.Ideal().Span || !slices.Equal(a.Demand.Wants, b.Demand.Wants) {
			t.Errorf("case %d: %v, then %v", i, a, b)
		}
	}
	if a, b := Draw(Train, 3, 0), Draw(Train, 4, 0); a.String() == b.String() {
		t.Errorf("seeds 3 and 4 both give %v", a)
	}
}

// TestTestHasWhatTrainHasNot holds that the sets are apart where it matters.
func TestTestHasWhatTrainHasNot(t *testing.T) {
	has := map[Set]map[string]bool{Train: {}, Test: {}}
	longest := map[Set]time.Duration{}
	for _, set := range []Set{Train, Test} {
		for i := range 600 {
			c := Draw(set, 1, i)
			has[set][c.Kind], has[set][c.Dialect.name] = true, true
			longest[set] = max(longest[set], c.RTT)
		}
	}
	for _, k := range kinds(Test) {
		if !has[Test][k.name] || has[Train][k.name] == k.test {
			t.Errorf("kind %s: in train %v, in test %v", k.name, has[Train][k.name], has[Test][k.name])
		}
	}
	for _, d := range dialects(Test) {
		if !has[Test][d.name] || has[Train][d.name] == d.test {
			t.Errorf("dialect %s: in train %v, in test %v", d.name, has[Train][d.name], has[Test][d.name])
		}
	}
	if longest[Train] > 400*time.Millisecond || longest[Test] < 500*time.Millisecond {
		t.Errorf("longest round trips: %v", longest)
	}
}

// TestDemandFitsTheWait holds that nobody is asked for what cannot be done: an
// all-knowing client has no call wait longer than two fifths of the configured
// wait, and a limit that refuses for longer than most of it is not reached.
func TestDemandFitsTheWait(t *testing.T) {
	some(100, func(c *Case) {
		wait := c.Wait
		if wait == 0 {
			wait = 75 * time.Second
		}
		for k, s := range c.Ideal().Calls {
			if s.waited > wait*2/5 || s.waited > 0 && c.longest > wait*4/5 {
				t.Errorf("%s: %v: call %d waits %v for room", c.Replay(), c, k, s.waited)
				break
			}
		}
		if c.Demand.Calls < 20 || len(c.Demand.Routes) != c.Demand.Calls {
			t.Errorf("%s: %d calls on %d routes", c.Replay(), c.Demand.Calls, len(c.Demand.Routes))
		}
	})
}
