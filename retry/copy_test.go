package retry

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/weirhttp/weir/internal/testnet"
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
	base := roundTrip(func(r *http.Request) (*http.Response, error) {
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
	if _, err := newTransport(t, base, Config{BufferBody: 4}).RoundTrip(r); err != nil || attempts != 3 || body.Closes() != 1 {
		t.Errorf("%v after %d attempts; body closed %d times", err, attempts, body.Closes())
	}
}

// A body that is longer than it says cannot be had twice: a copy is cut off
// rather than given what comes after what it has.
func TestCopyOfALiar(t *testing.T) {
	p := lend(t, 4, testnet.NewBody("bodybody"))
	first := p.next()
	second, err := p.copy()
	if err != nil {
		t.Fatal(err)
	}
	io.ReadFull(second, make([]byte, 2))
	if b, err := io.ReadAll(first); err != nil || string(b) != "bodybody" {
		t.Errorf("the first got %q, %v", b, err)
	}
	if b, err := io.ReadAll(second); err == nil {
		t.Errorf("a copy went on with %q", b)
	}
	p.finish()
	first.Close()
	if !p.closed {
		t.Error("the body is open")
	}
}

// A share may be closed while a Read is under way that brings more than can be
// kept: the body is closed all the same, whoever else had a copy.
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
			p := lend(t, 4, body)
			s := p.next()
			if tt.copies {
				if _, err := p.copy(); err != nil {
					t.Fatal(err)
				}
			}
			go s.Read(make([]byte, 8))
			synctest.Wait()
			s.Close()
			if tt.overFirst {
				p.finish()
			}
			to.Write([]byte("bodybody"))
			synctest.Wait()
			p.finish()
			if body.Closes() != 1 {
				t.Errorf("the body was closed %d times, want 1", body.Closes())
			}
		})
	}
}
