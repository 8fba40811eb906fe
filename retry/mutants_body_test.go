package retry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// gated is a body whose Reads wait until they may.
type gated struct {
	open chan struct{}
	*testnet.Body
}

func (g *gated) Read(b []byte) (int, error) {
	<-g.open
	return g.Body.Read(b)
}

// blocked lends a body of which limit bytes are kept, to a share whose Read of it
// goes on when the body is opened, and to a copy.
func blocked(t *testing.T, limit int64, text string) (p *replay, s *share, c io.ReadCloser, body *gated) {
	body = &gated{make(chan struct{}), testnet.NewBody(text)}
	p = lend(t, limit, body)
	s = p.next()
	c, err := p.copy()
	if err != nil {
		t.Fatal(err)
	}
	go s.Read(make([]byte, 10))
	synctest.Wait()
	return p, s, c, body
}

// A copy of an attempt that is over does not wait for the Read of another.
func TestCopyOfAnEarlierAttemptEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, c, body := blocked(t, 100, "body")
		ended := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 10))
			ended <- err
		}()
		synctest.Wait()
		p.next()
		synctest.Wait()
		select {
		case err := <-ended:
			if err != errSealed {
				t.Errorf("got %v", err)
			}
		default:
			t.Error("it waits")
		}
		close(body.open)
	})
}

// A body that grew too long to be kept is closed with its last reader, also if a
// copy that can go on no more is never closed.
func TestALostBodyIsClosedWithItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s, c, body := blocked(t, 5, "0123456789")
		s.Close()
		p.finish()
		time.Sleep(2 * closeGrace)
		if n := body.Closes(); n != 0 {
			t.Errorf("closed %d times under its reader, while a copy is out", n)
		}
		close(body.open)
		synctest.Wait()
		if n := body.Closes(); n != 1 {
			t.Errorf("closed %d times", n)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Errorf("the copy goes on: %v", err)
		}
		if c.Close(); body.Closes() != 1 {
			t.Error("closed again")
		}
	})
}

// Each kind of distrust is enough.
func TestDistrusted(t *testing.T) {
	for _, err := range []error{
		&tls.CertificateVerificationError{Err: errReset}, x509.UnknownAuthorityError{},
		x509.CertificateInvalidError{}, x509.HostnameError{Certificate: new(x509.Certificate)},
	} {
		if !distrusted(err) {
			t.Errorf("%T is taken for trust", err)
		}
	}
	if distrusted(errors.New("tls: something else")) {
		t.Error("any error is taken for distrust")
	}
}

// A failure that is not repeated earns nothing.
func TestFailuresEarnNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(step{status: 500})
		rt := newTransport(t, s, Config{MaxAttempts: 2, Backoff: fixed(0)})
		left := func() float64 { return rt.Stats().Hosts["a.example"].Allowance }
		get(t, rt, "GET")
		spent := left()
		for _, st := range []step{{status: 500}, {status: 501}, {err: errReset}} {
			s.steps = []step{st}
			get(t, rt, "POST")
			if got := left(); got != spent {
				t.Errorf("%+v: %v tokens are left, want %v", st, got, spent)
			}
		}
		s.steps = []step{{status: 404}}
		if get(t, rt, "POST"); left() != spent+earn {
			t.Errorf("after an answer %v tokens are left, want %v", left(), spent+earn)
		}
	})
}
