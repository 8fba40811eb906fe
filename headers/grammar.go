package headers

import "strings"

// sight is what the words of a name amount to.
type sight struct {
	stem, inert bool
	limit       bool // "limit" or "remaining" itself, or what is as telling
	scoped      bool // a unit or a window
	clock       bool // "time" and its like
	remaining   bool
	window      bool
	fields      int
	field       role // the field word that the others qualify
	text        role // what the value is if it is text
}

// look takes in all words.
func (r *reader) look(low []byte) (x sight) {
	rank := 0
	for i := range r.n {
		t := &r.tokens[i]
		switch t.word.class {
		case stemWord:
			x.stem = true
		case inertWord:
			x.inert = true
		case unitWord, windowWord, adverbWord:
			x.scoped = true
			x.limit = x.limit || t.word.unit == "concurrent-requests"
		case labelWord:
			x.text = t.word.role
		case formWord:
			x.clock = x.clock || t.word.prefer < 0 || t.word.window > 0
		case fieldWord:
			s := low[t.start:t.end]
			x.fields++
			x.limit = x.limit || isLimit(s) || len(s) >= 6 && string(s[:6]) == "remain" || string(s) == "left"
			x.remaining = x.remaining || t.word.role == roleRemaining
			x.window = x.window || t.word.role == roleWindow
			if n := rankOf(t.word.role, s); n >= rank {
				rank, x.field = n, t.word.role
			}
		}
	}
	return x
}

// role decides from the words which fact the header states. Without a stem it
// takes more than a field word: "X-Limit" may be anything, "X-Limit-Per-Day"
// may not. weak is set where a name says so little that another header has to
// show the limit to exist: "Anthropic-Priority-Tokens-Reset".
func (r *reader) role(low []byte) (of role, weak bool) {
	x := r.look(low)
	switch {
	case x.field == roleWait:
		return roleWait, false
	case x.text == roleAdvice || x.text == roleCode:
		return x.text, false
	case x.inert:
		return roleNone, false
	case x.field == roleNone && x.stem && x.text != roleNone:
		return x.text, false
	case x.field == roleNone && x.stem:
		return roleList, false
	case x.remaining && x.window: // the rest of a period is a time, and of no use
		return roleNone, false
	case x.field == roleRemaining && x.clock && x.stem: // the time that remains
		return roleReset, false
	case x.stem || x.limit && (x.scoped || x.fields > 1):
		return x.field, false
	case (x.field == roleReset || x.field == roleUsed) && x.scoped:
		return x.field, true
	}
	return roleNone, false
}

// rankOf orders field words: the highest is what the header holds, the others
// qualify it. Of equals the last counts.
func rankOf(r role, s []byte) int {
	switch r {
	case roleWait:
		return 9
	case roleReset:
		return 7
	case roleRefill:
		return 6
	case roleRatio, rolePercent:
		return 5
	case roleWindow:
		return 3
	case roleQuota:
		return 2
	}
	if w := string(s); w == "count" || w == "current" {
		return 1
	}
	return 4
}

// qualify reads all words but the field: unit, window, family, and what is
// left over, which is the name.
func (r *reader) qualify(low []byte, m *meaning) {
	m.vendor = fnvBasis
	out, end, before := r.out[:0], 0, 0 // the stem's end, and how much of the name stands before it
	for i := range r.n {
		t := &r.tokens[i]
		s := low[t.start:t.end]
		switch t.word.class {
		case stemWord:
			end = r.stem(low, i, m)
			before = len(out)
		case vendorWord:
			m.vendor = hash(m.vendor, s)
		case unitWord:
			out = r.unit(low, i, m, out)
		case windowWord:
			out = r.window(low, i, m, out)
		case adverbWord:
			m.window = t.word.window
			out = appendName(out, s)
		case formWord:
			out = r.form(s, t.word, m, out)
		case fieldWord:
			if t.word.role == m.role && t.word.prefer != 0 {
				m.prefer = t.word.prefer
			}
		case sideWord, labelWord, unknownWord:
			if end == 0 && r.vendor(low, i) {
				m.vendor = hash(m.vendor, s)
			} else if !r.taken(i, m) {
				out = appendName(out, s)
			}
		}
	}
	if string(out) != "api" { // as a name on its own it says nothing
		m.name = len(out)
	}
	m.family = hash(m.vendor, low[:end])
	m.plain = m.plain && m.name <= before || m.window > 0
	if m.unit == "" {
		m.unit = "requests"
	}
}

// stem takes the i-th word as the stem and returns where it ends.
func (r *reader) stem(low []byte, i int, m *meaning) int {
	t := &r.tokens[i]
	s := low[t.start:t.end]
	m.plain = m.plain || string(s) != "quota"
	if t.word.unit != "" {
		m.unit = t.word.unit
	}
	if string(s) == "rate" { // "rate-limit"
		t = &r.tokens[i+1]
	}
	return int(t.end)
}

// unit takes the i-th word as what is counted, unless it only looks like it:
// "api-token" is whom it is counted for.
func (r *reader) unit(low []byte, i int, m *meaning, out []byte) []byte {
	t := &r.tokens[i]
	s, u := low[t.start:t.end], t.word.unit
	if i > 0 {
		before := &r.tokens[i-1]
		prev := low[before.start:before.end]
		switch {
		case u == "tokens" && string(prev) == "api":
			return appendName(out, s)
		case u == "tokens" && before.word.class == sideWord:
			u = before.word.unit
		case u == "units" && string(prev) == "api":
			u = "api-units"
		case u == "units" && string(prev) == "resource":
			u = "resource-units"
		}
	}
	if m.unit != "concurrent-requests" { // "concurrent-requests" is two words
		m.unit = u
	}
	if string(s) == "concurrency" {
		out = appendName(out, s)
	}
	return out
}

// taken reports whether the unit after the i-th word has made use of it, or
// the label it is has become the role.
func (r *reader) taken(i int, m *meaning) bool {
	t := &r.tokens[i]
	if t.word.class == labelWord && t.word.role == m.role {
		return true
	}
	if i+1 == r.n {
		return false
	}
	next := r.tokens[i+1].word
	if t.word.class == sideWord {
		return next.unit == "tokens"
	}
	return next.unit == "units"
}

// window takes the i-th word as the window. One that is glued to "limit" names
// the limit too, as "daylimit" does and "per-day" does not.
func (r *reader) window(low []byte, i int, m *meaning, out []byte) []byte {
	t := &r.tokens[i]
	s := low[t.start:t.end]
	if i > 0 && (m.role == roleReset || m.role == roleWindow || m.role == roleWait) {
		// "period-in-sec" is how the number is written.
		prev := &r.tokens[i-1]
		if string(low[prev.start:prev.end]) == "in" || prev.word.class == fieldWord && m.role != roleReset {
			m.scale = t.word.window
			return out
		}
	}
	m.window = t.word.window
	if m.row != nil && m.row.keepWindow {
		return appendName(out, s)
	}
	if t.glued && string(s[:min(3, len(s))]) != "per" && i+1 < r.n && isLimit(low[t.end:r.tokens[i+1].end]) {
		return appendName(out, []byte(windowName(m.window)))
	}
	return out
}

// form takes a word on how the number is written.
func (r *reader) form(s []byte, w word, m *meaning, out []byte) []byte {
	switch m.role {
	case roleReset, roleWindow, roleWait:
		if w.window > 0 {
			m.scale = w.window
		}
		if w.prefer != 0 {
			m.prefer = w.prefer
		}
	default:
		if string(s) == "time" {
			return appendName(out, s)
		}
	}
	return out
}

// vendor reports whether the i-th word, which stands before the stem, is whose
// header it is. Names without "X-" begin with the vendor's.
func (r *reader) vendor(low []byte, i int) bool {
	s := low[r.tokens[i].start:r.tokens[i].end]
	if r.tokens[i].word.class != unknownWord || isScope(string(s)) {
		return false
	}
	if r.hostSays(s) {
		return true
	}
	if i > 0 || r.tokens[i].glued {
		return false
	}
	for k := 1; k < r.n; k++ {
		if r.tokens[k].word.class == stemWord {
			return true
		}
	}
	return false
}

// hostSays reports whether s is a label of the host's name, which makes it the
// vendor's: "Acme-RateLimit-Limit" of api.acme.com.
func (r *reader) hostSays(s []byte) bool {
	if len(s) < 3 {
		return false
	}
	for rest := r.host; rest != ""; {
		label, after, _ := strings.Cut(rest, ".")
		if len(label) == len(s) && strings.EqualFold(label, string(s)) {
			return true
		}
		rest = after
	}
	return false
}

// appendName appends a part of a name.
func appendName(out, part []byte) []byte {
	if len(out)+1+len(part) > cap(out) || len(part) == 0 {
		return out
	}
	if len(out) > 0 {
		out = append(out, '-')
	}
	return append(out, part...)
}

// FNV-1a tells families apart; nothing hangs on it but which limits may join.
const fnvBasis = 2166136261

func hash(h uint32, s []byte) uint32 {
	for _, c := range s {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}
