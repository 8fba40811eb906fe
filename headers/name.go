package headers

import "time"

// The affixed trio is read as one grammar. A header name is a bag of words: a
// stem (ratelimit, rate-limit, quota), a field word (limit, remaining, reset,
// ...), and any number of units, windows, vendors and others in any order and
// on both sides; words may be glued. What is none of these names the limit.

const (
	maxName  = 256 // bytes of a header name, and of a limit's; the longest name in testdata has 55
	maxWords = 24  // words of a header name, likewise
)

// meaning is what a header name says about its value.
type meaning struct {
	role   role
	weak   bool          // may only add to a limit that another header shows to exist
	plain  bool          // a stem alone may carry a bare quota
	unit   string        // "" if the number counts nothing known
	window time.Duration // from the name; 0 if none
	scale  time.Duration // what a bare number of time counts
	prefer int8          // which of several resets is believed: the highest
	family uint32        // equal for headers with the same stem and vendor
	vendor uint32        // equal for the same vendor in all spellings of the stem
	row    *row          // what the table of special shapes adds
	name   int           // length of what the limit is called by; see reader.name
}

// name returns what the limit is called by whose name was read last.
func (r *reader) name(m *meaning) []byte { return r.out[:m.name] }

// token is a word in its place.
type token struct {
	word       word
	start, end uint16
	glued      bool // was not set off by a hyphen from the next
}

// reader reads names. Its space is used anew by each.
type reader struct {
	low    [maxName]byte
	out    [maxName]byte
	tokens [maxWords]token
	n      int
	host   string
}

// read returns the meaning of a header name; its role is roleNone if it has
// nothing to do with limits.
func (r *reader) read(name string) meaning {
	if len(name) > maxName {
		return meaning{}
	}
	low := r.low[:copyLower(r.low[:], name)]
	if m, ok := plainName(low); ok {
		return m
	}
	special := rowOf(low)
	if !r.split(low) {
		return meaning{}
	}
	r.pairs(low)
	m := meaning{scale: time.Second, row: special}
	m.role, m.weak = r.role(low)
	if special != nil && special.role != roleNone {
		m.role, m.weak = special.role, false
	}
	if m.role == roleNone {
		return m
	}
	r.qualify(low, &m)
	if special != nil {
		special.apply(&m, r)
	}
	return m
}

// split finds the words of low and takes glued ones apart.
func (r *reader) split(low []byte) bool {
	r.n = 0
	start := 0
	for i := 0; i <= len(low); i++ {
		if i < len(low) && low[i] != '-' && low[i] != '_' && low[i] != '.' {
			continue
		}
		if i > start && !r.add(low, start, i, 0) {
			return false
		}
		start = i + 1
	}
	// "x-ms-" is a vendor; elsewhere ms is a unit of time.
	for i := 0; i < r.n && i < 2; i++ {
		if t := &r.tokens[i]; string(low[t.start:t.end]) == "ms" {
			t.word = word{class: vendorWord}
		}
	}
	return true
}

// add appends the word low[start:end], or the words glued together in it.
func (r *reader) add(low []byte, start, end, depth int) bool {
	w := wordOf(string(low[start:end]))
	if w.class == unknownWord && depth < 3 {
		if cut := glue(low[start:end]); cut > 0 {
			if !r.add(low, start, start+cut, depth+1) {
				return false
			}
			r.tokens[r.n-1].glued = true
			return r.add(low, start+cut, end, depth+1)
		}
	}
	if r.n == maxWords {
		return false
	}
	r.tokens[r.n] = token{start: uint16(start), end: uint16(end), word: w}
	r.n++
	return true
}

// glue returns where to cut an unknown word in two, 0 if it is one word.
func glue(s []byte) int {
	if len(s) < 5 || len(s) > 40 {
		return 0
	}
	for _, tail := range [...]string{"ratelimits", "ratelimit", "limits", "limit", "remaining", "remain", "resettime", "reset", "used", "usage"} {
		if n := len(s) - len(tail); n > 0 && string(s[n:]) == tail {
			return n
		}
	}
	const stem = "ratelimit"
	if len(s) > len(stem) && string(s[:len(stem)]) == stem && isSuffix(wordOf(string(s[len(stem):])).class) {
		return len(stem)
	}
	// "appmin": a window of the app's own.
	if string(s[:3]) == "app" && windowOf(string(s[3:])).class == windowWord {
		return 3
	}
	return 0
}

// isSuffix reports whether a word of class c may be glued to the stem.
func isSuffix(c class) bool { return c == fieldWord || c == labelWord }

// pairs gives the words their meaning that have it only together.
func (r *reader) pairs(low []byte) {
	stem := false
	for i := 0; i+1 < r.n; i++ {
		a, b := &r.tokens[i], &r.tokens[i+1]
		first, second := low[a.start:a.end], low[b.start:b.end]
		if a.word.class == stemWord {
			stem = true
		}
		if stem && string(second) == "quota" { // one stem is enough
			b.word = field(roleQuota)
		}
		switch string(first) {
		case "rate":
			if isLimit(second) {
				a.word, b.word = word{class: stemWord}, word{class: fillerWord}
				stem = true
			}
		case "fill", "refill", "replenish", "restore":
			if b.word.class == rateWord {
				a.word, b.word = word{class: fillerWord}, field(roleRefill)
			}
		case "burst":
			if string(second) == "capacity" {
				a.word = word{class: fillerWord}
			}
		case "hard", "soft":
			// A name of two words, if the field is still to come.
			if string(second) == "limit" && i+2 < r.n && r.tokens[i+2].word.class == fieldWord {
				b.word = word{}
			}
		case "retry":
			switch string(second) {
			case "after":
				a.word, b.word = field(roleWait), word{class: fillerWord}
			case "in": // a duration, finer than the whole seconds of its cousin
				a.word, b.word = word{class: fieldWord, role: roleWait, prefer: 1}, word{class: fillerWord}
			}
		case "should":
			if string(second) == "retry" {
				a.word, b.word = label(roleAdvice), word{class: fillerWord}
			}
		case "error":
			if s := string(second); s == "code" || s == "type" {
				a.word, b.word = label(roleCode), word{class: fillerWord}
			}
		}
	}
}

func isLimit(s []byte) bool {
	switch string(s) {
	case "limit", "limits", "limiting", "limited":
		return true
	}
	return false
}
