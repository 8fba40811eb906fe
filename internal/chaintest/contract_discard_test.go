package chaintest

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

func discardedClosed(t *testing.T, l layer) {
	var bodies []*testnet.Body
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		if len(bodies) == 2 {
			return stub(r)
		}
		b := testnet.NewBody("busy")
		bodies = append(bodies, b)
		return testnet.Answer(r, 503, nil, b), nil
	}))
	resp, err := rt.RoundTrip(get(t, "http://h/"))
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	for i, b := range bodies {
		if b.Closes() == 0 || !b.AtEnd() {
			t.Errorf("answer %d: closed %d times, read to its end %v", i, b.Closes(), b.AtEnd())
		}
	}
}

func hugeDiscarded(t *testing.T, l layer) {
	source, n := new(zeros), 0
	body := testnet.BodyOf(source)
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		if n++; n == 1 {
			return testnet.Answer(r, 503, nil, body), nil
		}
		return stub(r)
	}))
	resp, err := rt.RoundTrip(get(t, "http://h/"))
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	if source.read > 1<<20 || body.Closes() == 0 {
		t.Errorf("read %d bytes, closed %d times", source.read, body.Closes())
	}
}

// trickle gives a byte a minute until it is closed.
type trickle struct {
	ctx    context.Context
	cancel context.CancelFunc
}

func (s *trickle) Read(p []byte) (int, error) {
	select {
	case <-time.After(time.Minute):
		p[0] = '.'
		return 1, nil
	case <-s.ctx.Done():
		return 0, context.Canceled
	}
}

func (s *trickle) Close() error {
	s.cancel()
	return nil
}

func trickleDiscarded(t *testing.T, l layer) {
	n := 0
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		if n++; n == 1 {
			ctx, cancel := context.WithCancel(r.Context())
			return testnet.Answer(r, 503, nil, &trickle{ctx, cancel}), nil
		}
		return stub(r)
	}))
	start := time.Now()
	resp, err := rt.RoundTrip(get(t, "http://h/"))
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("held up for %v", d)
	}
}
