package inspect

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	keepEvents = 5000 // of the past, in all
	showEvents = 200  // of these, in one frame

	// sumOver is for how long counts are added up before they are told
	// again, so that a host with much to tell does not fill the page.
	sumOver = 10 * time.Second
)

// Event is something that changed between two looks, in words.
type Event struct {
	At        time.Time `json:"at"`
	Host      string    `json:"host"`
	Partition string    `json:"partition,omitempty"`
	Text      string    `json:"text"`
}

// told is a host as it was at the last look, and as it was when its counts
// were told.
type told struct {
	host, told *Host
	at         time.Time // when they were told; zero: never
}

// compare notes what has changed since the last look, at the hosts that were looked
// at and those of which not all was told.
func (w *watch) compare(changed []*Host) {
	if w.before == nil { // the first look knows no changes
		w.before, w.untold = make(map[key]told, len(changed)), make(map[key]bool)
		for _, h := range changed {
			w.before[keyOf(h)] = told{host: h, told: h}
		}
		return
	}
	if len(changed) <= keepEvents { // of more not all would be told
		slices.SortStableFunc(changed, byName)
	}
	for _, h := range changed {
		delete(w.untold, keyOf(h))
		w.tell(h)
	}
	for _, k := range slices.Collect(maps.Keys(w.untold)) {
		delete(w.untold, k)
		if old, known := w.before[k]; known {
			w.tell(old.host)
		}
	}
	if len(w.before) > 2*(len(w.hosts)+len(changed))+100 { // keys of limiters that are not shown any more
		now := make(map[key]bool, len(changed))
		for _, h := range changed {
			now[keyOf(h)] = true
		}
		maps.DeleteFunc(w.before, func(k key, _ told) bool { return w.hosts[k] == nil && !now[k] })
	}
}

// tell notes what has changed at h.
func (w *watch) tell(h *Host) {
	old, known := w.before[keyOf(h)]
	switch {
	case !known && h.Limiter != "": // it may have been there, and not been shown
		w.before[keyOf(h)] = told{host: h, told: h}
		return
	case !known:
		w.note(h, "first seen")
		none := &Host{State: ok}
		old = told{host: none, told: none}
	}
	if text := turn(old.host, h); text != "" {
		w.note(h, text)
	}
	if w.last.At.Sub(old.at) >= sumOver {
		texts := counted(old.told, h)
		for _, text := range texts {
			w.note(h, text)
		}
		if old.told = h; len(texts) > 0 {
			old.at = w.last.At
		}
	} else {
		w.untold[keyOf(h)] = true
	}
	old.host = h
	w.before[keyOf(h)] = old
}

// note keeps the newest events.
func (w *watch) note(h *Host, text string) {
	if len(w.events) >= 2*keepEvents {
		w.events = slices.Clone(w.events[len(w.events)-keepEvents:])
	}
	w.events = append(w.events, Event{w.last.At, h.Name, h.Partition, text})
}

// newest returns the last events of a host or partition, or of all if host is
// "", the newest first.
func newest(events []Event, host, partition string) []Event {
	found := []Event{}
	for _, e := range slices.Backward(events[max(0, len(events)-keepEvents):]) {
		if len(found) == showEvents {
			break
		}
		if host == "" || e.Host == host && e.Partition == partition {
			found = append(found, e)
		}
	}
	return found
}

// turn says in words how the state of a host has changed; "" if it has not.
func turn(old, h *Host) string {
	switch {
	case old.State != h.State:
		return h.State + ", was " + old.State + h.reason()
	case len(old.Why) == 0 && len(h.Why) > 0:
		return h.Why[0].String()
	}
	return ""
}

// String is w in words, but for how long it lasts.
func (w Hold) String() string {
	if w.Route != "" {
		return w.Route + ": " + w.Text
	}
	return w.Text
}

// reason is what holds requests up, after a colon; "" if nothing does.
func (h *Host) reason() string {
	if len(h.Why) == 0 {
		return ""
	}
	return ": " + h.Why[0].String()
}

// counted says in words what was counted between two looks.
func counted(old, h *Host) []string {
	var texts []string
	say := func(format string, args ...any) { texts = append(texts, fmt.Sprintf(format, args...)) }
	if n := h.Refused - old.Refused; n > 0 {
		say("%d turned away%s", n, h.reason())
	}
	if h.Circuit != nil {
		if n := h.Circuit.Refused - old.turnedAway(); n > 0 {
			say("%d turned away by the circuit", n)
		}
	}
	if n := h.Cancelled - old.Cancelled; n > 0 {
		say("%d gave up waiting", n)
	}
	for _, reason := range slices.Sorted(maps.Keys(h.Retries)) {
		if n := h.Retries[reason] - old.Retries[reason]; n > 0 {
			say("%d tried again, because: %s", n, reason)
		}
	}
	return texts
}

// turnedAway is how many requests the circuit refused.
func (h *Host) turnedAway() uint64 {
	if h.Circuit == nil {
		return 0
	}
	return h.Circuit.Refused
}
