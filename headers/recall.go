package headers

import (
	"net/http"
	"slices"
	"time"
)

// Recalled is what a [Memory] made of an answer. After Done it is used for the next
// answer of the same layout, so that only what has changed is read, and no memory is
// allocated. So its Signal must not be changed, nor kept beyond Done.
type Recalled struct {
	Signal
	of   *layout
	date text // for which
	now  time.Time
	was  [maxSlots]text // of the resets that Limits has, if now is the same: an instant stays for a window
}

// Done gives r back. Call it once. If it is not called, the next answer allocates memory.
func (r *Recalled) Done() { r.of.spare.Store(r) }

// text is a short text, kept without what it was a part of.
type text struct {
	n    uint8 // zero: none
	text [longText]byte
}

const longText = 31 // bytes; a date has 29

func (t *text) is(s string) bool { return len(s) == int(t.n) && t.n > 0 && string(t.text[:t.n]) == s }

func (t *text) keep(s string) {
	if t.n = 0; len(s) <= longText {
		t.n = uint8(copy(t.text[:], s))
	}
}

// recall reads resp, if it has the layout f; else it returns nil.
func (f *layout) recall(resp *http.Response) *Recalled {
	if !f.from(resp) {
		return nil
	}
	r := f.spare.Swap(nil)
	if r == nil {
		r = &Recalled{Signal: Signal{ShouldRetry: f.advice, Limits: slices.Clone(f.limits)}, of: f}
	}
	if !r.read(resp.Header) {
		r.Done()
		return nil
	}
	return r
}

// from reports whether resp came from f's host.
func (f *layout) from(resp *http.Response) bool {
	if r := resp.Request; f.named && r != nil && r.URL != nil && r.URL.Host == f.host {
		return true // without a port to cut off
	}
	return hostOf(resp) == f.host
}

// read takes over the numbers of an answer. It reports false if the answer is not of r's
// layout, which has just these headers of interest, with one line each, and is not out of a
// cache; then what is read of it does no harm, as the next answer replaces it.
func (r *Recalled) read(h http.Header) bool {
	f, slots := r.of, r.of.slots
	left := len(h) - len(slots) // names of h that are not looked at yet
	dates, there := h["Date"]
	if there {
		left--
	}
	if f.dated && !r.at(dates) {
		return false
	}
	for i := range slots {
		x := &slots[i]
		lines := h[x.name]
		if len(lines) != 1 {
			return false
		}
		s := lines[0]
		if x.fixed {
			if s != x.value {
				return false
			}
			continue
		}
		if x.figure.counts() {
			if n, ok := plainDigits(s); ok {
				x.figure.count(&r.Limits[x.figure.limit], float64(n))
				continue
			}
		}
		if !r.fill(x, &r.was[i], s) {
			return false
		}
	}
	for _, d := range f.sums {
		if l := &r.Limits[d.limit]; d.remaining {
			l.Remaining = some(max(l.Quota.Value-l.Used.Value, 0))
		} else {
			l.Quota = some(l.Used.Value + l.Remaining.Value)
		}
	}
	return f.ignores(h, left)
}

// at sets the time of an answer, by its Date.
func (r *Recalled) at(dates []string) bool {
	date := ""
	if len(dates) > 0 {
		date = dates[0]
	}
	if r.date.is(date) {
		return true
	}
	now, ok := r.of.clock(date)
	if ok {
		r.now = now
		r.date.keep(date)
		for i := range r.of.slots {
			r.was[i].n = 0
		}
	}
	return ok
}

// fill takes over the value s of the slot x, which is not fixed. was is its last one, if it is a
// reset.
func (r *Recalled) fill(x *slot, was *text, s string) bool {
	switch x.figure.role {
	case roleNone:
		return x.readItems(r.Limits, s)
	case roleReset:
		if was.is(s) {
			return true
		}
		was.n = 0
		if !x.figure.readReset(r.Limits, s, r.now) {
			return false
		}
		was.keep(s)
		return true
	}
	return x.figure.read(r.Limits, s)
}

// known is a name that answers of a layout have.
type known struct {
	name string
	as   int8  // the slot, or one of the below
	next uint8 // of the names of the same length, one more; 0: none
}

const (
	asAside = -1 - iota // of no interest
	asDate
	asAge
	asMedia   // of which GraphQL's is for others to look at
	asStrange // not known
)

// know adds a name.
func (f *layout) know(name string, as int8) {
	at := &f.byLen[len(name)&63]
	f.names = append(f.names, known{name: name, as: as, next: *at})
	*at = uint8(len(f.names))
	if as == asAside {
		f.asides = append(f.asides, name)
	}
}

// as is what name stands for.
func (f *layout) as(name string) int8 {
	for i := f.byLen[len(name)&63]; i != 0; {
		k := &f.names[i-1]
		if k.name == name {
			return k.as
		}
		i = k.next
	}
	return asStrange
}

// ignores reports whether the names of h that stand for no slot are of no interest. Of these,
// left are not looked at yet.
func (f *layout) ignores(h http.Header, left int) bool {
	if lines, there := h[mediaType]; there {
		if left--; isGraphQL(lines) {
			return false
		}
	}
	missing := len(f.asides) + 1 - left // of these and Age as many are not there, if all of h are known
	for i := 0; left > 0 && missing >= 0 && i < len(f.asides); i++ {
		if _, there := h[f.asides[i]]; there {
			left--
		} else {
			missing--
		}
	}
	return left == 0 || left == 1 && fresh(h) || f.walk(h)
}

// fresh reports whether h has an Age, as is rare, that says it is not out of a cache.
func fresh(h http.Header) bool {
	lines := h["Age"]
	return len(lines) > 0 && lines[0] == "0"
}

// walk is the rest of ignores if some names of h are not known, which is rare: to look for each
// in h takes less time than to walk through h and find out what each is.
func (f *layout) walk(h http.Header) bool {
	for name, lines := range h {
		as := f.as(name)
		if as == asStrange {
			if len(lines) > 0 && !aside(name) {
				return false
			}
			as = asideAs(name)
		}
		if len(lines) > 0 && (as == asMedia && isGraphQL(lines) || as == asAge && lines[0] != "0") {
			return false
		}
	}
	return true
}

// read reads a value that is one number of units.
func (x *figure) read(limits []Limit, s string) bool {
	v, ok := parseDecimal(s)
	if ok {
		x.count(&limits[x.limit], v.float())
	}
	return ok
}

// readReset reads a value that is one reset.
func (x *figure) readReset(limits []Limit, s string, now time.Time) bool {
	if x.means == Full && x.sure == sureDelta { // a span, of units that it names
		if v, ok := shortSpan(s); ok {
			limits[x.limit].Reset.Value = v
			return true
		}
	}
	v, sure, means, ok := parseReset(s, x.scale, now)
	if !ok || sure != x.sure || means != x.means || !single(s) {
		return false
	}
	limits[x.limit].Reset.Value = v
	return true
}

// counts reports whether x is a number of units.
func (x *figure) counts() bool { return x.role == roleRemaining || x.role == roleUsed }

func (x *figure) count(l *Limit, v float64) {
	if x.role == roleUsed {
		l.Used.Value = v
	} else {
		l.Remaining.Value = v
	}
}

// readItems reads the numbers of a structured field.
func (x *slot) readItems(limits []Limit, s string) bool {
	for i := range x.items {
		item := &x.items[i]
		n := len(item.before)
		if len(s) < n || s[:n] != item.before {
			return false
		}
		s = s[n:]
		if n = digits(s); !item.readInteger(&limits[item.limit], s[:n]) {
			return false
		}
		s = s[n:]
	}
	return s == x.value
}

// readInteger reads a number of a structured field, all digits.
func (x *figure) readInteger(l *Limit, s string) bool {
	n, ok := plainDigits(s)
	if x.role == roleReset {
		l.Reset.Value = time.Duration(n) * time.Second
		return ok && n <= int64(mostDelta/time.Second) // else it is an instant
	}
	if ok {
		x.count(l, float64(n))
		return true
	}
	v, ok := parseDecimal(s)
	if !ok || len(s) > 20 { // longer ones are no integers
		return false
	}
	x.count(l, v.float())
	return true
}
