package weir

import (
	"fmt"
	"sync"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/pattern"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// settings are the settings of single hosts, and those of Config that all other hosts have.
type settings struct {
	throttle throttle.HostConfig
	retry    retry.Config
	breaker  breaker.Config

	mu    sync.Mutex
	hosts map[string]Host // by pattern, in its canonical spelling
	told  layers          // that know of hosts
}

// layers says which layers have settings by host. A layer that has any is told of all
// patterns, because it takes the most specific of those that match a host.
type layers struct{ throttle, retry, breaker bool }

// begin keeps the settings of c, with which the layers were made, and tells the layers
// of c.Hosts.
func (s *settings) begin(t *Transport, c Config) error {
	s.throttle = throttle.HostConfig{
		MaxWait: c.Throttle.MaxWait, MaxPause: c.Throttle.MaxPause,
		Pace: c.Throttle.Pace, DisableLearning: c.Throttle.DisableLearning,
	}
	s.retry, s.breaker = c.Retry, c.Breaker
	if _, err := pattern.NewSet(c.Hosts); err != nil { // two that mean the same: either could win
		return fmt.Errorf("weir: Hosts: %w", err)
	}
	s.hosts = make(map[string]Host, len(c.Hosts))
	for text, h := range c.Hosts {
		if err := s.set(t, text, h); err != nil {
			return fmt.Errorf("weir: Hosts[%s]: %w", pattern.Quote(text), err)
		}
	}
	return nil
}

// SetHost sets the settings of the hosts that a pattern names, as Config.Hosts
// does. They replace the settings that the pattern had before; a nil field means
// that Config's apply. If SetHost returns an error, nothing has changed.
func (t *Transport) SetHost(text string, h Host) error {
	if err := t.settings.set(t, text, h); err != nil {
		return fmt.Errorf("weir: SetHost %s: %w", pattern.Quote(text), err)
	}
	return nil
}

func (s *settings) set(t *Transport, text string, h Host) error {
	p, err := pattern.Parse(text)
	if err == nil {
		err = s.check(p.Text, h)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.told
	s.told.throttle = s.told.throttle || h.Throttle != nil
	s.told.retry = s.told.retry || h.Retry != nil
	s.told.breaker = s.told.breaker || h.Breaker != nil || h.Retry != nil && h.Retry.AttemptTimeout != s.retry.AttemptTimeout
	for other, h := range s.hosts { // a layer that is told of a host for the first time is told of all
		if err := s.tell(t, other, h, layers{s.told.throttle && !before.throttle, s.told.retry && !before.retry, s.told.breaker && !before.breaker}); err != nil {
			return err
		}
	}
	s.hosts[p.Text] = h
	return s.tell(t, p.Text, h, s.told)
}

// check tries h on layers that nobody uses. If one of them returns an error, no layer
// that is in use is told of h.
func (s *settings) check(text string, h Host) error {
	var spare Transport
	var err error
	if spare.throttle, err = throttle.New(nil, throttle.Config{}); err != nil {
		return err
	}
	if spare.retry, err = retry.New(spare.throttle, retry.Config{}); err != nil {
		return err
	}
	if spare.circuits, err = breaker.NewCircuits(breaker.Config{}); err != nil {
		return err
	}
	return s.tell(&spare, text, h, layers{true, true, true})
}

// tell gives the settings of h, or those of Config where h has none, to the layers of
// who.
func (s *settings) tell(t *Transport, text string, h Host, who layers) error {
	waits, retries, circuits := s.throttle, s.retry, s.breaker
	if h.Throttle != nil {
		waits = *h.Throttle
	}
	if h.Retry != nil {
		retries = *h.Retry
	}
	if h.Breaker != nil {
		circuits = *h.Breaker
	}
	circuits, err := fitWindow(circuits, retries.AttemptTimeout)
	if err == nil && who.throttle {
		err = t.throttle.SetHost(text, waits)
	}
	if err == nil && who.retry {
		err = t.retry.SetHost(text, retries)
	}
	if err == nil && who.breaker {
		err = t.circuits.SetHost(text, circuits)
	}
	return err
}
