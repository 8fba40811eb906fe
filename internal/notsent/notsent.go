// Package notsent holds what layers tell one another about requests that did
// not reach the network: the marker of an error by which one of our own layers
// refuses a request, and the error that callers test for.
package notsent

import "errors"

// Err is weir.ErrNotSent: no attempt of the request reached the network.
var Err = errors.New("weir: no attempt reached the network")

// By says which layer refused a request.
type By uint8

const (
	Nobody   By = iota // the error is no refusal
	Throttle           // throttle.Transport: no room in time
	Door               // breaker.Door: the circuit is open, and the request came to no throttle
	Meter              // breaker.Meter: likewise, after a throttle granted units; it refunds them, as for no other error
)

// Refusal is implemented by the Error types of throttle and breaker. A
// refusal is not retried, does not count as a failure of the host, and says
// nothing about earlier attempts of the same request, which may have been sent.
type Refusal interface {
	error
	RefusedBy() By // never Nobody
}

// RefusedBy returns b. An error type that embeds a By is a [Refusal] by it: the method
// is promoted, so the documentation of the error does not list it.
func (b By) RefusedBy() By { return b }

// ByThrottle is embedded by errors that only a throttle returns. Unlike a By its zero
// value says Throttle, so it does in an error that a user made, too.
type ByThrottle struct{}

// RefusedBy is Throttle.
func (ByThrottle) RefusedBy() By { return Throttle }

// Refused returns which layer refused, if err is or wraps a refusal, and else Nobody.
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

// Wrap returns err, made to satisfy errors.Is(err, Err). Its text, its chain and its
// Timeout stay as they are. It returns nil for nil.
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

// Deny is the opposite of Wrap: it returns err, made not to satisfy errors.Is(err, Err).
// It is for the error of an attempt that was not sent, if another attempt of the same
// request was. Text, Timeout, and what errors.As and errors.Is find else stay.
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

// Timeout is that of the first error in the chain that has one.
func (d denied) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(d.err, &t) && t.Timeout()
}

// Temporary is what Timeout is.
func (d denied) Temporary() bool { return d.Timeout() }
