package headers

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// What is read of one response is bounded, whatever the server sends: net/http takes 10 MiB
// of headers. Of the answers in testdata none has more than 12 headers, 4 lines of one, or 7
// items in a list.
const (
	maxHeaders = 128 // headers of interest
	maxLines   = 64  // lines of one header
	maxItems   = 64  // items of one list
)

// Parse returns what the status and the headers of resp say about quotas. It
// reads no body, keeps nothing and changes nothing. now is the local time at which
// resp came. If there is a Date header, times are reckoned from that instead, so a
// local clock that is wrong does no harm. If resp.Request is set, the host's name
// helps with the few servers whose headers cannot be told apart without it.
//
// It is safe for concurrent use. The time that it takes is linear in the size of the
// headers, whatever they hold.
func Parse(resp *http.Response, now time.Time) Signal {
	return parse(resp, nil, now)
}

// ParseBody does what Parse does, and also reads body, which is the response's body
// or its beginning: the waits, counters and error codes that JSON and XML APIs send
// there. If a header and the body differ, the header counts. The format is recognised
// by the body itself, and the body may be cut short anywhere.
func ParseBody(resp *http.Response, body []byte, now time.Time) Signal {
	return parse(resp, body, now)
}

// Silent reports whether no header of h is of interest here, as in most responses.
// What Parse returns for such a response depends on its status alone, and not on now.
// The media type of GraphQL is of interest, because such a body may be a refusal
// whatever the status says.
func Silent(h http.Header) bool {
	for name, lines := range h {
		if name == mediaType {
			if isGraphQL(lines) {
				return false
			}
			continue
		}
		if !ordinary(name) && len(lines) > 0 && promising(name) {
			return false
		}
	}
	return true
}

func parse(resp *http.Response, body []byte, now time.Time) Signal {
	var space [16]entry
	found, clock := collect(space[:0], resp.Header)
	if len(found) == 0 && len(body) == 0 {
		return bare(resp.StatusCode)
	}
	if t, ok := parseTime(clock.date.value); ok {
		now = t
	}
	return parseFound(resp, found, body, now, clock.age.value)
}

// bare is the signal of a response without any header of interest: the statuses
// of which refused needs to know no more.
func bare(status int) Signal {
	switch status {
	case http.StatusTooManyRequests, 420, 430, 509:
		return Signal{Throttled: true, Kind: Quota}
	case 529:
		return Signal{Throttled: true, Kind: Overload}
	}
	return Signal{}
}

// entry is a header of interest.
type entry struct {
	name  string // as the response spells it
	lines []string
}

// clock is what a response says about its age.
type clock struct{ date, age once }

// once is a header that counts once. If a map holds it in several spellings,
// it is the first of them in order, so that chance has no part in it.
type once struct{ name, value string }

func (o *once) take(name, value string) {
	if o.name == "" || name < o.name {
		o.name, o.value = name, value
	}
}

// collect returns the headers of interest, sorted, at most maxHeaders. A map's
// order is random; what is made of it must not be.
func collect(found []entry, h http.Header) ([]entry, clock) {
	var c clock
	for name, lines := range h {
		switch {
		case ordinary(name) || len(lines) == 0:
			continue
		case len(name) == 4 && around(name, 0, "date"):
			c.date.take(name, lines[0])
			continue
		case len(name) == 3 && around(name, 0, "age"):
			c.age.take(name, lines[0])
			continue
		case !promising(name):
			continue
		}
		if len(found) == 2*maxHeaders {
			slices.SortFunc(found, compare)
			found = found[:maxHeaders]
		}
		found = append(found, entry{name, lines})
	}
	if len(found) <= 12 {
		for i := 1; i < len(found); i++ {
			for k := i; k > 0 && compare(found[k], found[k-1]) < 0; k-- {
				found[k], found[k-1] = found[k-1], found[k]
			}
		}
	} else {
		slices.SortFunc(found, compare)
	}
	return found[:min(len(found), maxHeaders)], c
}

// compare orders headers by their names without regard to case, Retry-After
// first: it is the last to be dropped.
func compare(a, b entry) int {
	if x, y := isRetryAfter(a.name), isRetryAfter(b.name); x != y {
		if x {
			return -1
		}
		return 1
	}
	for i := range min(len(a.name), len(b.name)) {
		if a.name[i] == b.name[i] {
			continue
		}
		if x, y := lower(a.name[i]), lower(b.name[i]); x != y {
			return int(x) - int(y)
		}
	}
	if len(a.name) != len(b.name) {
		return len(a.name) - len(b.name)
	}
	return strings.Compare(a.name, b.name)
}

func isRetryAfter(name string) bool {
	return len(name) == 11 && around(name, 0, "retry-after")
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// parseFound is the long way, for responses that say something.
func parseFound(resp *http.Response, found []entry, text []byte, now time.Time, age string) Signal {
	p := parser{status: resp.StatusCode, now: now}
	p.from(hostOf(resp))
	p.headers(found)
	fromHeaders := p.waits
	var b body
	if len(text) > 0 {
		p.waits = waits{}
		b = p.readBody(string(text))
		if fromHeaders.wait().Known {
			p.waits = fromHeaders
		}
	}
	var s Signal
	if n, ok := parseDecimal(trim(age)); !ok || n.whole == 0 {
		s.Limits = p.settle() // a cached copy tells of a quota that is no more
	}
	s.RetryAfter = p.waits.wait()
	s.ShouldRetry = p.text.advice
	s.Throttled, s.Kind = p.refused(s.Limits, &b)
	return s
}

// hostOf is the host that resp came from; "": not known.
func hostOf(resp *http.Response) string {
	if r := resp.Request; r != nil && r.URL != nil {
		return r.URL.Hostname()
	}
	return ""
}

// from says which host the response came from.
func (p *parser) from(host string) {
	p.names.host = host
	p.host = hostRowOf(host)
}

// headers reads all headers of interest, those last that only add to others.
func (p *parser) headers(found []entry) {
	var later [maxHeaders]bool
	some := false
	for i := range found {
		if !p.header(found[i].name, found[i].lines) {
			later[i], some = true, true
		}
	}
	for i := range found {
		if some && later[i] {
			m := p.names.read(found[i].name)
			p.source = found[i].name
			p.read(&m, found[i].lines)
		}
	}
}

// header reads one header; it reports false if it must wait for the others.
func (p *parser) header(name string, lines []string) bool {
	m := p.names.read(name)
	if m.weak {
		return false
	}
	p.source = name
	p.read(&m, lines)
	return true
}
