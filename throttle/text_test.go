package throttle

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// Tests in this file were written for changes of the code that no other test
// noticed; docs/testing-weir.md says how they are found.

// A number beyond an int is refused as such, not taken for zero.
func TestParseBudgetHugeNumbers(t *testing.T) {
	for _, text := range []string{"99999999999999999999/s", "5/99999999999999999999s", "99999999999999999999 in flight"} {
		if b, err := ParseBudget(text); err == nil || !strings.Contains(err.Error(), "a smaller number") {
			t.Errorf("%q: %v, %v", text, b, err)
		}
	}
}

// A pool's name needs quotes only if it is no word.
func TestPoolNamesAsWords(t *testing.T) {
	for name, want := range map[string]string{
		"AZ": "unlimited, pool AZ", "az-09._": "unlimited, pool az-09._",
		"9a": `unlimited, pool "9a"`, "a b": `unlimited, pool "a b"`, "a[": `unlimited, pool "a["`,
	} {
		if got := (Budget{Pool: name}).String(); got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}

// Waits are shown rounded up: who waits that long is not too early.
func TestRoundIsNeverShorter(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		time.Minute:                      time.Minute,
		time.Minute + 1:                  time.Minute + time.Second,
		time.Second + 1:                  time.Second + time.Millisecond,
		time.Millisecond:                 time.Millisecond,
		999 * time.Nanosecond:            999 * time.Nanosecond,
		unknown:                          unknown.Truncate(time.Second),
		59*time.Second + time.Nanosecond: 59*time.Second + time.Millisecond,
	} {
		if got := round(d); got != want {
			t.Errorf("%v: got %v, want %v", d, got, want)
		}
	}
}

type badCloser struct{ io.Reader }

var errClose = errors.New("close failed")

func (badCloser) Close() error { return errClose }

// What the base's body says when it is closed comes out.
func TestErrorOfCloseComesOut(t *testing.T) {
	base := testnet.Func(func(r *http.Request) (*http.Response, error) {
		return testnet.Answer(r, 200, nil, badCloser{strings.NewReader("x")}), nil
	})
	rt := newTransport(t, base, Config{Default: Budget{InFlight: 1}})
	for range 2 { // the place comes back all the same
		if err := mustRoundTrip(t, rt).Body.Close(); err != errClose {
			t.Errorf("got %v, want %v", err, errClose)
		}
	}
}

func mustRoundTrip(t *testing.T, rt http.RoundTripper) *http.Response {
	t.Helper()
	r, err := http.NewRequest("GET", "http://a.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rt.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}
