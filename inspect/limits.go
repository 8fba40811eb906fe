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
	ok      = string(throttle.StateOK)
	waiting = string(throttle.StateWaiting)
	paused  = string(throttle.StatePaused)

	refusing = string(throttle.StateRefusing)
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
	Route  string  `json:"route,omitempty"` // the only kind of requests that it binds: "GET /search"
	Limit  float64 `json:"limit,omitempty"` // units of which Left are left; 0: not known
	Left   float64 `json:"left"`            // of Limit
	Until  string  `json:"until,omitempty"` // when it is over or all of it is back, by this program's clock
}

// hostOf is what package throttle knows about a host.
func hostOf(t *throttle.HostStats) *Host {
	h := &Host{
		Name: t.Host, Partition: t.Partition, State: string(t.State),
		Queue: t.Queue, OldestWait: t.OldestWait.Seconds(), InFlight: t.InFlight,
		Counts: countsOf(&t.Counts), Allowance: -1,
	}
	for _, r := range t.Restrictions {
		if !r.Learned {
			h.Why = append(h.Why, Hold{Text: r.Why, For: r.For.Seconds(), Route: r.Route})
		}
	}
	for i := range t.Learned {
		l := &t.Learned[i]
		h.Learned = append(h.Learned, factOf(l))
		if l.Wait > 0 {
			h.Why = append(h.Why, Hold{Text: l.Why, For: l.Wait.Seconds()})
		}
	}
	slices.SortStableFunc(h.Learned, func(a, b Fact) int { // the same from look to look
		return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Source, b.Source))
	})
	h.Routes = routesOf(t.Routes)
	h.because()
	h.Budgets = make([]Budget, 0, len(t.Budgets))
	for _, b := range t.Budgets {
		full := b.FullIn.Seconds()
		if b.FullIn > endless {
			full = -1
		}
		h.Budgets = append(h.Budgets, Budget{b.Text, b.Pattern, b.Unit, b.Limit, b.Unspent, full})
	}
	return h
}

func countsOf(t *throttle.Counts) Counts {
	return Counts{
		Granted: t.Granted, Waited: t.Waited, Refused: t.Refused, Cancelled: t.Cancelled, Refunded: t.Refunded,
		RefusedBy: t.RefusedBy, Retries: t.Retries, Throttled: t.Throttled, Pauses: t.Pauses,
		Wait: durations(&t.Wait), Latency: durations(&t.Latency),
	}
}

func routesOf(all []throttle.RouteStats) []Route {
	list := make([]Route, len(all))
	for i := range all {
		t := &all[i]
		list[i] = Route{
			Name: t.Route, State: string(t.State), Queue: t.Queue, OldestWait: t.OldestWait.Seconds(), InFlight: t.InFlight,
			Counts: countsOf(&t.Counts),
		}
		if t.Why != "" {
			list[i].Why = &Hold{Text: t.Why, For: t.For.Seconds()}
		}
	}
	return list
}

// because puts h.Why in order. First comes what holds up the route whose request has
// waited longest. Then comes what ends last, because no request goes before that; if a
// pause and a rate end at the same time, the pause says more.
func (h *Host) because() {
	slices.SortStableFunc(h.Why, func(a, b Hold) int {
		return cmp.Or(cmp.Compare(math.Round(b.For), math.Round(a.For)), cmp.Compare(pause(b), pause(a)), cmp.Compare(a.Text, b.Text))
	})
	var oldest *Route
	for i := range h.Routes {
		if r := &h.Routes[i]; r.Queue > 0 && r.Why != nil && (oldest == nil || r.OldestWait > oldest.OldestWait) {
			oldest = r
		}
	}
	if oldest != nil {
		first := *oldest.Why
		rest := slices.DeleteFunc(h.Why, func(w Hold) bool {
			same := w.Text == first.Text && (w.Route == "" || w.Route == oldest.Name)
			if same && w.Route != "" {
				first.Route = w.Route
			}
			return same
		})
		h.Why = slices.Insert(rest, 0, first)
	}
	for i := range h.Why {
		switch w := &h.Why[i]; {
		case w.Route == "":
			w.Route = h.only(w.Text)
		case len(h.Routes) == 1 && h.Routes[0].Name == w.Route:
			w.Route = "" // there are no others
		}
	}
}

// only returns the route that text holds up, if that is one of several routes and text
// does not name it; otherwise "".
func (h *Host) only(text string) string {
	name, others := "", false
	for i := range h.Routes {
		switch r := &h.Routes[i]; {
		case r.Why == nil || r.Why.Text != text:
			others = true
		case name != "":
			return ""
		default:
			name = r.Name
		}
	}
	if !others || strings.Contains(text, name) {
		return ""
	}
	return name
}

// pause is 1 if h is one.
func pause(h Hold) int {
	if strings.HasPrefix(h.Text, "paused") {
		return 1
	}
	return 0
}

// factOf is l as the page shows it. Only of what is left there is a bar.
func factOf(l *throttle.LearnedLimit) Fact {
	f := Fact{Text: l.Why, Kind: string(l.Kind), Source: l.Source, Name: l.Name, Unit: l.Unit, Route: l.Route}
	if i := strings.LastIndex(l.Why, ", "+l.Source); i >= 0 && l.Source != "" { // a name may contain it
		f.Text = l.Why[:i] + l.Why[i+len(", "+l.Source):]
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
