package headers

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxDepth is how deep a JSON value is read; what is deeper ends the reading.
const maxDepth = 32

// scanner reads JSON that may be cut short or broken, one event at a time, in
// one pass and without keeping anything. What has no end is not reported: half
// a number is a wrong number.
type scanner struct {
	s     string
	i     int
	depth int
	keys  [maxDepth]string // of the open containers; an element of an array has the array's
	array [maxDepth]bool
	key   string // read, and still without its value
}

type eventKind uint8

const (
	eventEnd eventKind = iota
	eventOpen
	eventClose
	eventValue
)

// event is an opened or closed container, or a value that is none.
type event struct {
	kind   eventKind
	key    string
	text   string
	quoted bool
}

func (j *scanner) next() event {
	for j.i < len(j.s) {
		switch c := j.s[j.i]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
			j.i++
		case '{', '[':
			if j.depth == maxDepth {
				return event{}
			}
			key := j.takeKey()
			j.keys[j.depth], j.array[j.depth] = key, c == '['
			j.depth++
			j.i++
			return event{kind: eventOpen, key: key}
		case '}', ']':
			j.depth = max(j.depth-1, 0)
			j.key = ""
			j.i++
			return event{kind: eventClose}
		case '"':
			text, ok := j.string()
			if !ok {
				return event{}
			}
			if j.isKey() {
				j.key = text
				continue
			}
			return event{eventValue, j.takeKey(), text, true}
		default:
			return j.literal()
		}
	}
	return event{}
}

// literal reads a number, true, false, null or what stands in their place.
func (j *scanner) literal() event {
	start := j.i
	for j.i < len(j.s) && strings.IndexByte(" \t\r\n,:{}[]\"", j.s[j.i]) < 0 {
		j.i++
	}
	if j.i == len(j.s) && j.depth > 0 {
		return event{} // cut short
	}
	return event{eventValue, j.takeKey(), j.s[start:j.i], false}
}

// top reports whether no key leads into the container at depth n: it is the
// whole value, or an element of it.
func (j *scanner) top(n int) bool {
	for _, key := range j.keys[:n] {
		if key != "" {
			return false
		}
	}
	return true
}

// takeKey returns the key of the value that begins.
func (j *scanner) takeKey() string {
	key := j.key
	j.key = ""
	if j.depth > 0 && j.array[j.depth-1] {
		return j.keys[j.depth-1]
	}
	return key
}

// isKey reports whether the string just read is followed by a colon.
func (j *scanner) isKey() bool {
	if j.depth == 0 || j.array[j.depth-1] || j.key != "" {
		return false
	}
	i := j.i
	for i < len(j.s) && strings.IndexByte(" \t\r\n", j.s[i]) >= 0 {
		i++
	}
	return i < len(j.s) && j.s[i] == ':'
}

// string reads the string at j.i; ok is false if it has no end.
func (j *scanner) string() (text string, ok bool) {
	escaped := false
	for i := j.i + 1; i < len(j.s); i++ {
		switch j.s[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			text = j.s[j.i+1 : i]
			j.i = i + 1
			if escaped {
				text = jsonUnescape(text)
			}
			return text, true
		}
	}
	return "", false
}

// jsonUnescape reads the escapes of RFC 8259 section 7, of what a text of
// interest may be long.
func jsonUnescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s) && b.Len() < 4*maxName; i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n', 'r', 't', 'b', 'f':
			b.WriteByte(' ')
		case 'u':
			if i+4 < len(s) {
				if n, err := strconv.ParseUint(s[i+1:i+5], 16, 16); err == nil && utf8.ValidRune(rune(n)) {
					b.WriteRune(rune(n))
					i += 4
				}
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// json reads a header that holds JSON: every object that has a number of
// interest is a limit. The key that leads to it is whom the limit is for.
func (p *parser) json(m *meaning, s string) {
	j := scanner{s: s}
	var at [maxDepth + 1]int // the draft of each open object, plus one
	for n := 0; n < 64*maxItems; n++ {
		switch e := j.next(); e.kind {
		case eventEnd:
			return
		case eventOpen:
			at[j.depth] = 0
		case eventValue:
			if at[j.depth] == 0 && usageOf(e.key) == usageNone {
				if e.key != "type" && e.key != "name" {
					continue
				}
			}
			if at[j.depth] == 0 {
				d := p.add(m, fromItem)
				if d == nil {
					return
				}
				d.Name = clean(string(p.names.name(m)))
				if j.depth > 1 {
					d.Partition = clean(j.keys[j.depth-1])
				}
				at[j.depth] = p.n
			}
			p.usage(p.at(at[j.depth]-1), e)
		}
	}
}

// usage is what a member of such an object says.
type usage uint8

const (
	usageNone usage = iota
	usagePercent
	usageRatio
	usageMinutes
	usageReset
	usageQuota
	usageRemaining
	usageUsed
)

func usageOf(key string) usage {
	var low [48]byte
	switch string(low[:copyLower(low[:], key)]) {
	case "call_count", "total_cputime", "total_time", "app_id_util_pct", "acc_id_util_pct", "percent", "percentage":
		return usagePercent
	case "utilization", "ratio":
		return usageRatio
	case "estimated_time_to_regain_access":
		return usageMinutes
	case "reset_time_duration", "reset", "resets", "reset_after":
		return usageReset
	case "limit", "quota", "max", "total":
		return usageQuota
	case "remaining", "available", "left":
		return usageRemaining
	case "used", "usage", "current":
		return usageUsed
	}
	return usageNone
}

// usage records a member of such an object.
func (p *parser) usage(d *draft, e event) {
	if e.key == "type" || e.key == "name" {
		d.Name = clean(e.text)
		return
	}
	v, minus, ok := parseCount(e.text)
	if !ok {
		return
	}
	switch usageOf(e.key) {
	case usagePercent:
		d.set(roleRatio, v/100, minus)
	case usageRatio:
		d.set(roleRatio, v, minus)
	case usageMinutes:
		if w, ok := parseWindow(e.text, time.Minute); ok && !minus {
			d.reset(w, sureDelta, Next)
			p.waits.add(some(w), false)
		}
	case usageReset:
		if v, sure, means, ok := parseReset(e.text, time.Second, p.now); ok && v > 0 {
			d.reset(v, sure, means)
		}
	case usageQuota:
		d.set(roleQuota, v, minus)
	case usageRemaining:
		d.set(roleRemaining, v, minus)
	case usageUsed:
		d.set(roleUsed, v, minus)
	}
}
