package breaker_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weirhttp/weir/breaker"
)

// nothing is a base that costs nothing.
type nothing struct{ resp http.Response }

func (n *nothing) RoundTrip(*http.Request) (*http.Response, error) { return &n.resp, nil }

func happy() (bare, with http.RoundTripper, r *http.Request) {
	cs, err := breaker.NewCircuits(breaker.Config{})
	if err != nil {
		panic(err)
	}
	bare = &nothing{http.Response{StatusCode: 200, Body: http.NoBody}}
	r = httptest.NewRequest("GET", "http://api.example.com/v1/things", nil)
	r.Body = nil
	return bare, cs.Door(cs.Meter(bare)), r
}

func BenchmarkDoorAndMeter(b *testing.B) {
	_, rt, r := happy()
	b.ReportAllocs()
	for b.Loop() {
		rt.RoundTrip(r)
	}
}

// BenchmarkRefused is the price of a refusal.
func BenchmarkRefused(b *testing.B) {
	cs, err := breaker.NewCircuits(breaker.Config{OpenFor: time.Hour, MaxOpenFor: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	h := &host{answer: down}
	rt := cs.Door(cs.Meter(h))
	for range 5 {
		get(rt, site)
	}
	r := httptest.NewRequest("GET", site, nil)
	b.ReportAllocs()
	for b.Loop() {
		rt.RoundTrip(r)
	}
}

// BenchmarkCounted is the price of a good call to a host that has failed not
// long ago, so that calls are counted.
func BenchmarkCounted(b *testing.B) {
	cs, err := breaker.NewCircuits(breaker.Config{Window: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	bare, _, r := happy()
	bare.(*nothing).resp.StatusCode = 500
	rt := cs.Door(cs.Meter(bare))
	rt.RoundTrip(r)
	bare.(*nothing).resp.StatusCode = 200
	b.ReportAllocs()
	for b.Loop() {
		rt.RoundTrip(r)
	}
}

// TestAllocations: Door and Meter together take one allocation, the trip,
// which a chain has anyway, and one more for a request with a body.
func TestAllocations(t *testing.T) {
	_, rt, r := happy()
	if n := testing.AllocsPerRun(1000, func() { rt.RoundTrip(r) }); n > 1 {
		t.Errorf("%v allocations without a body", n)
	}
	r.Body = struct{ io.ReadCloser }{}
	if n := testing.AllocsPerRun(1000, func() { rt.RoundTrip(r) }); n > 2 {
		t.Errorf("%v allocations with a body", n)
	}
}
