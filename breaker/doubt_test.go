package breaker_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/trip"
)

// TestPatientOutlook: a request whose attempt has failed hears whether its
// next one may wait and costs nothing: while the circuit is not closed, and
// from Consecutive failures in a row on. It waits after fewer, too, but not where
// so many are chance.
func TestPatientOutlook(t *testing.T) {
	const patience, openFor = 10 * time.Second, 300 * time.Millisecond
	for _, x := range []struct {
		name      string
		c         breaker.Config
		impatient bool
		calls     string // g: good, b: bad, r: reset, .: until a probe may go
		probe     bool   // the attempt was a probe
		hedge     bool
		waited    time.Duration // since it first had to
		deadline  time.Duration
		lo, hi    time.Duration
		patient   bool
	}{
		{name: "nothing known"},
		{name: "one failure", calls: "b"},
		{name: "two failures", calls: "bb", lo: openFor, hi: openFor},
		{name: "four failures", calls: "bbbb", lo: openFor, hi: openFor},
		{name: "five failures", calls: "bbbbb", lo: openFor, hi: openFor, patient: true},
		{name: "five, not in a row", calls: "bbbgbb", lo: openFor, hi: openFor},
		{name: "five, not two in a row", calls: "bgbgbgbgb"},
		{name: "four of a host that fails half", calls: strings.Repeat("bg", 40) + "bbbb"},
		{name: "five of a host that fails half", calls: strings.Repeat("bg", 40) + "bbbbb", lo: openFor, hi: openFor, patient: true},
		{name: "fewer, by Consecutive", c: breaker.Config{Consecutive: 2}, calls: "bb", lo: openFor, hi: openFor, patient: true},
		{name: "no Consecutive", c: breaker.Config{Consecutive: -1}, calls: "bbbbbbbb"},
		{name: "no Patience", impatient: true, calls: "bbbbb"},
		{name: "a hedge", calls: "bbbbb", hedge: true},
		{name: "Patience nearly over", calls: "bbbbb", waited: patience - openFor},
		{name: "Patience soon over", calls: "bbbbb", waited: patience - openFor - 1, lo: openFor, hi: openFor, patient: true},
		{name: "no time", calls: "bbbbb", deadline: openFor},
		{name: "open", calls: "rrrrr", lo: openFor * 4 / 5, hi: openFor * 6 / 5, patient: true},
		{name: "due", calls: "rrrrr.", patient: true},
		{name: "half-open", calls: "rrrrr.gb", patient: true},
		{name: "half-open, a failed probe", calls: "rrrrr.gb", probe: true, lo: openFor, hi: openFor, patient: true},
		{name: "half-open, a failed probe that has little time", calls: "rrrrr.gb", probe: true, deadline: 200 * time.Millisecond, lo: 150 * time.Millisecond, hi: 199 * time.Millisecond, patient: true},
		{name: "closed", calls: "rrrrr.ggg"},
	} {
		bubble(t, func(t *testing.T) {
			x.c.OpenFor = openFor
			if !x.impatient {
				x.c.Patience = patience
			}
			cs, h, _ := rig(t, x.c)
			m := cs.Meter(h)
			for _, call := range x.calls {
				if h.plays(t, cs, call) {
					get(m, site)
				}
			}
			ctx := t.Context()
			if x.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, x.deadline)
				defer cancel()
			}
			r, tr, _ := trip.Begin(httptest.NewRequest("GET", site, nil).WithContext(ctx), trip.Retry, trip.Below(m).Hosts)
			defer tr.End(nil)
			tr.Probe, tr.Hedge, tr.Patience = x.probe, x.hedge, trip.Patient
			if x.waited > 0 {
				tr.Hold(time.Now().Add(-x.waited))
			}
			wait, err := trip.Outlook(m, r)
			if err != nil || wait < x.lo || wait > x.hi || (tr.Patience == trip.Patient) != x.patient {
				t.Errorf("%s: waits %v, patient %t, %v; want %v to %v, %t", x.name, wait, tr.Patience == trip.Patient, err, x.lo, x.hi, x.patient)
			}
		})
	}
}
