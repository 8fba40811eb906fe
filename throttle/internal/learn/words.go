package learn

import (
	"fmt"
	"strings"
	"time"
)

// String says it as the end of "waits because ...".
func (r Reason) String() string {
	return [...]string{
		"nothing stands against it",
		"the server asked for a pause",
		"the limit that was found has no room",
		"so many wait that it is worth finding out whether more passes",
		"few are sent at a time after a refusal",
	}[r]
}

// A Candidate is one limit that may be the server's, as people are told of it.
type Candidate struct {
	Limit    string  // "20 per 2s, sliding"
	Weight   float64 // share of all candidates
	Explains int     // of the refusals that are remembered, one for each event
	Misses   int     // refusals and acceptances that it would have judged otherwise, likewise
	Against  float64 // what that counts, less as it grows old; zero: nothing speaks against it
}

// Candidates are the likeliest limits, likeliest first.
func (l *Learner) Candidates() []Candidate {
	m := l.mind
	if m == nil {
		return nil
	}
	var out []Candidate
	var p replay
	for i := range m.bank.of {
		c := &m.bank.of[i]
		x := Candidate{Limit: c.String(), Weight: c.weight, Against: max(0, c.against)}
		p.run(&c.shape, &m.bank.record, m.bank.timing)
		for _, s := range p.slots[:p.n] {
			switch refused := s.level >= 0 && !s.void && !s.fade; {
			case s.broken, s.reached > c.size+1e-3, refused && c.size > s.level+1-1e-6:
				x.Misses++
			case refused:
				x.Explains++
			}
		}
		out = append(out, x)
	}
	return out
}

// String is a candidate in one line: "looks like 20 per 2s, sliding (87 %); said
// by nobody, seen in 3 refusals, 1 speaks against it".
func (c Candidate) String() string {
	s := fmt.Sprintf("looks like %s (%.0f %%); said by nobody, seen in %d refusals", c.Limit, 100*c.Weight, c.Explains)
	if c.Misses > 0 {
		s += fmt.Sprintf(", %d speak against it", c.Misses)
	}
	return s
}

// String is the limit in words.
func (c *candidate) String() string {
	var s string
	per := span(c.per)
	switch c.family {
	case bucket:
		s = fmt.Sprintf("%.4g/s, bucket of %g", c.rate(c.size), c.size)
	case slidingLog:
		s = fmt.Sprintf("%g per %s, sliding", c.size, per)
	case windowFirst:
		s = fmt.Sprintf("%g per %s from the first request", c.size, per)
	case windowClock:
		s = fmt.Sprintf("%g per %s by the clock", c.size, per)
	case counter:
		s = fmt.Sprintf("%g per %s, counted in two windows", c.size, per)
	case atOnce:
		s = fmt.Sprintf("%g at a time", c.size)
	}
	if c.refused {
		s += ", refused requests count"
	}
	if c.ban > 0 {
		s += ", a refusal shuts out for " + span(c.ban)
	}
	if c.again {
		s += ", and each one meanwhile anew"
	}
	return s
}

func span(d Instant) string {
	s := time.Duration(d).Round(time.Millisecond).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
