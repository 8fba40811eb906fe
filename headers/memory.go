package headers

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// A Memory reads the answers of one host sooner than [Parse] does. A host states
// its limits in the same headers with every answer, and little changes but what
// remains and when it resets: a Memory keeps the layout of a few answers, and of one
// that has a known layout it reads these numbers only. What it returns is exactly
// what Parse returns.
//
// It knows the layouts that most servers have: a number for each header, and the
// structured fields of draft-ietf-httpapi-ratelimit-headers -08 and later. All
// other answers, and every one of a status from 400 on, are for Parse.
//
// The zero Memory is ready for use, and safe for concurrent use without a lock.
// Whatever a host sends, it keeps at most 4 layouts of 2 KiB of text.
type Memory struct {
	kept atomic.Pointer[kept] // nil: no answer stated limits
}

type kept struct {
	layouts [maxLayouts]atomic.Pointer[layout] // none of them changes
	found   atomic.Uint32                      // layouts, also those that others took the place of
	strange atomic.Uint32                      // answers without a known layout, as far as they could have one
}

const (
	maxLayouts    = 4       // a host has a layout for each of its resources, as GitHub's core, search and graphql
	maxLayoutText = 2 << 10 // bytes; the longest layout in testdata has 500
	maxSlots      = 16      // headers, and numbers of one structured field
	maxAside      = 8       // names of no interest; more are looked at again each time
	seldom        = 32      // of so many answers of unknown layout one is remembered: that takes as long as Parse
)

// Recall is [Parse], if resp has a layout that m remembers; else ok is false.
func (m *Memory) Recall(resp *http.Response) (s Signal, ok bool) {
	k := m.kept.Load()
	if k == nil || resp.StatusCode >= 400 {
		return s, false
	}
	for i := range k.layouts {
		f := k.layouts[i].Load()
		if f == nil {
			break
		}
		if f.may(resp.Header) {
			if s, ok = f.read(resp); ok {
				return s, true
			}
		}
	}
	return Signal{}, false
}

// Parse is [Parse], and remembers the layout of resp. It is for those that Recall
// does not know.
func (m *Memory) Parse(resp *http.Response, now time.Time) Signal {
	s := Parse(resp, now)
	if resp.StatusCode >= 400 || s.Throttled || len(s.Limits) == 0 {
		return s
	}
	if m.kept.Load() == nil {
		m.kept.CompareAndSwap(nil, new(kept))
	}
	k := m.kept.Load()
	if n := k.strange.Add(1); n <= maxLayouts || n%seldom == 0 {
		if f := newLayout(resp, now); f != nil {
			k.layouts[(k.found.Add(1)-1)%maxLayouts].Store(f)
		}
	}
	return s
}

// layout is what answers have in common whose headers of interest have the same
// names, and the same values but for the numbers that the slots read. Nothing that
// decides how Parse joins and names limits differs among them: see newLayout.
type layout struct {
	host   string
	slots  []slot
	key    int      // the slot in which layouts are most likely to differ; -1: none
	aside  []string // names of no interest, besides those of ordinary
	sizes  uint64   // a bit for each length of a name above, modulo 64
	dated  bool     // some reset is an instant: the answer has to have a date
	day    string   // how the Date of the first such answer began; "": it was written in another way
	starts time.Time
	advice Opt[bool]
	limits []Limit // those of the first such answer
	sums   []derived
}

// derived is a number of a limit that follows from two others, as in draft.derive.
type derived struct {
	limit     int
	remaining bool // is the quota less what is used; else the quota is the sum
}

// slot is one header of a layout.
type slot struct {
	name   string
	value  string   // if there are no numbers to read: what it has to be
	figure figure   // the value, if it is one number
	items  []figure // of a structured field; the value is what follows the last of them
}

// figure is a number of an answer, and the part of a limit that it is.
type figure struct {
	before string // what stands in front of it
	role   role   // remaining, used or reset; none: there is no number
	limit  int
	scale  time.Duration // of a reset
	sure   int8          // of a reset: likewise
	means  ResetMeans
}

// may reports whether it is worth to read h as f.
func (f *layout) may(h http.Header) bool {
	if f.key < 0 {
		return true
	}
	x := &f.slots[f.key]
	lines := h[x.name]
	return len(lines) == 1 && lines[0] == x.value
}

// read reads resp, if it has the layout f.
func (f *layout) read(resp *http.Response) (s Signal, ok bool) {
	var values [maxSlots]string
	date, ok := f.collect(&values, resp.Header)
	if !ok || hostOf(resp) != f.host {
		return s, false
	}
	for i := range f.slots {
		if x := &f.slots[i]; x.figure.role == roleNone && len(x.items) == 0 && values[i] != x.value {
			return s, false
		}
	}
	var now time.Time
	if f.dated {
		if now, ok = f.clock(date); !ok {
			return s, false
		}
	}
	limits := slices.Clone(f.limits)
	for i := range f.slots {
		x := &f.slots[i]
		if x.figure.role != roleNone && !x.figure.read(limits, values[i], now) ||
			len(x.items) > 0 && !x.readItems(limits, values[i]) {
			return s, false
		}
	}
	for _, d := range f.sums {
		if l := &limits[d.limit]; d.remaining {
			l.Remaining = some(max(l.Quota.Value-l.Used.Value, 0))
		} else {
			l.Quota = some(l.Used.Value + l.Remaining.Value)
		}
	}
	return Signal{ShouldRetry: f.advice, Limits: limits}, true
}

// collect puts the values of the slots in their places. ok is false if h has not
// just these headers of interest, with one line each, or is out of a cache.
func (f *layout) collect(values *[maxSlots]string, h http.Header) (date string, ok bool) {
	n := 0
	for name, lines := range h {
		if len(lines) == 0 {
			continue
		}
		if f.sizes>>(len(name)&63)&1 != 0 {
			if i := f.slot(name); i >= 0 {
				if len(lines) != 1 {
					return "", false
				}
				values[i] = lines[0]
				n++
				continue
			}
			if slices.Contains(f.aside, name) {
				continue
			}
		}
		switch {
		case name == "Date":
			date = lines[0]
		case name == "Age":
			if lines[0] != "0" {
				return "", false
			}
		case !aside(name):
			return "", false
		}
	}
	return date, n == len(f.slots)
}

// clock is parseTime, sooner for another time of the day that f knows.
func (f *layout) clock(date string) (time.Time, bool) {
	if n := len(f.day); n == 0 || len(date) != fixedLen || date[:n] != f.day || date[19] != ':' || date[22] != ':' || date[25:] != " GMT" {
		return parseTime(date)
	}
	h, ok1 := atoi(date[17:19])
	m, ok2 := atoi(date[20:22])
	s, ok3 := atoi(date[23:25])
	if !ok1 || !ok2 || !ok3 || h > 23 || m > 59 || s > 60 {
		return time.Time{}, false
	}
	return f.starts.Add(time.Duration(h*3600+m*60+s) * time.Second), true
}

func (f *layout) slot(name string) int {
	for i := range f.slots {
		if f.slots[i].name == name {
			return i
		}
	}
	return -1
}

// aside reports whether Parse does not look at headers of that name.
func aside(name string) bool {
	return ordinary(name) || !isClock(name, "date") && !isClock(name, "age") && !promising(name)
}

func isClock(name, clock string) bool { return len(name) == len(clock) && around(name, 0, clock) }

// read reads a value that is one number.
func (x *figure) read(limits []Limit, s string, now time.Time) bool {
	l := &limits[x.limit]
	if x.role == roleReset {
		v, sure, means, ok := parseReset(s, x.scale, now)
		if !ok || sure != x.sure || means != x.means || !single(s) {
			return false
		}
		l.Reset.Value = v
		return true
	}
	v, ok := parseDecimal(s)
	if ok {
		x.count(l, v.float())
	}
	return ok
}

func (x *figure) count(l *Limit, v float64) {
	if x.role == roleUsed {
		l.Used.Value = v
	} else {
		l.Remaining.Value = v
	}
}

// single reports whether the reader of resets takes s as one value, as it is.
func single(s string) bool {
	for i := range len(s) {
		if s[i] == ',' || s[i] == ';' || isBlank(s[i]) || s[i] == '"' || s[i] == '\'' {
			return false
		}
	}
	return true
}

// readItems reads the numbers of a structured field.
func (x *slot) readItems(limits []Limit, s string) bool {
	for i := range x.items {
		item := &x.items[i]
		rest, ok := strings.CutPrefix(s, item.before)
		n := digits(rest)
		if !ok || !item.readInteger(&limits[item.limit], rest[:n]) {
			return false
		}
		s = rest[n:]
	}
	return s == x.value
}

// readInteger reads a number of a structured field, all digits.
func (x *figure) readInteger(l *Limit, s string) bool {
	v, ok := parseDecimal(s)
	if !ok || len(s) > 20 { // longer ones are no integers
		return false
	}
	if x.role != roleReset {
		x.count(l, v.float())
		return true
	}
	l.Reset.Value = v.times(time.Second)
	return l.Reset.Value <= mostDelta // else it is an instant
}

func digits(s string) (n int) {
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}
