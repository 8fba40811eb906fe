package notsent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"testing"
)

type refusal struct{ by By }

func (r *refusal) Error() string { return "refused" }
func (r *refusal) RefusedBy() By { return r.by }
func (r *refusal) Timeout() bool { return true }

func TestRefused(t *testing.T) {
	r := &refusal{Meter}
	for name, err := range map[string]error{"itself": r, "wrapped": fmt.Errorf("x: %w", r), "in a url.Error": &url.Error{Err: r}, "not sent": Wrap(r)} {
		if got := Refused(err); got != Meter {
			t.Errorf("%s: refused by %v, want the Meter", name, got)
		}
	}
	for _, err := range []error{nil, io.EOF, Err} {
		if got := Refused(err); got != Nobody {
			t.Errorf("%v: refused by %v, want nobody", err, got)
		}
	}
}

func TestWrap(t *testing.T) {
	r := &refusal{Door}
	err := Wrap(r)
	if !errors.Is(err, Err) || errors.Is(r, Err) {
		t.Error("only the wrapped refusal was not sent")
	}
	if err.Error() != "refused" {
		t.Errorf("the text became %q", err)
	}
	var found *refusal
	if !errors.As(&url.Error{Err: err}, &found) || found != r {
		t.Error("errors.As does not find the refusal")
	}
	if u := (&url.Error{Err: err}); !u.Timeout() {
		t.Error("url.Error does not see Timeout")
	}
	if u := (&url.Error{Err: Wrap(io.EOF)}); u.Timeout() {
		t.Error("EOF became a timeout")
	}
	if Wrap(nil) != nil || Wrap(err) != err {
		t.Error("nil and what is marked already stay what they are")
	}
	if !errors.Is(Wrap(context.DeadlineExceeded), context.DeadlineExceeded) {
		t.Error("the cause is lost")
	}
}

// Deny takes the claim away and nothing else.
func TestDeny(t *testing.T) {
	if Deny(nil) != nil || Deny(io.EOF) != io.EOF {
		t.Error("what claims nothing was changed")
	}
	err := Deny(Wrap(context.DeadlineExceeded))
	var timeout interface{ Timeout() bool }
	if errors.Is(err, Err) || !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("%v: %v", err, errors.Is(err, Err))
	}
	if err.Error() != context.DeadlineExceeded.Error() {
		t.Errorf("text %q", err)
	}
}
