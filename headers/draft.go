package headers

import (
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxLimits bounds the limits of one response: as many as a list may have items.
const maxLimits = 64

// draft is a limit while it is put together from several headers.
type draft struct {
	Limit
	origin origin
	family uint32
	vendor uint32
	called string        // what the header's name calls it; Name may come from elsewhere
	per    time.Duration // the window in the header's name
	place  int           // of a bare list's item, from 1; 0 for all others
	alias  string        // the second string of a structured item
	sure   int8          // how much the reset is worth: see reset
	minus  bool          // remaining was exactly -1
	rate   bool          // the quota is a rate, in units per second
	joined bool          // with a policy
	dead   bool          // merged into another, or superseded
}

// origin is where a draft came from, which decides what may join it.
type origin uint8

const (
	fromName       origin = iota // the header's name
	fromStructured               // a named item of RateLimit (drafts -08 and later)
	fromPolicy                   // an item of RateLimit-Policy, or of a limit header's list
	fromItem                     // an item that names itself in other ways
)

// parser gathers the drafts of one response.
type parser struct {
	status int
	now    time.Time
	host   *hostRow
	n      int // drafts; most responses need no more than fit in space
	space  [4]draft
	more   []draft
	names  reader
	text   texts
	waits  waits
	source string // the header being read, as the response spells it

	compared bool // whether two drafts are one was decided by their numbers
}

// texts are the values of label headers.
type texts struct {
	label, scope             string
	labelVendor, scopeVendor uint32
	reason, code             string
	advice                   Opt[bool]
}

// draft returns the draft of the limit that m names, a new one if need be; nil
// if there is no more room.
func (p *parser) draft(m *meaning, per time.Duration, place int) *draft {
	name := p.names.name(m)
	for i := range p.n {
		d := p.at(i)
		if d.origin == fromName && d.family == m.family && d.per == per && d.place == place &&
			d.Unit == m.unit && d.called == string(name) {
			return d
		}
	}
	if m.weak {
		return nil
	}
	d := p.add(m, fromName)
	if d != nil {
		d.per, d.place = per, place
		d.called = clean(string(name))
		d.Name = d.called
	}
	return d
}

// at returns the i-th draft. It is valid until the next is added.
func (p *parser) at(i int) *draft {
	if i < len(p.space) {
		return &p.space[i]
	}
	return &p.more[i-len(p.space)]
}

// add appends a draft; nil if there is no more room.
func (p *parser) add(m *meaning, o origin) *draft {
	if p.n >= 2*maxLimits {
		return nil
	}
	if p.n >= len(p.space) {
		p.more = append(p.more, draft{})
	}
	p.n++
	d := p.at(p.n - 1)
	d.origin, d.family, d.vendor = o, m.family, m.vendor
	d.Unit, d.Source = m.unit, lowerName(p.source)
	return d
}

// set records a count under a role. Of several values the one to be careful
// with is kept: the smallest remaining, the largest used. A quota keeps the
// first, which is what draft -03 wants of a list.
func (d *draft) set(r role, v float64, minus bool) {
	switch r {
	case roleQuota, roleList, rolePolicy:
		if !minus && !d.Quota.Known {
			d.Quota = some(v)
		}
	case roleRemaining:
		if minus {
			d.minus = d.minus || v == 1
			v = 0
		}
		if !d.Remaining.Known || v < d.Remaining.Value {
			d.Remaining = some(v)
		}
	case roleUsed:
		if !minus && (!d.Used.Known || v > d.Used.Value) {
			d.Used = some(v)
		}
	case roleRefill:
		if !minus {
			d.Refill = some(v)
		}
	case roleCost:
		if !minus && (!d.Cost.Known || v > d.Cost.Value) {
			d.Cost = some(v)
		}
	case roleRatio, rolePercent:
		if r == rolePercent && v > 3 { // some percentages run from 0 to 1
			v /= 100
		}
		if !minus && (!d.UsedRatio.Known || v > d.UsedRatio.Value) {
			d.UsedRatio = some(v)
		}
	case roleRate:
		if !minus && !d.Quota.Known {
			d.Quota, d.Refill = some(v), some(v)
			d.Window, d.rate = some(time.Second), true
		}
	}
}

// reset records a reset. Of several, the surest counts (a delta before a date),
// of equals the longest.
func (d *draft) reset(v time.Duration, sure int8, means ResetMeans) {
	if d.Reset.Known && (sure < d.sure || sure == d.sure && v <= d.Reset.Value) {
		return
	}
	d.Reset, d.sure, d.ResetMeans = some(v), sure, means
}

// parseCount reads a number of units; minus says that it had a minus sign.
func parseCount(s string) (v float64, minus, ok bool) {
	s = trim(s)
	if s != "" && s[0] == '-' {
		s, minus = s[1:], true
	}
	n, ok := parseDecimal(s)
	return n.float(), minus, ok
}

// isInteger reports whether s is a number without sign and fraction.
func isInteger(s string) bool {
	if s == "" || len(s) > 20 {
		return false
	}
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return true
}

// lowerName returns a header's name in lower case. The commonest are constants,
// which take no space.
func lowerName(s string) string {
	for _, name := range [...]string{"x-ratelimit-limit", "x-rate-limit-limit", "ratelimit-limit", "ratelimit"} {
		if len(s) == len(name) && around(s, 0, name) {
			return name
		}
	}
	return clean(strings.ToLower(s[:min(len(s), maxName)]))
}

// clean makes a string of the response fit to be kept and printed: no control
// or format characters, no broken UTF-8, no more than maxName bytes.
func clean(s string) string {
	if len(s) <= maxName {
		plain := true
		for i := range len(s) {
			if s[i] < ' ' || s[i] > '~' {
				plain = false
				break
			}
		}
		if plain {
			return s
		}
	}
	var b strings.Builder
	for _, r := range s[:min(len(s), 4*maxName)] {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			continue
		}
		if b.Len()+utf8.RuneLen(r) > maxName {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// sane reports whether a computed number can be given out.
func sane(v float64) bool { return v >= 0 && !math.IsInf(v, 0) && !math.IsNaN(v) }
