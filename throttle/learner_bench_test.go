package throttle

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// These measure single steps of a request, which a call through the surface would hide.

// BenchmarkGrantLearned grants a Transport's request that draws on two rates, on
// a limit that the server states, and on what is learned of every host, and
// gives the places back.
func BenchmarkGrantLearned(b *testing.B) {
	tr := newTransport(b, testnet.Func(func(r *http.Request) (*http.Response, error) {
		return testnet.Answer(r, 200, http.Header{
			"X-Ratelimit-Limit": {"2000000000"}, "X-Ratelimit-Remaining": {"2000000000"}, "X-Ratelimit-Reset": {"86400"},
		}, nil), nil
	}), Config{Default: MustParseBudget("1000000000/s, 2000000000/m burst 2000000000")})
	mustGet(b, tr, "http://a/x")
	r, err := http.NewRequest(http.MethodGet, "http://a/x", nil)
	if err != nil {
		b.Fatal(err)
	}
	rec := tr.Stats().Hosts[0]
	if len(rec.Learned) != 1 || len(rec.Budgets) != 2 {
		b.Fatalf("%d limits are learned beside %d of its own", len(rec.Learned), len(rec.Budgets))
	}
	home := homeOf(tr, "a")
	e := home.lock()
	e.Unlock()
	q := &ask{Request: queue.Request{Held: true}, r: r}
	q.to(&home.scope)
	e.Lock()
	q.learn, _ = tr.endpointOf(e.Now(), q, home, &home.scope, "", false)
	e.Unlock()
	var room [8]queue.Need
	b.ReportAllocs()
	for b.Loop() {
		e.Lock()
		now := e.Now()
		needs := q.scope.needs(room[:0], q)
		if !e.Enter(now, needs, &q.Request) {
			b.Fatal("refused")
		}
		e.Answered(now, &queue.Permit{Needs: needs, Granted: now}, true)
		e.Unlock()
	}
}

// BenchmarkNewLimits is an answer that names a limit that nobody has heard of,
// with 10000 waiting for its host.
func BenchmarkNewLimits(b *testing.B) {
	const waiting = 10000
	under := make(chan *attempt, 1)
	gone := make(chan struct{})
	var queued sync.WaitGroup
	queued.Add(waiting)
	tr := newTransport(b, newBase(func(r *http.Request) (*http.Response, error) {
		under <- trip.From(r.Context()).Grant.(*attempt)
		<-gone
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}, nil
	}), Config{Default: MustParseBudget("1/h"), MaxQueue: waiting, OnWait: func(w Wait) {
		if !w.Over {
			queued.Done()
		}
	}})
	ctx, cancel := context.WithCancel(WithMaxWait(context.Background(), 100000*time.Hour))
	var wg sync.WaitGroup
	for range waiting + 1 {
		wg.Go(func() {
			r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://a/x", nil)
			tr.RoundTrip(r)
		})
	}
	p := <-under
	queued.Wait()
	limit := headers.Limit{Quota: headers.Opt[float64]{Value: 100, Known: true}, Remaining: headers.Opt[float64]{Value: 50, Known: true},
		Reset: headers.Opt[time.Duration]{Value: time.Minute, Known: true}, ResetMeans: headers.Boundary}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		limit.Name = strconv.Itoa(i)
		p.heard(tr.domains.Read(), http.StatusOK, &headers.Signal{Limits: []headers.Limit{limit}}, true)
	}
	cancel()
	close(gone)
	wg.Wait()
}
