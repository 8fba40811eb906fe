package store

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// What Validate allows at most, so that the state of a key is bounded.
const (
	// MaxParts is how many draws a booking may have, and a draw limits, units and moves: a
	// host, its routes and pools, of a few rates each. A store decides on all of them in one
	// step, while others wait.
	MaxParts = 16
	// MaxStated is how many stated quotas a key may have: of requests, tokens and what else one
	// API counts, by the second and by the day.
	MaxStated = 8
	// MaxID is how many bytes the name of a limit or a unit may have: both are words, and stand
	// in the state of each key.
	MaxID      = 64
	MaxAmount  = int64(1e15)          // units of anything: doubles count exactly up to 2^53
	MaxHorizon = 400 * 24 * time.Hour // of windows, pauses and resets: a year with room to spare
)

// maxEntries bounds a log, give or take two: twice the 64 dates that package throttle keeps
// of a window, so that a Size whose units are kept one by one may be that large.
const maxEntries = 128

// Validate reports the first fault of b, naming the field and the value.
// Stores call it, so that a fault never reaches a script.
func (b Booking) Validate() error {
	if len(b.Draws) == 0 || len(b.Draws) > MaxParts {
		return fmt.Errorf("store: Booking has %d draws, want 1 to %d", len(b.Draws), MaxParts)
	}
	if b.MaxWait < 0 || b.MaxWait > MaxHorizon {
		return fmt.Errorf("store: Booking.MaxWait %v out of range", b.MaxWait)
	}
	for i, d := range b.Draws {
		for _, e := range b.Draws[:i] {
			if d.Key == e.Key {
				return fmt.Errorf("store: Booking names key %q twice", d.Key)
			}
		}
		if err := d.Validate(); err != nil {
			return fmt.Errorf("store: Booking of key %q: %w", d.Key, err)
		}
	}
	return nil
}

// Validate reports the first fault of d.
func (d Draw) Validate() error {
	if len(d.Limits) > MaxParts || len(d.Units) > MaxParts || len(d.Moved) > MaxParts {
		return fmt.Errorf("%d limits, %d units, %d moved, want at most %d", len(d.Limits), len(d.Units), len(d.Moved), MaxParts)
	}
	for _, u := range d.Units {
		if len(u.Unit) > MaxID {
			return fmt.Errorf("unit of %d bytes, want at most %d", len(u.Unit), MaxID)
		}
		if u.First < 0 || u.All < u.First || u.All > MaxAmount {
			return fmt.Errorf("unit %q: cost %d of the first request, %d of all: out of range", u.Unit, u.First, u.All)
		}
	}
	for i, l := range d.Limits {
		if err := l.validate(len(d.Units)); err != nil {
			return fmt.Errorf("limit %q: %w", l.ID, err)
		}
		for _, m := range d.Limits[:i] {
			if l.ID == m.ID && l.Kind == m.Kind {
				return fmt.Errorf("limit %q is named twice", l.ID)
			}
		}
	}
	for _, m := range d.Moved {
		if len(m.Units) != len(d.Units) || m.Age < 0 || m.Age > MaxHorizon {
			return fmt.Errorf("Moved has %d units, want %d, and its Age is %v, want 0 to %v", len(m.Units), len(d.Units), m.Age, MaxHorizon)
		}
		for _, n := range m.Units {
			if n < 0 || n > MaxAmount {
				return fmt.Errorf("Moved: %d units: out of range", n)
			}
		}
	}
	if n := len(d.Seen.Levels); n != 0 && n != len(d.Limits) {
		return fmt.Errorf("Seen has %d levels for %d limits", n, len(d.Limits))
	}
	return nil
}

func (l Limit) validate(units int) error {
	switch {
	case len(l.ID) > MaxID:
		return fmt.Errorf("ID of %d bytes, want at most %d", len(l.ID), MaxID)
	case l.Unit < 0 || l.Unit >= units:
		return fmt.Errorf("Unit is %d, want an index of the %d units", l.Unit, units)
	case !(l.Size > 0) || l.Size > float64(MaxAmount):
		return fmt.Errorf("Size %v is out of range", l.Size)
	case l.Kind == MeterLimit && (!(l.Rate > 0) || math.IsInf(l.Rate, 0) || math.IsNaN(l.Credit) || math.IsInf(l.Credit, 0)):
		return fmt.Errorf("Rate %v or Credit %v is out of range", l.Rate, l.Credit)
	case l.Kind != MeterLimit && (l.Per <= 0 || l.Per > MaxHorizon):
		return fmt.Errorf("Per %v is out of range", l.Per)
	case l.Kind == LogLimit && (l.Grain < 0 || l.Size > maxEntries && l.Grain < l.Per/maxEntries):
		return fmt.Errorf("Grain %v is out of range for %v units in %v", l.Grain, l.Size, l.Per)
	case l.Kind == CalendarLimit && l.Ends.IsZero():
		return errors.New("Ends is zero")
	case l.Kind < MeterLimit || l.Kind > CalendarLimit:
		return fmt.Errorf("kind %d", l.Kind)
	}
	return nil
}

// Validate reports the first fault of r, naming the field and the value.
func (r Refund) Validate() error {
	if len(r.Units) != len(r.Limits) || len(r.Held) != len(r.Limits) || len(r.Limits) > MaxParts {
		return fmt.Errorf("store: Refund of key %q has %d Units and %d Held for %d Limits", r.Key, len(r.Units), len(r.Held), len(r.Limits))
	}
	for i, u := range r.Units {
		if !(u >= 0) || u > float64(MaxAmount) {
			return fmt.Errorf("store: Refund of key %q: %v units of limit %q are out of range", r.Key, u, r.Limits[i].ID)
		}
		if h := r.Held[i]; math.IsNaN(h) || math.IsInf(h, 0) {
			return fmt.Errorf("store: Refund of key %q: limit %q: Held %v is not finite", r.Key, r.Limits[i].ID, h)
		}
		l := r.Limits[i]
		l.Unit = 0
		if err := l.validate(1); err != nil {
			return fmt.Errorf("store: Refund of key %q: limit %q: %w", r.Key, l.ID, err)
		}
	}
	return nil
}

// Validate reports the first fault of n, naming the field and the value.
func (n News) Validate() error {
	if n.Pause < 0 || n.Pause > MaxHorizon {
		return fmt.Errorf("store: News.Pause %v out of range", n.Pause)
	}
	if n.Guess < 0 || n.Guess > MaxHorizon {
		return fmt.Errorf("store: News.Guess %v out of range", n.Guess)
	}
	if len(n.Stated) > MaxStated {
		return fmt.Errorf("store: News.Stated has %d entries, want at most %d", len(n.Stated), MaxStated)
	}
	for _, s := range n.Stated {
		if s.Remaining < 0 || s.Remaining > MaxAmount || s.Reset < 0 || s.Reset > MaxHorizon || len(s.ID) > MaxID || len(s.Unit) > MaxID {
			return fmt.Errorf("store: News.Stated %q: %d remaining for %v, or its names, are out of range", s.ID, s.Remaining, s.Reset)
		}
	}
	if len(n.Refill) > MaxParts {
		return fmt.Errorf("store: News.Refill has %d entries, want at most %d", len(n.Refill), MaxParts)
	}
	for _, r := range n.Refill {
		if r.Units < 0 || r.Units > MaxAmount || len(r.ID) > MaxID || r.Kind < MeterLimit || r.Kind > CalendarLimit {
			return fmt.Errorf("store: News.Refill %q: %d units of kind %d, or its name, are out of range", r.ID, r.Units, r.Kind)
		}
	}
	return nil
}

// Validate reports the first thing in l that no booking, refund or news leads
// to: for stores that read a Ledger from where others may write.
func (l Ledger) Validate() error {
	const most = 3 * int64(MaxHorizon/time.Microsecond) // after At
	latest := min(max(0, l.At), math.MaxInt64-most) + most
	for name, at := range map[string]int64{"gen": l.Gen, "at": l.At, "pause": l.Pause, "guess": l.Guess, "heals": l.Heals, "expires": l.Expires} {
		if at < 0 || name != "gen" && at > latest {
			return fmt.Errorf("%s %d, at %d", name, at, l.At)
		}
	}
	for _, a := range l.Accounts {
		if err := a.validate(latest); err != nil {
			return fmt.Errorf("account %q: %w", a.ID, err)
		}
	}
	if len(l.Stated) > MaxStated {
		return fmt.Errorf("%d stated quotas, want at most %d", len(l.Stated), MaxStated)
	}
	for _, s := range l.Stated {
		if len(s.ID) > MaxID || len(s.Unit) > MaxID || !(s.Remaining >= 0) || s.Remaining > float64(MaxAmount) || s.Ends < 0 || s.Ends > latest {
			return fmt.Errorf("stated %q: %v remaining until %d", s.ID, s.Remaining, s.Ends)
		}
	}
	return nil
}

// validate allows a Meter the credit below zero, and any account what is forced
// upon it a thousand times.
func (a Account) validate(latest int64) error {
	const amount = float64(MaxAmount)
	switch {
	case a.Kind < MeterLimit || a.Kind > CalendarLimit:
		return fmt.Errorf("kind %d", a.Kind)
	case len(a.ID) > MaxID:
		return fmt.Errorf("ID of %d bytes, want at most %d", len(a.ID), MaxID)
	case !(a.Level >= -amount && a.Level <= 1000*amount) || a.Kind != MeterLimit && a.Level < 0:
		return fmt.Errorf("level %v", a.Level)
	}
	for name, at := range map[string]int64{"at": a.At, "idle": a.Idle, "ends": a.Ends} {
		if at < 0 || at > latest {
			return fmt.Errorf("%s %d", name, at)
		}
	}
	last := int64(0)
	for _, e := range a.Entries {
		if !(e.Units >= 0) || e.Units > 1000*amount || e.At < last || e.At > latest {
			return fmt.Errorf("%v units at %d, after some at %d", e.Units, e.At, last)
		}
		last = e.At
	}
	return nil
}
