package throttle

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseBudget reads a budget from text, as it stands in a flag, an environment
// variable or a file:
//
//	5/s
//	5/s, 100000/h burst 200
//	2/s bucket 40
//	90000 tokens/m, 500/m
//	1000/d align America/Los_Angeles
//	2400/d even align Europe/Berlin
//	100/10s warmup 30s, 8 in flight, pool search
//	unlimited
//
// Items are separated by commas. A rate is a count, a space and a unit unless
// that is requests, a slash and a length of time: ns, us, ms, s, m, h, d, w (also
// as words: second, min, hours, ...), with a count before it unless that is 1.
// After it may stand even, and burst, bucket, align and warmup with their values. A unit
// may have any name but one that looks like requests ("req"); nothing is drawn
// on it but by a [Cost] that names it. An error shows the piece it is about,
// what was expected there and, where it is obvious, the right spelling.
func ParseBudget(s string) (Budget, error) {
	p := parser{text: s}
	b, err := p.budget()
	if err != nil {
		if right := meant(p.last()); right != "" {
			err = fmt.Errorf("%w; write %s", err, right)
		}
		return Budget{}, err
	}
	if err := b.check(); err != nil {
		return Budget{}, fmt.Errorf("throttle: budget %q: %w", s, err)
	}
	return b, nil
}

// MustParseBudget is [ParseBudget] for text that stands in a program; it panics
// where that returns an error.
func MustParseBudget(s string) Budget {
	b, err := ParseBudget(s)
	if err != nil {
		panic(err)
	}
	return b
}

// parser walks over the text of one budget.
type parser struct {
	text string
	pos  int
	item int // where the last began
}

// last is the text of the last item that was read.
func (p *parser) last() string {
	text, _, _ := strings.Cut(p.text[p.item:], ",")
	return strings.TrimSpace(text)
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

func digit(c byte) bool  { return '0' <= c && c <= '9' }
func letter(c byte) bool { return wordByte(c) && !digit(c) || c >= 0x80 }
func plain(c byte) bool  { return c != ',' && c > ' ' }

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
		for _, known := range u.names {
			if name != known {
				continue
			}
			if n > int64(longest/u.d) {
				return 0, p.fail(from, "a time of at most 10 years")
			}
			return time.Duration(n) * u.d, nil
		}
	}
	return 0, p.fail(at, "a length of time: ms, s, m, h, d or w, or several as in 10s")
}

// budget reads the whole text.
func (p *parser) budget() (Budget, error) {
	var b Budget
	for {
		if err := p.read(&b); err != nil {
			return b, err
		}
		p.spaces()
		if p.pos == len(p.text) {
			return b, nil
		}
		if !p.take(',') {
			return b, p.fail(p.pos, "a comma or the end")
		}
	}
}

// read reads one of the pieces between commas.
func (p *parser) read(b *Budget) error {
	p.spaces()
	from := p.pos
	p.item = from
	if p.pos < len(p.text) && digit(p.text[p.pos]) {
		return p.counted(b)
	}
	switch word, _ := p.run(letter); word {
	case "unlimited":
		if !b.zero() {
			return p.fail(from, "a rate, because a budget with limits cannot be unlimited")
		}
		return nil
	case "pool":
		name, err := p.name()
		if b.Pool != "" && err == nil {
			return p.fail(from, "one pool at most")
		}
		b.Pool = name
		return err
	}
	return p.fail(from, "a rate such as 5/s, 8 in flight, a pool with its name, or unlimited")
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

// counted reads an item that begins with a number.
func (p *parser) counted(b *Budget) error {
	from := p.pos
	n, err := p.number("a number")
	if err != nil {
		return err
	}
	end := p.pos
	unit, at := p.run(wordByte)
	if unit == "in" && p.flight() {
		if n == 0 || b.InFlight != 0 {
			return p.fail(from, "one number of requests in flight, at least 1")
		}
		b.InFlight = n
		return nil
	}
	if unit != "" && at == end { // 5k/h, 1e3/s, 10rps: no count of a unit k, e3 or rps is meant
		return p.fail(at, "a slash and a length of time, as in 5/s, or a space and a unit, as in 5 tokens/s")
	}
	if slash(unit) {
		return p.fail(at, "a slash and a length of time, as in 5/s")
	}
	if unit != "" && !isWord(unit) {
		return p.fail(at, "a unit such as tokens")
	}
	if !p.take('/') {
		return p.fail(p.pos, "a slash and a length of time, as in 5/s")
	}
	r := Rate{Limit: n}
	if unit != requests {
		r.Unit = unit
	}
	if err := p.rest(&r); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return fmt.Errorf("throttle: budget %q: at %q: %w", p.text, strings.TrimSpace(p.text[from:p.pos]), err)
	}
	b.Rates = append(b.Rates, r)
	return nil
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

// rest reads what follows the slash of a rate.
func (p *parser) rest(r *Rate) (err error) {
	if r.Per, err = p.length(); err != nil {
		return err
	}
	for {
		p.spaces()
		if p.pos == len(p.text) || p.text[p.pos] == ',' {
			return nil
		}
		if err := p.setting(r); err != nil {
			return err
		}
	}
}

// setting reads one of the words that may follow a rate, with its value.
func (p *parser) setting(r *Rate) (err error) {
	word, from := p.run(letter)
	once := func(unset bool) error {
		if unset {
			return nil
		}
		return p.fail(from, word+" once at most")
	}
	switch word {
	case "burst":
		if err = once(r.Burst == 0); err == nil {
			r.Burst, err = p.positive("a burst of at least 1")
		}
	case "bucket":
		if err = once(r.Bucket == 0); err == nil {
			r.Bucket, err = p.positive("a bucket of at least 1")
		}
	case "align":
		if err = once(r.Align == nil); err == nil {
			r.Align, err = p.place()
		}
	case "even":
		if err = once(!r.Even); err == nil {
			r.Even = true
		}
	case "warmup":
		if err = once(r.WarmUp == 0); err == nil {
			at := p.pos
			if r.WarmUp, err = p.length(); err == nil && r.WarmUp == 0 {
				err = p.fail(at, "a time of more than zero")
			}
		}
	default:
		err = p.fail(from, "burst, bucket, even, align or warmup, or a comma")
	}
	return err
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
