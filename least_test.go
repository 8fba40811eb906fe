package weir_test

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// least is what a chain does at least for each request, without any policy: the
// request that leaves carries what Settle finds, the account of its host is
// locked when it is granted and when it is answered, at a time read from the
// clock, and the answer's headers are looked through.
type least struct {
	base  http.RoundTripper
	epoch time.Time

	mu    sync.Mutex
	hosts map[string]*leastHost
}

type leastHost struct {
	under, said int
	took        time.Duration
}

// leastTrip is the context of a request, and its copy.
type leastTrip struct {
	context.Context
	r       http.Request
	granted time.Duration
}

type leastKey struct{}

func (t *leastTrip) Value(key any) any {
	if key == (leastKey{}) {
		return t
	}
	return t.Context.Value(key)
}

func (l *least) RoundTrip(r *http.Request) (*http.Response, error) {
	t := &leastTrip{Context: r.Context()}
	t.r = *r.WithContext(t)
	l.mu.Lock()
	h := l.hosts[r.URL.Host]
	t.granted = time.Since(l.epoch)
	h.under++
	l.mu.Unlock()
	resp, err := l.base.RoundTrip(&t.r)
	l.mu.Lock()
	defer l.mu.Unlock()
	h.under--
	h.took += time.Since(l.epoch) - t.granted
	if err != nil {
		return nil, err
	}
	for name := range resp.Header {
		if name == "X-Ratelimit-Remaining" {
			h.said++
		}
	}
	return resp, nil
}

func newLeast() *least {
	return &least{base: newFixed(), epoch: time.Now(), hosts: map[string]*leastHost{"api.example.com": {}}}
}
