package inspect

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirhttp/weir/throttle"
)

// States of a host besides those of its circuit.
const (
	ok      = "ok"
	waiting = "waiting"
	paused  = "paused"
)

// endless is what a budget says of a time that nobody knows.
const endless = 1000 * time.Hour

// Fact is a limit that the host stated or showed.
type Fact struct {
	Text   string  `json:"text"`             // in words: `80 of 100 left of "core" until 12:00:00`
	Kind   string  `json:"kind"`             // "pause", "rate", "quota", "in flight"
	Source string  `json:"source,omitempty"` // where it comes from: "said by RateLimit"
	Name   string  `json:"name,omitempty"`   // what the host calls it
	Unit   string  `json:"unit,omitempty"`
	For    string  `json:"for,omitempty"`   // the only kind of requests that it binds: "GET /search"
	Limit  float64 `json:"limit,omitempty"` // units of which Left are left; 0: not known
	Left   float64 `json:"left"`            // of Limit
	Until  string  `json:"until,omitempty"` // when it is over or all of it is back, by this program's clock
}

// hostOf is what package throttle knows about a host.
func hostOf(t *throttle.HostStats) *Host {
	h := &Host{
		Name: t.Host, Partition: t.Partition, State: ok,
		Queue: t.Queue, OldestWait: t.OldestWait.Seconds(), InFlight: t.InFlight,
		Granted: t.Granted, Waited: t.Waited, Refused: t.Refused, Cancelled: t.Cancelled, Refunded: t.Refunded,
		RefusedBy: t.RefusedBy, Throttled: t.Throttled, Pauses: t.Pauses,
		Wait: durations(&t.Wait), Latency: durations(&t.Latency),
		Allowance: -1,
	}
	if t.Queue > 0 {
		h.State = waiting
	}
	for _, r := range t.Restrictions {
		if !r.Learned {
			h.hold(r.Why, r.For)
		}
	}
	for i := range t.Learned {
		l := &t.Learned[i]
		h.Learned = append(h.Learned, factOf(l))
		if l.Wait > 0 {
			h.hold(l.Why, l.Wait)
		}
	}
	slices.SortStableFunc(h.Why, func(a, b Hold) int { // the last to end binds; of those, a pause says more than a rate
		return cmp.Or(cmp.Compare(math.Round(b.For), math.Round(a.For)), cmp.Compare(pause(b), pause(a)), cmp.Compare(a.Text, b.Text))
	})
	slices.SortStableFunc(h.Learned, func(a, b Fact) int { // the same from look to look
		return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Source, b.Source))
	})
	if t.Queue > 0 && len(h.Why) == 0 {
		h.Why = []Hold{{Text: "waiting for answers to the requests in flight"}}
		for _, f := range h.Learned {
			h.Why = append(h.Why, Hold{Text: f.Text})
		}
	}
	h.Budgets = make([]Budget, 0, len(t.Budgets))
	for _, b := range t.Budgets {
		full := b.FullIn.Seconds()
		if b.FullIn > endless {
			full = -1
		}
		h.Budgets = append(h.Budgets, Budget{b.Text, b.Pattern, b.Unit, b.Limit, b.Left, full})
	}
	return h
}

// pause is 1 if h is one.
func pause(h Hold) int {
	if strings.HasPrefix(h.Text, "paused") {
		return 1
	}
	return 0
}

// hold notes what holds requests up.
func (h *Host) hold(why string, wait time.Duration) {
	x := Hold{why, wait.Seconds()}
	if pause(x) > 0 && wait > 0 {
		h.State = paused
	}
	h.Why = append(h.Why, x)
}

// factOf is l as the page shows it. Only of what is left there is a bar.
func factOf(l *throttle.LearnedLimit) Fact {
	f := Fact{Text: l.Why, Kind: l.Kind, Source: l.Source, Name: l.Name, Unit: l.Unit, For: l.For}
	if l.Source != "" {
		f.Text = strings.Replace(l.Why, ", "+l.Source, "", 1)
	}
	if l.Limit > 0 && l.Left >= 0 {
		f.Limit, f.Left = l.Limit, l.Left
	}
	if !l.Until.IsZero() {
		f.Until = l.Until.Format(layout(time.Until(l.Until)))
	}
	return f
}

// layout of a time of day, with the date if it is not near.
func layout(in time.Duration) string {
	if in > 12*time.Hour {
		return time.DateTime
	}
	return time.TimeOnly
}
