package inspect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pageRows is how many hosts the page shows at a time: as many as one scrolls
// through, and as a frame of 100 KB holds.
const pageRows = 100

// keepQueues bounds the list of an outbox's queues.
const keepQueues = 200

// frame is one server-sent event: what the page shows now.
type frame struct {
	At       time.Time      `json:"at"`
	Total    int            `json:"total"`  // hosts known
	Counts   map[string]int `json:"counts"` // of these, by state
	Queue    int            `json:"queue"`  // requests that wait, at all hosts
	Oldest   float64        `json:"oldest"` // seconds that the oldest of them has waited
	Found    int            `json:"found"`  // hosts that the question is about
	From     int            `json:"from"`   // of these, those that stand before Rows
	Rows     []*Host        `json:"rows"`   // one page of them
	Detail   *Host          `json:"detail,omitempty"`
	Events   []Event        `json:"events"` // the newest first
	Controls bool           `json:"controls,omitempty"`
	Outbox   []Kept         `json:"outbox,omitempty"` // of its queues, the first; in the list of hosts only
	Queues   int            `json:"queues,omitempty"` // of it, in all
}

// question is what a page wants to see.
type question struct {
	q          string // a part of a host's name
	state      string // "": all
	sort       string // a column, with "-" before it for descending
	page       int    // of the list, from 0; beyond the last it is the last
	host, part string // whose details to send; "": nobody's
}

// events streams frames until the client leaves.
func (h *handler) events(w http.ResponseWriter, r *http.Request) {
	page, _ := strconv.Atoi(r.FormValue("page")) // the first, if it is none
	ask := question{r.FormValue("q"), r.FormValue("state"), r.FormValue("sort"), page, r.FormValue("host"), r.FormValue("part")}
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		text, err := json.Marshal(h.frame(ask))
		if err != nil {
			return
		}
		// One that does not read is not waited for.
		out.SetWriteDeadline(time.Now().Add(10 * time.Second))
		if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

func (h *handler) frame(ask question) frame {
	s, events := h.watch.look(key{ask.host, ask.part})
	f := frame{
		At: s.At, Total: len(s.Hosts), Counts: make(map[string]int), Controls: h.controls,
		Rows: []*Host{}, Events: newest(events, ask.host, ask.part),
	}
	if ask.host == "" {
		f.Outbox, f.Queues = s.Outbox[:min(len(s.Outbox), keepQueues)], len(s.Outbox)
	}
	part := strings.ToLower(strings.TrimSpace(ask.q))
	healthy := 0 // counted apart: they are nearly all, and a map takes its time
	for _, row := range s.Hosts {
		if row.State == ok {
			healthy++
		} else {
			f.Counts[row.State]++
		}
		f.Queue += row.Queue
		f.Oldest = max(f.Oldest, row.OldestWait)
		if row.Name == ask.host && row.Partition == ask.part {
			f.Detail = row
		}
		if strings.Contains(strings.ToLower(row.Name), part) && (ask.state == "" || ask.state == row.State) {
			f.Rows = append(f.Rows, row)
		}
	}
	if healthy > 0 {
		f.Counts[ok] = healthy
	}
	f.Found = len(f.Rows)
	f.From = pageRows * max(0, min(ask.page, (f.Found-1)/pageRows))
	f.Rows = arrange(f.Rows, ask.sort, f.From+pageRows)[f.From:]
	h.watch.showed(f.Rows)
	for i, row := range f.Rows {
		f.Rows[i] = row.brief()
	}
	return f
}

// brief is what the list shows of h.
func (h *Host) brief() *Host {
	short := *h
	short.Routes, short.Wait.Counts, short.Latency.Counts = nil, nil, nil
	return &short
}

// arrange returns the first rows, at most so many, in the order of a column, "-"
// before it for descending. Rows that are equal stay as they stand, by name, as do
// all of an unknown column. rows is overwritten.
func arrange(rows []*Host, order string, most int) []*Host {
	column, down := strings.CutPrefix(order, "-")
	by := columnOf(column)
	compare := func(a, b *Host) int {
		if down {
			a, b = b, a
		}
		return by(a, b)
	}
	if len(rows) < 4*most {
		slices.SortStableFunc(rows, compare)
		return rows[:min(len(rows), most)]
	}
	first := make([]*Host, 0, 2*most) // of a hundred thousand nearly all are passed by
	for _, row := range rows {
		if len(first) >= most && compare(row, first[most-1]) >= 0 {
			continue // first is sorted up to there
		}
		if first = append(first, row); len(first) == most || len(first) == cap(first) {
			slices.SortStableFunc(first, compare)
			first = first[:most]
		}
	}
	slices.SortStableFunc(first, compare)
	return first[:min(len(first), most)]
}

func columnOf(name string) func(a, b *Host) int {
	switch name {
	case "state":
		return func(a, b *Host) int {
			if a.State != b.State {
				return cmp.Compare(rank(a.State), rank(b.State))
			}
			return cmp.Compare(a.Queue, b.Queue)
		}
	case "queue":
		return func(a, b *Host) int { return cmp.Compare(a.Queue, b.Queue) }
	case "wait":
		return func(a, b *Host) int { return cmp.Compare(a.OldestWait, b.OldestWait) }
	case "inflight":
		return func(a, b *Host) int { return cmp.Compare(a.InFlight, b.InFlight) }
	case "granted":
		return func(a, b *Host) int { return cmp.Compare(a.Granted, b.Granted) }
	case "refused":
		return func(a, b *Host) int { return cmp.Compare(a.refusals(), b.refusals()) }
	case "left":
		return func(a, b *Host) int { return cmp.Compare(a.left(), b.left()) }
	}
	return func(a, b *Host) int { return cmp.Compare(a.Name, b.Name) }
}

// rank orders states by how much they deserve a look.
func rank(state string) int {
	return slices.Index([]string{ok, "closed", waiting, paused, refusing, "half-open", "open"}, state)
}

// refusals is how many requests were turned away, by a budget or the circuit.
func (h *Host) refusals() int64 { return h.Refused + int64(h.turnedAway()) }

// left is the share of the tightest limit that is left; 2 without limits.
func (h *Host) left() float64 {
	least := 2.0
	for _, b := range h.Budgets {
		if b.Limit > 0 {
			least = min(least, b.Left/float64(b.Limit))
		}
	}
	for _, f := range h.Learned {
		if f.Limit > 0 {
			least = min(least, f.Left/f.Limit)
		}
	}
	return least
}
