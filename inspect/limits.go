package inspect

import (
	"cmp"
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

// Fact is a limit that the host stated or showed. Text has it in words, and
// which header said so.
type Fact struct {
	Text  string  `json:"text"`
	Unit  string  `json:"unit,omitempty"`
	Limit float64 `json:"limit,omitempty"` // 0: not stated as a number
	Left  float64 `json:"left"`            // of Limit
}

// hostOf is what package throttle knows about a host.
func hostOf(t *throttle.HostStats) Host {
	h := Host{
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
	slices.SortStableFunc(h.Why, func(a, b Hold) int { return cmp.Compare(b.For, a.For) })
	slices.SortStableFunc(h.Learned, func(a, b Fact) int { // the same from look to look
		return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Limit, b.Limit), cmp.Compare(origin(a.Text), origin(b.Text)))
	})
	if t.Queue > 0 && len(h.Why) == 0 {
		h.Why = []Hold{{Text: "waiting for answers to the requests in flight"}}
		for _, f := range h.Learned {
			h.Why = append(h.Why, Hold{Text: f.Text})
		}
	}
	for _, b := range t.Budgets {
		full := b.FullIn.Seconds()
		if b.FullIn > endless {
			full = -1
		}
		h.Budgets = append(h.Budgets, Budget{b.Text, b.Pattern, b.Unit, b.Limit, b.Left, full})
	}
	return h
}

// restrict sorts what package throttle says into what holds requests up and
// what is known. Of what was learned it tells the host's name first.
func (h *Host) restrict(r throttle.Restriction) {
	text, learned := r.Why, false
	if who, what, found := strings.Cut(text, ": "); found && strings.HasPrefix(who, h.Name) {
		text, learned = what, true
	}
	if strings.HasPrefix(text, "paused") && r.For > 0 {
		h.State = paused
	}
	if learned {
		limit, left := numbers(text)
		h.Learned = append(h.Learned, Fact{Text: text, Unit: r.Unit, Limit: limit, Left: left})
	}
	if !learned || r.For > 0 {
		h.Why = append(h.Why, Hold{text, r.For.Seconds()})
	}
}

// numbers finds limit and rest in a text like
// `12 of 5000 left of "core" until 12:00:00, said by X-RateLimit-Remaining`.
func numbers(text string) (limit, left float64) {
	first, rest, _ := strings.Cut(text, " of ")
	second, rest, _ := strings.Cut(rest, " ")
	if !strings.Contains(" "+rest, " left") {
		return 0, 0
	}
	left, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0, 0
	}
	if limit, err = strconv.ParseFloat(second, 64); err != nil || limit <= 0 {
		return 0, 0
	}
	return limit, left
}

// origin is the end of a text, which says where it comes from.
func origin(text string) string { return text[strings.LastIndex(text, ",")+1:] }
