package throttle

import (
	"fmt"
	"strings"
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

// last is the text of the last item that was read.
func (p *parser) last() string {
	text, _, _ := strings.Cut(p.text[p.item:], ",")
	return strings.TrimSpace(text)
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
	unset, known := map[string]bool{"burst": r.Burst == 0, "bucket": r.Bucket == 0, "align": r.Align == nil, "even": !r.Even, "warmup": r.WarmUp == 0}[word]
	switch {
	case !known:
		return p.fail(from, "burst, bucket, even, align or warmup, or a comma")
	case !unset:
		return p.fail(from, word+" once at most")
	}
	switch word {
	case "burst":
		r.Burst, err = p.positive("a burst of at least 1")
	case "bucket":
		r.Bucket, err = p.positive("a bucket of at least 1")
	case "align":
		r.Align, err = p.place()
	case "even":
		r.Even = true
	case "warmup":
		at := p.pos
		if r.WarmUp, err = p.length(); err == nil && r.WarmUp == 0 {
			err = p.fail(at, "a time of more than zero")
		}
	}
	return err
}
