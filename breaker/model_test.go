package breaker_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/trip"
	"pgregory.net/rapid"
)

// model is the state machine as the documentation tells it, by brute force:
// it keeps every call and counts them anew each time.
type model struct {
	cfg        breaker.Config // without zeros
	state      breaker.State
	era        int // changes so far
	calls      []call
	origin     time.Time // of the window's tenths; zero: nothing bad since long
	lastBad    time.Time
	unanswered int
	failed     int
	changed    time.Time
	spared     int           // turned away, less a hundred for each probe
	notBefore  time.Time     // no probe before
	latest     time.Time     // the next request is one from then on
	begun      bool          // latest is new
	most       time.Duration // from now, then
	probe      *step         // at the wire, the newest
	good1      int           // number of the newest good probe
	overtaken  int           // probes that others did not wait for
	good       int
	bad        int
	tripped    int
	probes     int
}

type call struct {
	tenth int
	bad   bool
}

// step is one thing that happens.
type step struct {
	kind  string // "start", "end", "call" (both), "sleep", "due" (sleep until probes may go)
	which int    // end: which of the running requests
	how   string // end
	sleep time.Duration

	era   int // start: when it was let in
	began time.Time
	isTry bool // it is a probe
	n     int  // its number
	gate  chan answer
}

// GoString is what rapid shows.
func (s *step) GoString() string {
	return fmt.Sprint(s.kind, " ", s.which, " ", s.how, " ", s.sleep)
}

func (m *model) due(now time.Time) bool {
	if m.voting() {
		lost := m.probe != nil && now.Sub(m.probe.began) >= min(m.cfg.OpenFor<<m.overtaken, m.cfg.Window/2)
		return !now.Before(m.notBefore) && (m.probe == nil || lost)
	}
	lost := m.probe != nil && now.Sub(m.probe.began) >= m.cfg.OpenFor
	return !now.Before(m.notBefore) && (m.spared >= 100 || !now.Before(m.latest)) && (m.probe == nil || lost)
}

func (m *model) voting() bool { return m.state == breaker.HalfOpen && m.good+m.bad > 0 }

// start says whether a request passes.
func (m *model) start(s *step, now time.Time) bool {
	if m.state != breaker.Closed {
		if !m.due(now) {
			m.spared++
			return false
		}
		if m.state == breaker.Open {
			m.turn(breaker.HalfOpen, now)
			m.good, m.bad, m.overtaken = 0, 0, 0
		}
		if m.probe != nil {
			m.overtaken++
		}
		m.probes++
		m.probe, s.isTry, s.n = s, true, m.probes
		m.spared, m.begun, m.most = max(m.spared-100, -100), true, m.cfg.MaxOpenFor
	}
	s.era, s.began = m.era, now
	return true
}

func (m *model) turn(to breaker.State, now time.Time) {
	m.state, m.changed = to, now
	m.era++
	if to != breaker.HalfOpen {
		m.probe = nil
	}
}

func (m *model) end(s *step, now time.Time) {
	current := m.probe == s
	if current {
		m.probe = nil
	}
	if lost := s.how == "panic"; lost && current || s.how == "cancelled" && m.state == breaker.HalfOpen && s.era == m.era {
		m.spared = max(m.spared, 100)
	}
	if s.era != m.era {
		return
	}
	bad := s.how == "500" || s.how == "reset"
	if m.state == breaker.HalfOpen {
		switch {
		case bad && s.n < m.good1: // older than one that was good
		case bad:
			m.bad++
			m.overtaken = 0
			if m.failed++; m.dead() || float64(m.bad)/float64(m.bad+m.cfg.Probes) >= m.cfg.FailureRate {
				m.open(now)
			}
		case s.how == "later":
			m.notBefore = now.Add(min(2*time.Second, m.cfg.MaxOpenFor))
			m.latest, m.begun = m.notBefore, false
		case s.how != "cancelled" && s.how != "panic":
			m.failed, m.overtaken = 0, 0
			if s.how == "200" {
				m.good1 = max(m.good1, s.n)
			}
			if m.good++; m.good == m.cfg.Probes {
				m.turn(breaker.Closed, now)
				m.calls, m.origin, m.lastBad, m.unanswered = nil, time.Time{}, time.Time{}, 0
				for i := 0; m.bad > 0 && i < m.good+m.bad; i++ {
					m.calls = append(m.calls, call{0, i < m.bad})
					m.origin, m.lastBad = now, now
				}
			}
		}
		return
	}
	if s.how != "reset" && s.how != "cancelled" && s.how != "panic" {
		m.unanswered = 0
	}
	switch {
	case bad:
		m.failed++
		if s.how == "reset" {
			m.unanswered++
		}
		m.lastBad = now
		if m.origin.IsZero() {
			m.origin = now
		}
	case s.how == "200":
		m.failed = 0
		if m.origin.IsZero() || now.Sub(m.lastBad) > m.cfg.Window {
			m.origin, m.calls = time.Time{}, nil
			return
		}
	default:
		return
	}
	m.calls = append(m.calls, call{int(now.Sub(m.origin) / (m.cfg.Window / 10)), bad})
	if bad && m.overdue(now) {
		m.open(now)
	}
}

// dead reports whether none of the last five calls, or of the last
// Consecutive, was good.
func (m *model) dead() bool { return m.failed >= min(5, m.cfg.Consecutive) }

// overdue reports whether the calls of the window, or a run, open the circuit.
func (m *model) overdue(now time.Time) bool {
	all, bad := 0, 0
	for _, c := range m.calls {
		if int(now.Sub(m.origin)/(m.cfg.Window/10))-c.tenth < 10 {
			all++
			if c.bad {
				bad++
			}
		}
	}
	return all >= m.cfg.MinCalls && float64(bad)/float64(all) >= m.cfg.FailureRate ||
		m.unanswered >= m.cfg.Consecutive || m.failed >= 4*m.cfg.Consecutive
}

func (m *model) open(now time.Time) {
	if m.state == breaker.Closed {
		m.tripped++
		m.spared, m.begun, m.most = 0, true, min(m.cfg.MaxOpenFor, 5*time.Second)
	} else if m.good > 0 {
		m.spared = max(m.spared, 100)
	}
	m.calls, m.unanswered = nil, 0
	m.turn(breaker.Open, now)
}

// play runs a history against circuits and model side by side.
func play(t *testing.T, c breaker.Config, steps []*step) error {
	cs := circuits(t, c)
	gates := make(chan chan answer, 1)
	h := &host{answer: func(r *http.Request) (*http.Response, error) {
		gate := make(chan answer)
		gates <- gate
		return (<-gate)(r)
	}}
	meter := cs.Meter(h)
	rt := cs.Door(meter)
	m := &model{cfg: c}
	var running []*step
	defer func() {
		for _, s := range running {
			s.gate <- status(200)
		}
	}()
	finish := func(s *step) {
		m.end(s, time.Now())
		s.gate <- endings[s.how]
		synctest.Wait()
	}
	for i, s := range steps {
		switch s.kind {
		case "sleep":
			time.Sleep(s.sleep)
		case "due":
			time.Sleep(time.Until(m.latest))
		case "end":
			if len(running) > 0 {
				at := s.which % len(running)
				r := running[at]
				running = append(running[:at], running[at+1:]...)
				r.how = s.how
				finish(r)
			}
		case "start", "call":
			passes := m.start(s, time.Now())
			go func() {
				defer func() { recover() }()
				get(rt, site)
			}()
			synctest.Wait()
			select {
			case s.gate = <-gates:
				running = append(running, s)
			default:
			}
			if (s.gate != nil) != passes {
				return fmt.Errorf("step %d: passed is %v, want %v", i, s.gate != nil, passes)
			}
			if s.kind == "call" && passes {
				running = running[:len(running)-1]
				finish(s)
			}
		}
		if err := m.compare(cs, meter, time.Now()); err != nil {
			return fmt.Errorf("step %d, %s %s: %w", i, s.kind, s.how, err)
		}
	}
	return nil
}

// compare checks the circuit against the model and learns the jitter from it.
func (m *model) compare(cs *breaker.Circuits, meter http.RoundTripper, now time.Time) error {
	if got := cs.State("a.example"); got != m.state {
		return fmt.Errorf("circuit is %v, want %v", got, m.state)
	}
	list := cs.Stats().Circuits
	if len(list) == 0 {
		return nil
	}
	got := list[0]
	if got.Trips != uint64(m.tripped) || got.Probes != uint64(m.probes) {
		return fmt.Errorf("%d trips and %d probes, want %d and %d", got.Trips, got.Probes, m.tripped, m.probes)
	}
	return m.learn(meter, got.NotBefore, now)
}

// learn takes over the instants that are random, if they are within bounds.
func (m *model) learn(meter http.RoundTripper, latest, now time.Time) error {
	if m.state == breaker.Closed {
		m.begun = false
		return nil
	}
	if m.state == breaker.Open && now.Equal(m.changed) {
		r, tr, _ := trip.Begin(httptest.NewRequest("GET", site, nil), trip.Retry, trip.Below(meter).Hosts)
		defer tr.End(nil)
		d, _ := trip.Outlook(meter, r) // until the end of the open period
		if d < m.cfg.OpenFor && float64(d) < 0.8*float64(m.cfg.MaxOpenFor) || float64(d) > 1.2*float64(m.cfg.OpenFor) || d > m.cfg.MaxOpenFor {
			return fmt.Errorf("no probe for %v, want about %v", d, m.cfg.OpenFor)
		}
		if m.notBefore = now.Add(d); m.latest.Before(m.notBefore) {
			m.latest = m.notBefore
		}
	}
	if m.begun {
		if d := latest.Sub(now); d > m.most || float64(d) < .8*float64(m.most) {
			return fmt.Errorf("a probe in %v at the latest, want about %v", d, m.most)
		}
		m.begun, m.latest = false, latest
	}
	if !latest.Equal(m.latest) {
		return fmt.Errorf("not before %v, want %v", latest, m.latest)
	}
	return nil
}

var endings = map[string]answer{
	"200":       status(200),
	"429":       status(429),
	"500":       status(500),
	"reset":     down,
	"later":     answerWith(503, "Retry-After", "2"),
	"cancelled": failing(context.Canceled),
	"panic":     func(*http.Request) (*http.Response, error) { panic("base") },
}

func history(t *rapid.T) []*step {
	how := rapid.SampledFrom([]string{"200", "200", "200", "429", "500", "500", "500", "reset", "reset", "later", "cancelled", "panic"})
	kinds := []string{"start", "start", "end", "end", "call", "call", "call", "call", "sleep", "due"}
	switch {
	case rapid.Bool().Draw(t, "nearly dead"):
		how = rapid.SampledFrom([]string{"200", "500", "reset", "reset", "reset", "reset", "reset", "cancelled"})
	case rapid.Bool().Draw(t, "half dead"):
		how, kinds = rapid.SampledFrom([]string{"200", "500"}), []string{"call", "call", "call", "due", "due", "start", "end"}
	}
	one := rapid.Custom(func(t *rapid.T) *step {
		s := &step{kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		switch s.kind {
		case "end", "call":
			s.which, s.how = rapid.IntRange(0, 5).Draw(t, "which"), how.Draw(t, "how")
		case "sleep":
			s.sleep = time.Duration(rapid.SampledFrom([]int{1, 50, 300, 1000, 2000, 6000}).Draw(t, "ms")) * time.Millisecond
		}
		return s
	})
	return rapid.SliceOfN(one, 20, 120).Draw(t, "steps")
}

// TestModel plays generated histories of outcomes, timings and concurrency.
func TestModel(t *testing.T) {
	if f := flag.Lookup("rapid.seed"); f.Value.String() == "0" { // the same histories each time, unless asked for others
		f.Value.Set("20261121")
		defer f.Value.Set("0")
	}
	reached, outvoted := make(map[breaker.State]int), 0
	rapid.Check(t, func(rt *rapid.T) {
		c := breaker.Config{
			Window:      10 * time.Second,
			MinCalls:    rapid.IntRange(1, 8).Draw(rt, "MinCalls"),
			FailureRate: rapid.SampledFrom([]float64{0.5, 0.25, 0.75, 1}).Draw(rt, "FailureRate"),
			Consecutive: rapid.IntRange(1, 6).Draw(rt, "Consecutive"),
			Probes:      rapid.IntRange(1, 4).Draw(rt, "Probes"),
			OpenFor:     250 * time.Millisecond,
			MaxOpenFor:  rapid.SampledFrom([]time.Duration{300 * time.Millisecond, time.Second, time.Minute}).Draw(rt, "MaxOpenFor"),
			OnStateChange: func(ch breaker.Change) {
				reached[ch.To]++
				if strings.HasSuffix(ch.Reason, "bad") {
					outvoted++
				}
			},
		}
		steps := history(rt)
		var err error
		synctest.Test(t, func(t *testing.T) { err = play(t, c, steps) })
		if err != nil {
			rt.Fatal(err)
		}
	})
	least := 10
	if testing.Short() {
		least = 1
	}
	if outvoted == 0 {
		t.Error("the histories let no bad probe be outvoted")
	}
	for _, s := range []breaker.State{breaker.Closed, breaker.HalfOpen, breaker.Open} {
		if reached[s] < least {
			t.Errorf("the histories led to %v only %d times", s, reached[s])
		}
	}
}
