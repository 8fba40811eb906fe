package throttle

import (
	"cmp"
	"fmt"
	"time"

	"github.com/weirhttp/weir/internal/pattern"
)

// HostConfig is what a host may have of its own. It stands instead of what
// [Config] says: a field that is zero means the default, not Config's value.
type HostConfig struct {
	MaxWait         time.Duration // as in Config; zero: 75 s
	MaxPause        time.Duration // as in Config; zero: 5 min
	Pace            bool          // as in Config
	DisableLearning bool          // as in Config. What was learned does not count while it is set
}

// defaultMaxPause is the longest pause believed without corroboration: as long as
// servers with short windows ask for, and short enough that one answer which is
// wrong costs a program minutes and not its night.
const defaultMaxPause = 5 * time.Minute

// hostTerms are the settings of a host.
type hostTerms struct {
	learn   *learnTerms
	maxWait time.Duration // negative: never wait
}

// SetHost gives the hosts that a pattern names ("api.example.com",
// "*.example.com", "127.0.0.1:8080") settings of their own from now on. Of
// several patterns the most specific applies, alone. Requests that wait already
// wait no longer than they were to; all else counts at once.
func (t *Transport) SetHost(text string, c HostConfig) error {
	p, err := pattern.Parse(text)
	if err != nil {
		return fmt.Errorf("throttle: SetHost: %w", err)
	}
	if !p.HostOnly() {
		return fmt.Errorf("throttle: SetHost: pattern %q: settings are per host, not per method or path", text)
	}
	if c.MaxPause < 0 {
		return fmt.Errorf("throttle: SetHost %q: MaxPause: %v is negative", text, c.MaxPause)
	}
	terms := *t.learning.terms
	terms.MaxPause, terms.Pace, terms.pausesOnly = cmp.Or(c.MaxPause, defaultMaxPause), c.Pace, c.DisableLearning
	h := &hostTerms{learn: &terms, maxWait: cmp.Or(c.MaxWait, defaultMaxWait)}
	if err := t.change(func(b *budgets) (*budgets, error) { return b.withHost(p, h) }); err != nil {
		return fmt.Errorf("throttle: SetHost: %w", err)
	}
	return nil
}

// terms are those by which a host is learned about.
func (t *Transport) terms(host string) *learnTerms {
	if h := t.budgets.Load().terms(host); h != nil {
		return h.learn
	}
	return t.learning.terms
}

// maxWait is how long requests to a host may wait.
func (t *Transport) maxWait(host string) time.Duration {
	if h := t.budgets.Load().terms(host); h != nil {
		return h.maxWait
	}
	return t.limits.maxWait
}

// heed lets what was learned go on under other terms.
func (m *learned) heed(terms *learnTerms) {
	m.all(func(l *learner) {
		of := terms
		if from := l.terms.before; from != nil {
			of = terms.from(from)
		}
		l.terms = of
		for _, q := range l.quotas {
			q.terms = of
		}
	})
}
