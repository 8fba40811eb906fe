package inspect

import (
	"cmp"
	"math"
	"slices"
	"strconv"
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
	Source string  `json:"source,omitempty"` // where it comes from: "said by RateLimit"
	Name   string  `json:"name,omitempty"`   // what the host calls it
	Unit   string  `json:"unit,omitempty"`
	Limit  float64 `json:"limit,omitempty"` // 0: not stated as a number
	Left   float64 `json:"left"`            // of Limit
	Until  string  `json:"until,omitempty"` // when all of it is back, by this program's clock
}

// hostOf is what package throttle knows about a host.
func hostOf(t *throttle.HostStats) *Host {
	h := &Host{
		Name: t.Host, Partition: t.Partition, State: ok,
		Queue: t.Queue, OldestWait: t.OldestWait.Seconds(), InFlight: t.InFlight,
		Granted: t.Granted, Waited: t.Waited, Refused: t.Refused, Cancelled: t.Cancelled, Refunded: t.Refunded,
		Allowance: -1,
	}
	if t.Queue > 0 {
		h.State = waiting
	}
	for _, r := range t.Restrictions {
		h.restrict(r)
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

// restrict sorts what package throttle says into what holds requests up and
// what is known. Of what was learned it tells the host's name first.
func (h *Host) restrict(r throttle.Restriction) {
	text, learned := r.Why, false
	if who, what, found := strings.Cut(text, ": "); found && strings.HasPrefix(who, h.Name) {
		text, learned = what, true
	}
	hold := Hold{text, r.For.Seconds()}
	if pause(hold) > 0 && r.For > 0 {
		h.State = paused
	}
	if learned {
		h.Learned = append(h.Learned, factOf(text, r.Unit))
	}
	if !learned || r.For > 0 {
		h.Why = append(h.Why, hold)
	}
}

// factOf takes a text apart that is like
// `12 of 5000 left of "core" until 12:00:00, said by X-RateLimit-Remaining`.
// Texts of another kind stay as they are.
func factOf(text, unit string) Fact {
	f := Fact{Text: text, Unit: unit}
	for _, verb := range []string{", said by ", ", found by ", ", shown by ", ", guessed from ", ", after the reset said by "} {
		if i := strings.LastIndex(text, verb); i >= 0 {
			f.Text, f.Source = text[:i], text[i+2:]
			break
		}
	}
	left, rest, _ := strings.Cut(f.Text, " of ")
	limit, rest, _ := strings.Cut(rest, " ")
	_, rest, found := strings.Cut(" "+rest, " left")
	l, err := strconv.ParseFloat(left, 64)
	q, wrong := strconv.ParseFloat(limit, 64)
	if !found || err != nil || wrong != nil || !(q > 0) || !(l >= 0) || q > 1e18 {
		return f
	}
	f.Limit, f.Left = q, l
	if quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(rest, " of ")); err == nil {
		f.Name, _ = strconv.Unquote(quoted)
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, " of "), quoted)
	}
	f.Until, _ = strings.CutPrefix(rest, " until ")
	if f.Until == rest {
		f.Until = ""
	}
	return f
}
