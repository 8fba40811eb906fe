package inspect_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/inspect"
	"github.com/weirhttp/weir/throttle"
)

// The keys of a Limiter stand among the hosts, in its name, those that are held up
// first if there are many, and come and go without a word.
func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keepKeys = 1000
		l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("2/m burst 2"), MaxKeys: keepKeys + 1})
		if err != nil {
			t.Fatal(err)
		}
		h := inspect.Handler(transport(t, answers{}, weir.Config{}), inspect.Config{Limiters: map[string]*throttle.Limiter{"posts": l}, Controls: true})
		for range 3 {
			l.Try("ann", nil)
		}
		l.Pause("bob", time.Now().Add(time.Minute))
		rows := make(map[string]*inspect.Host)
		for _, row := range snapshot(t, h).Hosts {
			rows[row.Name] = row
		}
		ann, bob := rows["posts: ann"], rows["posts: bob"]
		if len(rows) != 2 || ann == nil || bob == nil {
			t.Fatalf("rows %v", rows)
		}
		if ann.Limiter != "posts" || ann.Granted != 2 || ann.Refused != 1 || len(ann.Budgets) != 1 || ann.Budgets[0].Left != 0 {
			t.Errorf("ann: %+v", ann)
		}
		if bob.State != paused || len(bob.Why) == 0 || bob.Why[0].Text != "paused by hand" {
			t.Errorf("bob: %+v", bob)
		}
		look(t, h, question{})
		for i := range 2 * keepKeys {
			l.Try(fmt.Sprint(i), nil)
		}
		time.Sleep(time.Second)
		f := look(t, h, question{q: "posts: bob"})
		if f.Total != keepKeys || len(f.Rows) != 1 || len(f.Events) != 0 {
			t.Errorf("%d rows of all, %d of bob, events %v", f.Total, len(f.Rows), f.Events)
		}
		if f := look(t, h, question{q: "others"}); len(f.Rows) != 1 || f.Rows[0].Name != "posts: others (2/m burst 2)" {
			t.Errorf("those without room: %+v", f.Rows)
		}
	})
}
