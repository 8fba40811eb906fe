package headers

import "strings"

// list reads the lists of RFC 9651 (structured fields) and all that looks like
// one: items apart by commas, each of bare values and key=value pairs apart by
// semicolons, in any order. Real servers send two strings in one item, strings
// without quotes and pairs without a value before them, so nothing is an
// error: what cannot be told apart is a bare value. Read what write has
// written and the items are the same.
type list struct {
	rest  string
	n     int // items read
	parts int // parts read, empty ones too
}

// maxParts bounds the parts of a list; what is beyond is not read.
const maxParts = 16 * maxItems

// item is one member of a list. What is beyond its space is dropped.
type item struct {
	bare  [3]value
	nbare int
	pairs [12]pair
	npair int
}

// value is a bare value, or that of a pair, without its quotes.
type value struct {
	text   string
	quoted bool
}

type pair struct {
	key string
	value
}

// next reads an item into x; it reports false at the end, or after maxItems.
func (l *list) next(x *item) bool {
	for l.n < maxItems && l.rest != "" {
		x.nbare, x.npair = 0, 0
		l.item(x)
		if x.nbare+x.npair > 0 {
			l.n++
			return true
		}
	}
	return false
}

// item reads up to and over the next comma.
func (l *list) item(x *item) {
	for l.rest != "" {
		if l.parts++; l.parts > maxParts {
			l.rest = ""
			return
		}
		p, end := l.part()
		x.add(p)
		if end == ',' {
			return
		}
	}
}

// part reads up to and over the next delimiter, which it returns: 0 at the end.
func (l *list) part() (p pair, end int) {
	var done bool
	if p.value, done = l.quoted(); done {
		return p, l.skip()
	}
	s := l.rest
	n := strings.IndexAny(s, ",;=")
	if n > 0 && s[n] == '=' {
		p.key = strings.TrimRight(s[:n], " \t")
		l.rest = s[n+1:]
		if p.value, done = l.quoted(); done {
			return p, l.skip()
		}
		s = l.rest
	}
	if n = strings.IndexAny(s, ",;"); n < 0 {
		n = len(s)
	}
	p.text = strings.TrimRight(s[:n], " \t")
	l.rest = s[n:]
	return p, l.skip()
}

// quoted reads a string at the start of the rest. A quote that has no end
// counts as nothing; it can happen but once, so the time stays linear.
func (l *list) quoted() (value, bool) {
	l.rest = strings.TrimLeft(l.rest, " \t")
	if l.rest == "" || l.rest[0] != '"' {
		return value{}, false
	}
	if text, rest, ok := unquote(l.rest); ok {
		l.rest = rest
		return value{text, true}, true
	}
	l.rest = strings.TrimLeft(l.rest, "\" \t")
	return value{}, false
}

// skip drops what follows a value up to and over the delimiter, which it
// returns.
func (l *list) skip() int {
	n := strings.IndexAny(l.rest, ",;")
	if n < 0 {
		l.rest = ""
		return 0
	}
	c := l.rest[n]
	l.rest = l.rest[n+1:]
	return int(c)
}

func (x *item) add(p pair) {
	switch {
	case p.key != "":
		if x.npair < len(x.pairs) {
			x.pairs[x.npair] = p
			x.npair++
		}
	case p.text == "" && !p.quoted:
	case x.nbare < len(x.bare):
		x.bare[x.nbare] = p.value
		x.nbare++
	}
}

// unquote reads a string that begins with a quote; ok is false if it has no end.
func unquote(s string) (text, rest string, ok bool) {
	escaped := false
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			text = s[1:i]
			if escaped {
				text = unescape(text)
			}
			return text, s[i+1:], true
		}
	}
	return "", s, false
}

// unescape removes backslashes, of what a name may be long.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s) && b.Len() < 2*maxName; i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
