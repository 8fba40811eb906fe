package throttle

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// parser walks over the text of one budget.
type parser struct {
	text string
	pos  int
	item int // where the last began
}

// fail returns an error about the piece of text at from.
func (p *parser) fail(from int, expected string) error {
	piece := p.text[from:]
	if i := strings.IndexByte(piece, ','); i > 0 {
		piece = piece[:i]
	}
	piece = strings.TrimSpace(piece)
	at := "the end"
	if piece != "" {
		at = strconv.Quote(piece)
	}
	return fmt.Errorf("throttle: budget %q: at %s: expected %s", p.text, at, expected)
}

func (p *parser) spaces() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

// take skips spaces and then c, if it is next.
func (p *parser) take(c byte) bool {
	p.spaces()
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

// run skips spaces and returns the longest run of bytes that ok allows.
func (p *parser) run(ok func(c byte) bool) (text string, from int) {
	p.spaces()
	from = p.pos
	for p.pos < len(p.text) && ok(p.text[p.pos]) {
		p.pos++
	}
	return p.text[from:p.pos], from
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

func letter(c byte) bool { return wordByte(c) && !digit(c) || c >= 0x80 }

func plain(c byte) bool { return c != ',' && c > ' ' }

// number reads a count.
func (p *parser) number(expected string) (int, error) {
	text, from := p.run(digit)
	n, err := strconv.Atoi(text)
	if errors.Is(err, strconv.ErrRange) {
		return 0, p.fail(from, "a smaller number")
	}
	if err != nil {
		return 0, p.fail(from, expected)
	}
	return n, nil
}

// length reads a length of time: "s", "10s", "2 days".
func (p *parser) length() (time.Duration, error) {
	text, from := p.run(digit)
	n := int64(1)
	if text != "" {
		var err error
		if n, err = strconv.ParseInt(text, 10, 64); err != nil {
			return 0, p.fail(from, "a smaller number")
		}
	}
	name, at := p.run(letter)
	for _, u := range timeUnits() {
		switch {
		case !slices.Contains(u.names, name):
		case n > int64(longest/u.d):
			return 0, p.fail(from, "a time of at most 10 years")
		default:
			return time.Duration(n) * u.d, nil
		}
	}
	return 0, p.fail(at, "a length of time: ms, s, m, h, d or w, or several as in 10s")
}

// name reads a word or a quoted string.
func (p *parser) name() (string, error) {
	p.spaces()
	from := p.pos
	if strings.HasPrefix(p.text[from:], `"`) {
		quoted, err := strconv.QuotedPrefix(p.text[from:])
		if err != nil {
			return "", p.fail(from, "a name with its closing quote")
		}
		p.pos += len(quoted)
		name, _ := strconv.Unquote(quoted)
		if name == "" {
			return "", p.fail(from, "a name that is not empty")
		}
		return name, nil
	}
	name, _ := p.run(wordByte)
	if !isWord(name) {
		return "", p.fail(from, "a name, in quotes unless it is a word")
	}
	return name, nil
}

// flight skips the word, if it is next.
func (p *parser) flight() bool {
	back := p.pos
	if word, _ := p.run(letter); word == "flight" {
		return true
	}
	p.pos = back
	return false
}

func (p *parser) positive(expected string) (int, error) {
	at := p.pos
	n, err := p.number(expected)
	if err == nil && n == 0 {
		err = p.fail(at, expected)
	}
	return n, err
}

// place reads the name of a time zone.
func (p *parser) place() (*time.Location, error) {
	name, from := p.run(plain)
	if name != "" {
		if place, err := time.LoadLocation(name); err == nil {
			return place, nil
		}
	}
	return nil, p.fail(from, "a place of the time zone database, such as America/Los_Angeles or UTC")
}
