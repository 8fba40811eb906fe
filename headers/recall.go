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
	var values [maxSlots]string
	date, ok := f.collect(&values, resp.Header)
	if !ok || !f.from(resp) {
		return nil
	}
	r := f.spare.Swap(nil)
	if r == nil {
		r = &Recalled{Signal: Signal{ShouldRetry: f.advice, Limits: slices.Clone(f.limits)}, of: f}
	}
	if !r.read(date, &values) {
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
// layout; then what is read of it does no harm, as the next answer replaces it.
func (r *Recalled) read(date string, values *[maxSlots]string) bool {
	f := r.of
	if f.dated && !r.date.is(date) {
		now, ok := f.clock(date)
		if !ok {
			return false
		}
		r.now = now
		r.date.keep(date)
		for i := range f.slots {
			r.was[i].n = 0
		}
	}
	for i := range f.slots {
		x, s := &f.slots[i], values[i]
		switch x.figure.role {
		case roleNone:
			if len(x.items) > 0 && !x.readItems(r.Limits, s) || len(x.items) == 0 && s != x.value {
				return false
			}
		case roleReset:
			if r.was[i].is(s) {
				continue
			}
			r.was[i].n = 0
			if !x.figure.readReset(r.Limits, s, r.now) {
				return false
			}
			r.was[i].keep(s)
		default:
			if !x.figure.read(r.Limits, s) {
				return false
			}
		}
	}
	for _, d := range f.sums {
		if l := &r.Limits[d.limit]; d.remaining {
			l.Remaining = some(max(l.Quota.Value-l.Used.Value, 0))
		} else {
			l.Quota = some(l.Used.Value + l.Remaining.Value)
		}
	}
	return true
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

// collect puts the values of the slots in their places. ok is false if h has not
// just these headers of interest, with one line each, or is out of a cache.
func (f *layout) collect(values *[maxSlots]string, h http.Header) (date string, ok bool) {
	for i := range f.slots {
		lines := h[f.slots[i].name]
		if len(lines) != 1 {
			return "", false
		}
		values[i] = lines[0]
	}
	left := len(h) - len(f.slots)                              // names of h that are not found yet
	missing := len(f.names) - len(f.slots) - left              // as many are not there, if all of h are known
	for i := len(f.names) - 1; left > 0 && missing >= 0; i-- { // from the end, so that Age comes last, which hardly any answer has
		k := &f.names[i]
		if k.as >= 0 {
			continue
		}
		lines, there := h[k.name]
		if !there {
			missing--
			continue
		}
		if left--; k.as != asAside && !look(k.as, lines, &date) {
			return "", false
		}
	}
	return date, left == 0 || f.walk(h, &date)
}

// walk is the rest of collect if some names of h are not known, which is rare: to look for each
// in h takes less time than to walk through h and find out what each is.
func (f *layout) walk(h http.Header, date *string) bool {
	for name, lines := range h {
		as := f.as(name)
		if as == asStrange {
			if len(lines) > 0 && !aside(name) {
				return false
			}
			as = asideAs(name)
		}
		if as < asAside && !look(as, lines, date) {
			return false
		}
	}
	return true
}

// look takes in a header that is no slot's. It reports false if it is not as it has to be.
func look(as int8, lines []string, date *string) bool {
	switch {
	case len(lines) == 0:
	case as == asDate:
		*date = lines[0]
	case as == asMedia:
		return !isGraphQL(lines)
	case as == asAge:
		return lines[0] == "0"
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
