package headers

import (
	"net/http"
	"sync/atomic"
	"time"
)

// A Memory reads the answers of one host faster than [Parse] does. A host states its
// limits in the same headers with every answer, and little changes but what remains
// and when it resets. So a Memory keeps the layouts of a few answers. Of an answer
// whose layout it knows, it reads only these numbers. What it returns is exactly what
// Parse returns.
//
// It knows the layouts that most servers have: a number for each header, and the
// structured fields of draft-ietf-httpapi-ratelimit-headers -08 and later. All other
// answers are read whole, and also those with a status from 400 on or with GraphQL's
// media type, whose body may say more.
//
// The zero Memory is ready for use, and safe for concurrent use without a lock.
// Whatever a host sends, it keeps at most 4 layouts of 2 KiB of text.
type Memory struct {
	kept atomic.Pointer[kept] // nil: no answer stated limits
}

type kept struct {
	layouts [maxLayouts]atomic.Pointer[layout] // none of them changes, but for spare
	found   atomic.Uint32                      // layouts, also those that others took the place of
	strange atomic.Uint32                      // answers without a known layout, as far as they could have one
}

const (
	maxLayouts    = 4       // a host has a layout for each of its resources, as GitHub's core, search and graphql
	maxLayoutText = 2 << 10 // bytes; the longest layout in testdata has 500
	maxSlots      = 16      // headers, and numbers of one structured field
	maxNames      = 40      // headers, of the 20 to 30 that most answers have; more are looked at again each time
	seldom        = 32      // of so many answers of unknown layout one is remembered: that takes as long as Parse
)

// Recall is [Parse], if resp has a layout that m remembers; else it returns nil.
// What it returns is the caller's until [Recalled.Done].
func (m *Memory) Recall(resp *http.Response) *Recalled {
	k := m.kept.Load()
	if k == nil || resp.StatusCode >= 400 {
		return nil
	}
	one := k.layouts[1].Load() == nil // then there is nothing to choose
	for i := range k.layouts {
		f := k.layouts[i].Load()
		if f == nil {
			break
		}
		if !one && !f.may(resp.Header) {
			continue
		}
		if r := f.recall(resp); r != nil {
			return r
		}
	}
	return nil
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
	key    int       // the slot in which layouts are most likely to differ; -1: none
	named  bool      // host is a name, as it stands in a URL
	dated  bool      // some reset is an instant: the answer has to have a date
	names  []known   // of all headers that are known
	asides []string  // those of no interest
	byLen  [64]uint8 // of the first of names of such a length, modulo 64, one more; 0: none
	day    string    // how the Date of the first such answer began; "": it was written in another way
	starts time.Time
	advice Opt[bool]
	limits []Limit // those of the first such answer
	sums   []derived
	spare  atomic.Pointer[Recalled] // nil: somebody has it
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
	fixed  bool     // there are none
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

// aside reports whether Parse does not look at headers of that name.
func aside(name string) bool {
	return ordinary(name) || !isClock(name, "date") && !isClock(name, "age") && !promising(name)
}

// asideAs is what a name that is of no interest stands for.
func asideAs(name string) int8 {
	if name == mediaType {
		return asMedia
	}
	return asAside
}

func isClock(name, clock string) bool { return len(name) == len(clock) && around(name, 0, clock) }

// single reports whether the reader of resets takes s as one value, as it is.
func single(s string) bool {
	for i := range len(s) {
		if s[i] == ',' || s[i] == ';' || isBlank(s[i]) || s[i] == '"' || s[i] == '\'' {
			return false
		}
	}
	return true
}

func digits(s string) (n int) {
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}
