package throttle

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/stated"
)

func newQuota(id stated.Key) *quota {
	t := &learnTerms{Terms: stated.Terms{MaxPause: 5 * time.Minute}}
	q := &quota{Limit: stated.New(id, "x-ratelimit-remaining", &t.Terms), terms: t}
	q.Count(true, false, nil)
	return q
}

// hears lets q learn from an answer.
func hears(q *quota, at instant, l headers.Limit) *quota {
	q.Hear(at, &stated.Answer{Sent: at, Limit: &l})
	return q
}

// heardQuota is a quota that was heard of at hourIn; without a reset it has none.
func heardQuota(left, size float64, reset time.Duration) *quota {
	l := stating(left, size, reset, headers.Boundary)
	l.Reset.Known = reset > 0
	return hears(newQuota(stated.Key{}), hourIn, l)
}

// Limits beyond the bound are not kept, unless one that does not bind can go:
// the one that was not heard of for the longest time.
func TestQuotasAreBounded(t *testing.T) {
	l := learning1()
	k := l.endpointOf(endpointKey{"GET", "x"}, hourIn)
	for i := range maxQuotas {
		q := l.quotaOf(hourIn, &headers.Limit{Name: fmt.Sprint(i)}, k, nil)
		hears(q, hourIn.Add(time.Duration(i)*sec), stating(0, 10, time.Hour, headers.Boundary))
		l.bind(q, k, 1)
	}
	if l.quotaOf(hourIn, &headers.Limit{Name: "more"}, k, nil) != nil || l.quotaOf(hourIn, &headers.Limit{Name: "7"}, k, nil) != l.quotas[7] {
		t.Error("one more than there is room for")
	}
	free, gone := l.quotas[9], l.quotas[4]
	hears(free, hourIn.Add(time.Hour), stating(1, 10, time.Hour, headers.Boundary))
	hears(gone, hourIn.Add(4*sec), stating(1, 10, 2*time.Hour, headers.Boundary))
	l.binds = false
	if q := l.quotaOf(hourIn, &headers.Limit{Name: "more"}, k, nil); q == nil || q.ID.Name != "more" || len(l.quotas) != maxQuotas || !l.binds || l.changes {
		t.Fatalf("%v of %d", q, len(l.quotas))
	}
	for _, q := range append(l.quotas, k.quotas...) {
		if q == gone {
			t.Error("what was dropped is still there")
		}
	}
	if len(k.quotas) != maxQuotas-1 {
		t.Errorf("the kind has %d", len(k.quotas))
	}
	l.drop(free)
	l.binds = false
	l.bind(k.quotas[0], k, 1)
	if l.binds {
		t.Error("bound twice")
	}
	for range 4 {
		k.slow.Start(hourIn)
	}
	q := l.quotaOf(hourIn, &headers.Limit{Name: "new"}, k, nil)
	l.bind(q, k, 2)
	if q.UnderWay() != 6 || len(q.endpoints) != 1 {
		t.Errorf("%v units are missing of three others under way", q.UnderWay())
	}
	q.unbind(k)
	if len(q.endpoints) != 0 {
		t.Error("still bound")
	}
}

// A quota restricts if it is not plentiful, and makes room for another if a unit
// is left of it.
func TestQuotasThatBindStay(t *testing.T) {
	l := learning1()
	l.quotas = []*quota{newQuota(stated.Key{}), heardQuota(1, 10, 30*sec)}
	hears(l.quotas[0], hourIn, headers.Limit{Remaining: known(math.MaxInt32 + 0.0)})
	n := 0
	l.restrictions(hourIn, func(c cause, _ time.Duration) {
		if c.what == causeQuota {
			n++
		}
	})
	if n != 1 {
		t.Errorf("%d quotas restrict, want the one that does", n)
	}
	l.quotas = l.quotas[1:]
	if !l.dropQuota(hourIn) || len(l.quotas) != 0 {
		t.Error("one with a unit left does not bind")
	}
	l.quotas = []*quota{heardQuota(0.9, 10, 30*sec)}
	if l.dropQuota(hourIn) {
		t.Error("one that binds is dropped")
	}
}
