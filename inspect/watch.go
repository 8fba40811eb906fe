package inspect

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weirhttp/weir"
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

// watch takes snapshots for those who look, one for all of them, and notes
// what changed between them.
type watch struct {
	t        *weir.Transport
	outbox   Outbox // nil: there is none
	limiters []limiter
	mu       sync.Mutex
	last     Snapshot
	before   map[string]seen
	events   []Event // the newest last; what was handed out is never written again
}

func newWatch(t *weir.Transport) *watch { return &watch{t: t} }

// look returns a snapshot that is at most half a second old, and the events
// so far.
func (w *watch) look() (Snapshot, []Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.before == nil || now.Sub(w.last.At) >= time.Second/2 {
		w.last = w.view(now)
		w.compare()
	}
	return w.last, w.events
}

func (w *watch) view(now time.Time) Snapshot {
	s := view(w.t, now)
	for _, l := range w.limiters {
		s.Hosts = append(s.Hosts, l.rows()...)
	}
	s.Outbox = kept(w.outbox, now)
	return s
}

// seen is a host as it was at the last look, and as it was when its counts
// were told.
type seen struct {
	host, told *Host
	at         time.Time // when they were told; zero: never
}

// compare notes what has changed since the last look.
func (w *watch) compare() {
	now := make(map[string]seen, len(w.last.Hosts))
	for _, h := range w.last.Hosts {
		key := h.Name + " " + h.Partition
		if w.before == nil {
			now[key] = seen{host: h, told: h} // the first look knows no changes
			continue
		}
		old, known := w.before[key]
		if !known && h.Limiter != "" { // it may have been there, and not been shown
			now[key] = seen{host: h, told: h}
			continue
		}
		if !known {
			w.note(h, "first seen")
			none := &Host{State: ok}
			old = seen{host: none, told: none}
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
		}
		old.host = h
		now[key] = old
	}
	w.before = now
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
