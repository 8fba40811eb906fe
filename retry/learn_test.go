package retry

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
)

// Of first tries it is learned how long they take if they have a good answer, and
// of those that lost to their hedge that they took as long as that; of failures,
// which may be quick, nothing.
func TestWhatLatencyLearns(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lanes []lane
		want  time.Duration // of the one sample; 0: there is none
	}{
		{"good", []lane{{50 * time.Millisecond, 200}}, 50 * time.Millisecond},
		{"not found", []lane{{50 * time.Millisecond, 404}}, 50 * time.Millisecond},
		{"lost", []lane{{time.Minute, 200}, {50 * time.Millisecond, 200}}, 150 * time.Millisecond},
		{"bad", []lane{{50 * time.Millisecond, 500}}, 0},
		{"broken", []lane{{50 * time.Millisecond, 0}}, 0},
		{"bad beside a bad hedge", []lane{{time.Second, 500}, {time.Second, 500}}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &duel{lanes: tt.lanes}
			rt := newTransport(t, d, Config{MaxAttempts: 2, Allowance: Allowance{Disable: true}, Hedge: Hedge{After: 100 * time.Millisecond, Quantile: .9}})
			get(t, rt, "GET")
			e := rt.link.Hosts.Find("a.example")
			defer e.Release()
			l := &e.Value.Occupant(hosts.Retry).(*host).latency
			switch {
			case tt.want == 0 && l.n != 0:
				t.Errorf("%s: %d samples", tt.name, l.n)
			case tt.want != 0 && (l.n != 1 || l.count[class(tt.want)] != 1):
				t.Errorf("%s: %d samples, not one of %v", tt.name, l.n, tt.want)
			}
		})
	}
}
