package breaker

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// Do calls f under the circuit of a name that is no host: of a database, a queue,
// an RPC client. It refuses with an *Error while that circuit is open, or waits
// (Config.Patience), and counts what f returns: nil is a success, an error a
// failure, unless ctx has ended, within a second if by its deadline; Classify, if
// there is one, judges otherwise (its response is nil if f failed). Return nil for
// what says nothing against the other side, such as a row that is not there.
//
// Settings, State, Force, Release, Stats and OnStateChange know the circuit by
// name, in lower case. A name of a host that requests go to shares its circuit.
// Fallback is not asked: the caller of Do has the error. f is called once at most,
// with ctx, on the caller's goroutine; its error is returned as it is.
func (c *Circuits) Do(ctx context.Context, name string, f func(context.Context) error) error {
	u := &url.URL{Scheme: "http", Host: name}
	if name == "" {
		return errors.New("breaker: Do: name is empty")
	}
	c.doing.Do(func() { c.caller = c.Door(c.Meter(calls{})).(*door) })
	w := &work{ctx: ctx, f: f}
	r := (&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}).WithContext(context.WithValue(ctx, callKey{}, w))
	t, _ := c.caller.onward.Begin(r)
	_, err := c.caller.guard(r, t, true)
	return err
}

// work is what Do is to call.
type work struct {
	ctx context.Context
	f   func(context.Context) error
}

type callKey struct{}

// calls is the base of Do: the request only carries the call.
type calls struct{}

func (calls) RoundTrip(r *http.Request) (*http.Response, error) {
	c := r.Context().Value(callKey{}).(*work)
	if err := c.f(c.ctx); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}
