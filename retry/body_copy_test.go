package retry_test

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// GetBody of a body that is kept gives copies: whoever sends two of them at
// once, as another chain's hedge, has each of them whole, and the body closed
// with the last.
func TestGetBodyCopies(t *testing.T) { synctest.Test(t, getBodyCopies) }

func getBodyCopies(t *testing.T) {
	body := testnet.NewBody("body")
	r := request(t, "PUT", "http://a.example/", "")
	r.Body, r.ContentLength = body, 4
	attempts := 0
	base := testnet.Func(func(r *http.Request) (*http.Response, error) {
		attempts++
		half := make([]byte, 2)
		io.ReadFull(r.Body, half)
		copied, err := r.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(copied); err != nil || string(b) != "body" {
			t.Errorf("attempt %d: a copy has %q, %v", attempts, b, err)
		}
		copied.Close()
		if b, err := io.ReadAll(r.Body); err != nil || string(half)+string(b) != "body" {
			t.Errorf("attempt %d: beside a copy there is %q, %v", attempts, string(half)+string(b), err)
		}
		if body.Closes() != 0 {
			t.Error("a copy closed the body")
		}
		r.Body.Close()
		return testnet.Answer(r, 503, nil, nil), nil
	})
	if _, err := newTransport(t, base, retry.Config{BufferBody: 4}).RoundTrip(r); err != nil || attempts != 3 || body.Closes() != 1 {
		t.Errorf("%v after %d attempts; body closed %d times", err, attempts, body.Closes())
	}
}

// copied is another body of the attempt that r is.
func copied(t *testing.T, r *http.Request) io.ReadCloser {
	t.Helper()
	c, err := r.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A body that is longer than it says cannot be had twice: a copy is cut off
// rather than given what comes after what it has.
func TestCopyOfALiar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := testnet.NewBody("bodybody")
		var first io.ReadCloser
		if _, err := lend(t, 4, 4, body, func(r *http.Request) (*http.Response, error) {
			first = r.Body
			second := copied(t, r)
			io.ReadFull(second, make([]byte, 2))
			if b, err := io.ReadAll(first); err != nil || string(b) != "bodybody" {
				t.Errorf("the first got %q, %v", b, err)
			}
			if b, err := io.ReadAll(second); err == nil {
				t.Errorf("a copy went on with %q", b)
			}
			return testnet.Answer(withoutBody(r), 200, nil, nil), nil
		}); err != nil {
			t.Fatal(err)
		}
		if first.Close(); body.Closes() != 1 {
			t.Errorf("closed %d times, want 1", body.Closes())
		}
	})
}

// gated is a body whose Reads wait until they may.
type gated struct {
	open chan struct{}
	*testnet.Body
}

func (g *gated) Read(b []byte) (int, error) {
	<-g.open
	return g.Body.Read(b)
}

// A copy of an attempt that is over does not wait for the Read of another.
func TestCopyOfAnEarlierAttemptEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := &gated{make(chan struct{}), testnet.NewBody("body")}
		ended := make(chan error, 1)
		attempts := 0
		if _, err := lend(t, 100, 4, body, func(r *http.Request) (*http.Response, error) {
			if attempts++; attempts == 1 {
				c := copied(t, r)
				go r.Body.Read(make([]byte, 10))
				synctest.Wait()
				go func() {
					_, err := c.Read(make([]byte, 10))
					ended <- err
				}()
				synctest.Wait()
				return nil, errReset
			}
			synctest.Wait()
			select {
			case err := <-ended:
				if !sealed(err) {
					t.Errorf("got %v", err)
				}
			default:
				t.Error("it waits")
			}
			close(body.open)
			r.Body.Close()
			return testnet.Answer(withoutBody(r), 200, nil, nil), nil
		}); err != nil || attempts != 2 {
			t.Errorf("%v after %d attempts", err, attempts)
		}
	})
}

// A body that grew too long to be kept is closed with its last reader, also if a
// copy that can go on no more is never closed.
func TestALostBodyIsClosedWithItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := &gated{make(chan struct{}), testnet.NewBody("0123456789")}
		var c io.ReadCloser
		if _, err := lend(t, 5, 5, body, func(r *http.Request) (*http.Response, error) {
			c = copied(t, r)
			go r.Body.Read(make([]byte, 10))
			synctest.Wait()
			r.Body.Close()
			return testnet.Answer(withoutBody(r), 200, nil, nil), nil
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // after 50 ms the body of a reader that is alone would be closed
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

// The body of an attempt may be closed while a Read is under way that brings more
// than can be kept: the source is closed all the same, whoever else had a copy.
func TestOverflowOfAClosedShare(t *testing.T) {
	for name, tt := range map[string]struct{ copies, overFirst bool }{
		"alone":                       {},
		"beside a copy":               {copies: true},
		"beside a copy, when over":    {copies: true, overFirst: true},
		"alone, when over in between": {overFirst: true},
	} {
		bubble(t, name, func(t *testing.T) {
			from, to := io.Pipe()
			body := testnet.BodyOf(from)
			overflow := func() {
				to.Write([]byte("bodybody"))
				synctest.Wait()
			}
			if _, err := lend(t, 4, 4, body, func(r *http.Request) (*http.Response, error) {
				if tt.copies {
					copied(t, r)
				}
				go r.Body.Read(make([]byte, 8))
				synctest.Wait()
				r.Body.Close()
				if !tt.overFirst {
					overflow()
				}
				return testnet.Answer(withoutBody(r), 200, nil, nil), nil
			}); err != nil {
				t.Fatal(err)
			}
			if tt.overFirst {
				overflow()
			}
			if synctest.Wait(); body.Closes() != 1 {
				t.Errorf("the body was closed %d times, want 1", body.Closes())
			}
		})
	}
}
