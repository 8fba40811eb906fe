package headers

import (
	"strings"
	"time"
)

// How much a reset is worth, among several of one limit. Only the order matters, together
// with meaning.prefer, which is added.
const (
	sureDate       = 2 // absolute, which needs the two clocks to agree
	sureDelta      = 4 // of the server's own clock alone
	sureAfter      = 5 // a delta that is called so
	sureStructured = 7 // a field of the IETF's drafts has one meaning
)

// mostDelta is the longest reset that is taken as a delta: windows of a year occur.
const mostDelta = 366 * day

// resets reads the lines of a reset header; of several the longest counts.
func (p *parser) resets(m *meaning, lines []string) {
	scale := p.resetScale(m)
	keep := func(s string) bool {
		s, _, _ = strings.Cut(s, ";") // draft -03 allows parameters
		v, sure, means, ok := parseReset(trim(s), scale, p.now)
		if ok {
			if d := p.draft(m, m.window, 0); d != nil {
				d.reset(v, sure+m.prefer, means)
			}
		}
		return ok
	}
	for _, s := range lines {
		if !keep(s) {
			eachPiece(s, keep)
		}
	}
}

// resetScale is what a bare number in a reset header counts whose name means m.
func (p *parser) resetScale(m *meaning) time.Duration {
	if p.host != nil && p.host.scale > 0 {
		return p.host.scale
	}
	return m.scale
}

// parseReset reads a reset in any form seen: a delta or a Unix time, told apart
// by size, a duration, a date. unit is what a bare delta counts. What is past
// is 0. A number that is neither a delta of a year nor a date of this
// century is none.
func parseReset(s string, unit time.Duration, now time.Time) (v time.Duration, sure int8, means ResetMeans, ok bool) {
	negative := len(s) > 1 && s[0] == '-'
	if negative {
		s = s[1:]
	}
	if d, isNumber := parseDecimal(s); isNumber {
		if negative {
			return 0, sureDelta, Unknown, true
		}
		if v := d.times(unit); v <= mostDelta {
			return v, sureDelta, Unknown, true
		}
		if t, ok := d.instant(); ok {
			return until(t, now), sureDate, Unknown, true
		}
		return 0, 0, 0, false
	}
	if d, isSpan := parseSpan(s); isSpan {
		if negative {
			return 0, sureDelta, Unknown, true
		}
		means = Unknown
		if strings.IndexByte(s, ':') < 0 {
			means = Full // who counts in "6m0s" tells when the bucket is full
		}
		return d, sureDelta, means, true
	}
	if t, isTime := parseTime(s); isTime && !negative {
		return until(t, now), sureDate, Unknown, true
	}
	return 0, 0, 0, false
}
