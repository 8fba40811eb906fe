package testnet

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Stub is a base that records when requests arrive. NewStub makes one.
type Stub struct {
	Mu      sync.Mutex // guards Arrived
	Start   time.Time  // when the Stub was made
	Arrived []Arrival
	Answer  func(*http.Request) (*http.Response, error) // called without Mu; nil: 200 without a body
}

// Arrival is one request that arrived.
type Arrival struct {
	At   time.Duration // since Stub.Start
	Host string        // of the URL
	Path string        // of the URL
}

// NewStub returns a Stub whose Answer is answer.
func NewStub(answer func(*http.Request) (*http.Response, error)) *Stub {
	return &Stub{Start: time.Now(), Answer: answer}
}

// RoundTrip records r and answers it.
func (b *Stub) RoundTrip(r *http.Request) (*http.Response, error) {
	b.Mu.Lock()
	b.Arrived = append(b.Arrived, Arrival{time.Since(b.Start), r.URL.Host, r.URL.Path})
	b.Mu.Unlock()
	if b.Answer != nil {
		return b.Answer(r)
	}
	return Answer(r, 200, nil, nil), nil
}

// Times returns when each request arrived, since Start.
func (b *Stub) Times() (at []time.Duration) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	for _, a := range b.Arrived {
		at = append(at, a.At)
	}
	return at
}

// Slow returns a Stub's Answer: 200 after d, with a body that must be read or closed.
func Slow(d time.Duration) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		if err := Wait(r.Context(), d); err != nil {
			return nil, err
		}
		return Answer(r, 200, nil, NewBody("body")), nil
	}
}

// SameTimes fails t unless each time of got is that of want, or a microsecond
// more at most.
func SameTimes(t *testing.T, got []time.Duration, want ...time.Duration) {
	t.Helper()
	ok := len(got) == len(want)
	for i := 0; ok && i < len(got); i++ {
		ok = got[i] >= want[i] && got[i] <= want[i]+time.Microsecond
	}
	if !ok {
		t.Errorf("arrived at %v, want %v", got, want)
	}
}

// Get sends a GET of url through rt.
func Get(t testing.TB, ctx context.Context, rt http.RoundTripper, url string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return rt.RoundTrip(r)
}

// MustGet is Get with t's context. It ends t if there is no answer.
func MustGet(t testing.TB, rt http.RoundTripper, url string) *http.Response {
	t.Helper()
	resp, err := Get(t, t.Context(), rt, url)
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	return resp
}
