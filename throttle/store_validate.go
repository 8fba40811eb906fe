package throttle

import (
	"errors"
	"fmt"
	"math"
	"time"
)

const (
	maxStored  = 16          // draws of a booking, limits, units and moves of a draw
	maxStated  = 8           // stated limits of a key
	maxID      = 64          // bytes
	maxEntries = 128         // of a log, give or take two
	maxAmount  = int64(1e15) // doubles count exactly up to 2^53
	maxHorizon = 400 * 24 * time.Hour
)

// Validate reports the first fault of b, naming the field and the value.
// Stores call it, so that a fault never reaches a script.
func (b Booking) Validate() error {
	if len(b.Draws) == 0 || len(b.Draws) > maxStored {
		return fmt.Errorf("throttle: Booking has %d draws, want 1 to %d", len(b.Draws), maxStored)
	}
	if b.MaxWait < 0 || b.MaxWait > maxHorizon {
		return fmt.Errorf("throttle: Booking.MaxWait %v out of range", b.MaxWait)
	}
	for i, d := range b.Draws {
		for _, e := range b.Draws[:i] {
			if d.Key == e.Key {
				return fmt.Errorf("throttle: Booking names key %q twice", d.Key)
			}
		}
		if err := d.validate(); err != nil {
			return fmt.Errorf("throttle: Booking of key %q: %w", d.Key, err)
		}
	}
	return nil
}

func (d Draw) validate() error {
	if len(d.Limits) > maxStored || len(d.Units) > maxStored || len(d.Moved) > maxStored {
		return fmt.Errorf("%d limits, %d units, %d moved, want at most %d", len(d.Limits), len(d.Units), len(d.Moved), maxStored)
	}
	for _, u := range d.Units {
		if len(u.Unit) > maxID {
			return fmt.Errorf("unit of %d bytes, want at most %d", len(u.Unit), maxID)
		}
		if u.First < 0 || u.All < u.First || u.All > maxAmount {
			return fmt.Errorf("unit %q costs %d, %d in all", u.Unit, u.First, u.All)
		}
	}
	for i, l := range d.Limits {
		if err := l.validate(len(d.Units)); err != nil {
			return fmt.Errorf("limit %q: %w", l.ID, err)
		}
		for _, m := range d.Limits[:i] {
			if l.ID == m.ID && l.Kind == m.Kind {
				return fmt.Errorf("limit %q stands twice", l.ID)
			}
		}
	}
	for _, m := range d.Moved {
		if len(m.Units) != len(d.Units) || m.Age < 0 || m.Age > maxHorizon {
			return fmt.Errorf("moved %d units of %d, %v ago", len(m.Units), len(d.Units), m.Age)
		}
		for _, n := range m.Units {
			if n < 0 || n > maxAmount {
				return fmt.Errorf("moved %d units", n)
			}
		}
	}
	if n := len(d.Seen.Levels); n != 0 && n != len(d.Limits) {
		return fmt.Errorf("Seen has %d levels for %d limits", n, len(d.Limits))
	}
	return nil
}

func (l StoreLimit) validate(units int) error {
	switch {
	case len(l.ID) > maxID:
		return fmt.Errorf("ID of %d bytes, want at most %d", len(l.ID), maxID)
	case l.Unit < 0 || l.Unit >= units:
		return fmt.Errorf("unit %d of %d", l.Unit, units)
	case !(l.Size > 0) || l.Size > float64(maxAmount):
		return fmt.Errorf("size %v", l.Size)
	case l.Kind == MeterLimit && (!(l.Rate > 0) || math.IsInf(l.Rate, 0) || math.IsNaN(l.Credit) || math.IsInf(l.Credit, 0)):
		return fmt.Errorf("rate %v, credit %v", l.Rate, l.Credit)
	case l.Kind != MeterLimit && (l.Per <= 0 || l.Per > maxHorizon):
		return fmt.Errorf("window of %v", l.Per)
	case l.Kind == LogLimit && (l.Grain < 0 || l.Size > maxEntries && l.Grain < l.Per/maxEntries):
		return fmt.Errorf("grain %v for %v units in %v", l.Grain, l.Size, l.Per)
	case l.Kind == CalendarLimit && l.Ends.IsZero():
		return errors.New("no end")
	case l.Kind < MeterLimit || l.Kind > CalendarLimit:
		return fmt.Errorf("kind %d", l.Kind)
	}
	return nil
}

// Validate reports the first fault of r, naming the field and the value.
func (r Refund) Validate() error {
	if len(r.Units) != len(r.Limits) || len(r.Limits) > maxStored {
		return fmt.Errorf("throttle: Refund of key %q: %d units for %d limits", r.Key, len(r.Units), len(r.Limits))
	}
	for i, u := range r.Units {
		if !(u >= 0) || u > float64(maxAmount) {
			return fmt.Errorf("throttle: Refund of key %q: %v units of limit %q", r.Key, u, r.Limits[i].ID)
		}
		l := r.Limits[i]
		l.Unit = 0
		if err := l.validate(1); err != nil {
			return fmt.Errorf("throttle: Refund of key %q: limit %q: %w", r.Key, l.ID, err)
		}
	}
	return nil
}

// Validate reports the first fault of n, naming the field and the value.
func (n News) Validate() error {
	if n.Pause > maxHorizon {
		return fmt.Errorf("throttle: News.Pause %v out of range", n.Pause)
	}
	if len(n.Stated) > maxStated {
		return fmt.Errorf("throttle: News.Stated has %d entries, want at most %d", len(n.Stated), maxStated)
	}
	for _, s := range n.Stated {
		if s.Remaining < 0 || s.Remaining > maxAmount || s.Reset < 0 || s.Reset > maxHorizon || len(s.ID) > maxID || len(s.Unit) > maxID {
			return fmt.Errorf("throttle: News.Stated %q: %d remaining for %v", s.ID, s.Remaining, s.Reset)
		}
	}
	return nil
}
