// Package notsent holds what layers tell one another about requests that did
// not reach the network: the marker of a refusal by one of our own layers,
// and the error that callers test for.
package notsent

import "errors"

// Err is weir.ErrNotSent.
var Err = errors.New("weir: no attempt reached the network")

// By says who refused.
type By uint8

const (
	Nobody By = iota
	Throttle
	Door
	Meter // the only refusal for which a throttle refunds what it granted
)

// Refusal is implemented by the Error types of throttle and breaker. A
// refusal is not retried, is no outcome of the host, and says nothing by
// itself about earlier attempts of the same request.
type Refusal interface {
	error
	RefusedBy() By
}

// RefusedBy makes what embeds a By a [Refusal], without a method of its own that
// users of an exported error would see.
func (b By) RefusedBy() By { return b }

// ByThrottle is By, always Throttle, also in an Error that a user made.
type ByThrottle struct{}

// RefusedBy is Throttle.
func (ByThrottle) RefusedBy() By { return Throttle }

// Refused reports who refused, if err is or wraps a refusal.
func Refused(err error) By {
	if err == nil {
		return Nobody
	}
	if r, ok := err.(Refusal); ok {
		return r.RefusedBy()
	}
	var r Refusal
	if errors.As(err, &r) {
		return r.RefusedBy()
	}
	return Nobody
}

// Wrap makes err satisfy errors.Is(err, Err) and leaves the rest of it as it
// is: its text, its chain, its Timeout.
func Wrap(err error) error {
	if err == nil || errors.Is(err, Err) {
		return err
	}
	return &wrapped{err}
}

type wrapped struct{ err error }

func (w *wrapped) Error() string        { return w.err.Error() }
func (w *wrapped) Unwrap() error        { return w.err }
func (w *wrapped) Is(target error) bool { return target == Err }

// Timeout is asked by url.Error, which looks at its direct child only.
func (w *wrapped) Timeout() bool {
	t, ok := w.err.(interface{ Timeout() bool })
	return ok && t.Timeout()
}

// Temporary is what Timeout is: a later call may succeed.
func (w *wrapped) Temporary() bool { return w.Timeout() }

// Deny makes err, which claims that nothing was sent, claim it no more: it
// speaks of a part of a request of which another part was sent.
func Deny(err error) error {
	if !errors.Is(err, Err) {
		return err
	}
	return denied{err}
}

type denied struct{ err error }

func (d denied) Error() string        { return d.err.Error() }
func (d denied) As(target any) bool   { return errors.As(d.err, target) }
func (d denied) Is(target error) bool { return target != Err && errors.Is(d.err, target) }

// Timeout is that of the error.
func (d denied) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(d.err, &t) && t.Timeout()
}

// Temporary is what Timeout is.
func (d denied) Temporary() bool { return d.Timeout() }
