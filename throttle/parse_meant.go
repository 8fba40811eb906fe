package throttle

import (
	"slices"
	"strconv"
	"strings"
)

// meant is the right spelling of a rate that is spelled in another common way:
// "100 per minute", "0.5/s", "10W/h" (10 000 each, in China), "1MB/s", "10rps",
// "100/s burst 200".
// "": it is not obvious.
func meant(item string) string {
	p := parser{text: item}
	n, ok := p.decimal()
	if !ok {
		return ""
	}
	r := loose{count: n}
	if !p.loosely(&r) {
		return ""
	}
	text := r.text() + p.text[p.pos:]
	if text != item && readable(text) {
		return text
	}
	// A burst above the limit is what a bucket has.
	if text = strings.Replace(text, " burst ", " bucket ", 1); text != item && readable(text) {
		return text
	}
	return ""
}

// readable reports whether text is a budget.
func readable(text string) bool {
	p := parser{text: text}
	b, err := p.budget()
	return err == nil && b.check() == nil
}

// loose is a rate as people write it.
type loose struct {
	count decimal
	times int64 // of count: 1000 for "5k"; 0: 1
	unit  string
	per   decimal // of the time
	time  string
}

// A decimal is n / scale.
type decimal struct{ n, scale int64 }

// decimal reads digits with at most one point; underlines between them say nothing.
func (p *parser) decimal() (decimal, bool) {
	text, _ := p.run(func(c byte) bool { return digit(c) || c == '.' || c == '_' })
	whole, part, _ := strings.Cut(strings.ReplaceAll(text, "_", ""), ".")
	n, err := strconv.ParseInt(whole+part, 10, 64)
	if err != nil || len(whole)+len(part) > 15 {
		return decimal{}, false
	}
	d := decimal{n, 1}
	for range part {
		d.scale *= 10
	}
	return d, true
}

// loosely reads what follows the number up to the time.
func (p *parser) loosely(r *loose) bool {
	word, _ := p.run(letter)
	if t, ok := abbreviated(word); ok {
		r.per, r.time = decimal{1, 1}, t
		return true
	}
	if times, unit, ok := scaled(word); ok {
		r.times, r.unit = times, unit
		word, _ = p.run(letter)
	}
	if len(word) > 1 && !slash(word) { // one letter may be anything
		if r.unit = word; checkUnit(word) != nil {
			r.unit = "" // "req"
		}
		word, _ = p.run(letter)
	}
	if !slash(word) && (word != "" || !p.take('/')) {
		return false
	}
	r.per = decimal{1, 1}
	if p.spaces(); p.pos < len(p.text) && digit(p.text[p.pos]) {
		var ok bool
		if r.per, ok = p.decimal(); !ok {
			return false
		}
	}
	word, _ = p.run(letter)
	r.time = timeName(word)
	return r.time != ""
}

// abbreviated is the time that a number of requests is for, as in "rps".
func abbreviated(word string) (time string, ok bool) {
	word = strings.ToLower(word)
	if len(word) != 3 || word[0] != 'r' && word[0] != 'q' || word[1] != 'p' {
		return "", false
	}
	time = timeName(word[2:])
	return time, time != ""
}

// scaled knows what multiplies a number.
func scaled(word string) (times int64, unit string, ok bool) {
	if strings.HasSuffix(word, "B") {
		word, unit = strings.TrimSuffix(word, "B"), "bytes"
	}
	switch word {
	case "":
		times = 1
	case "k", "K":
		times = 1000
	case "M":
		times = 1000_000
	case "G":
		times = 1000_000_000
	case "Ki":
		times = 1 << 10
	case "Mi":
		times = 1 << 20
	case "Gi":
		times = 1 << 30
	case "W", "w", "万":
		times = 10_000
	}
	return times, unit, times > 1 || times == 1 && unit != ""
}

func slash(word string) bool {
	switch strings.ToLower(word) {
	case "per", "a", "an", "each", "every":
		return true
	}
	return false
}

// timeName is how String writes the length of time that people call name; "":
// none. A capital letter alone is not one: M may be a month.
func timeName(name string) string {
	if len(name) > 1 {
		name = strings.TrimSuffix(strings.ToLower(name), "s")
	}
	if name == "hr" {
		return "h"
	}
	for _, u := range timeUnits() {
		if slices.Contains(u.names, name) || slices.Contains(u.names, name+"s") {
			return u.names[0]
		}
	}
	return ""
}

// text is r as [ParseBudget] reads it; "" if that is too large to be meant.
func (r *loose) text() string {
	times := max(1, r.times)
	if float64(r.count.n)*float64(times)*float64(r.per.scale) > 1e15 || float64(r.per.n)*float64(r.count.scale) > 1e15 {
		return ""
	}
	n, per := r.count.n*times*r.per.scale, r.per.n*r.count.scale
	if r.count.scale*r.per.scale > 1 {
		if d := divisor(n, per); d > 1 {
			n, per = n/d, per/d
		}
	}
	text := strconv.FormatInt(n, 10)
	if r.unit != "" {
		text += " " + r.unit
	}
	text += "/"
	if per != 1 {
		text += strconv.FormatInt(per, 10)
	}
	return text + r.time
}

func divisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
