package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// wire is the base: it reaches the server under any name, stamps attempts and
// counts them and their sockets.
type wire struct {
	*http.Transport
	attempts atomic.Int64
	perHost  [hosts]atomic.Int64
	sockets  atomic.Int64
}

func newWire(addr string) *wire {
	w := new(wire)
	var d net.Dialer
	w.Transport = &http.Transport{MaxIdleConns: 200, IdleConnTimeout: time.Second, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		c, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		w.sockets.Add(1)
		return &socket{Conn: c, open: &w.sockets}, nil
	}}
	return w
}

type socket struct {
	net.Conn
	once sync.Once
	open *atomic.Int64
}

func (s *socket) Close() error {
	s.once.Do(func() { s.open.Add(-1) })
	return s.Conn.Close()
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	n := w.attempts.Add(1)
	if i, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(r.URL.Host, "h"), ".soak.test")); err == nil {
		w.perHost[i].Add(1)
	}
	r2 := r.WithContext(r.Context())
	r2.Header = r.Header.Clone()
	r2.Header.Set("Attempt", fmt.Sprintf("%p-%d", w, n))
	r2.Header.Set("Sent", strconv.FormatInt(time.Now().UnixNano(), 10))
	return w.Transport.RoundTrip(r2)
}

// stamp reads what RoundTrip wrote.
func stamp(r *http.Request) (attempt string, sent time.Time) {
	ns, _ := strconv.ParseInt(r.Header.Get("Sent"), 10, 64)
	return r.Header.Get("Attempt"), time.Unix(0, ns)
}

// ledger counts how often each of the last operations that are not idempotent
// was processed. The server finds them by the number in the request's header.
type ledger [1 << 14]atomic.Int64

// key finds the ledger in the context of the server's connections.
type key struct{}

func operation(r *http.Request) *atomic.Int64 {
	n, err := strconv.Atoi(r.Header.Get("Operation"))
	if err != nil {
		return nil
	}
	l := r.Context().Value(key{}).(*ledger)
	return &l[n%len(l)]
}

// load is the workload and what it has come to.
type load struct {
	weir     *weir.Transport
	seed     uint64
	ops      atomic.Int64
	ledger   *ledger
	calls    atomic.Int64
	answers  atomic.Int64
	failed   atomic.Int64
	problems *problems
	paused   sync.RWMutex // held for writing while nothing may run
}

// work makes calls until ctx ends.
func (l *load) work(ctx context.Context, n uint64) {
	dice := rand.New(rand.NewPCG(l.seed, n))
	for ctx.Err() == nil {
		l.paused.RLock()
		l.call(ctx, dice)
		l.paused.RUnlock()
	}
}

// pick prefers some hosts of each kind.
func pick(dice *rand.Rand) int {
	i := dice.IntN(hosts)
	switch dice.IntN(4) {
	case 0:
		i -= i % 40
	case 1:
		i -= i % 10
	}
	return i
}

func (l *load) call(parent context.Context, dice *rand.Rand) {
	ctx, cancel := context.WithTimeout(parent, time.Duration(5+dice.IntN(3000))*time.Millisecond)
	defer cancel()
	if dice.IntN(10) == 0 {
		ctx = throttle.WithPriority(ctx, 1)
	}
	i := pick(dice)
	// Who leaves early still occupies the server, so nobody does where the
	// server counts who is there.
	if i >= dying && i < narrow {
		ctx = context.WithoutCancel(ctx)
	}
	r, once := l.request(ctx, dice, i)
	l.calls.Add(1)
	resp, err := l.weir.RoundTrip(r)
	if err == nil {
		err = l.body(resp, dice)
	}
	if err == nil {
		l.answers.Add(1)
	} else if l.failed.Add(1); !typed(err) && parent.Err() == nil {
		l.problems.add("%s %s: %T: %v", r.Method, r.URL.Host, err, err)
	}
	if once != nil && once.Load() > 1 {
		l.problems.add("%s %s was processed %d times", r.Method, r.URL.Host, once.Load())
	}
}

// request is of any method; once counts how often one was processed that must
// not be twice.
func (l *load) request(ctx context.Context, dice *rand.Rand, host int) (r *http.Request, once *atomic.Int64) {
	method := []string{"GET", "GET", "GET", "GET", "PUT", "POST", "POST", "DELETE"}[dice.IntN(8)]
	var body io.Reader
	if method[0] == 'P' {
		body = strings.NewReader(strings.Repeat("b", dice.IntN(20000)))
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+hostName(host)+"/v1/"+strconv.Itoa(dice.IntN(50))+"?q=1", body)
	if err != nil {
		panic(err) // all of it is written above
	}
	if method == "POST" {
		n := int(l.ops.Add(1))
		once = &l.ledger[n%len(l.ledger)]
		once.Store(0)
		r.Header.Set("Operation", strconv.Itoa(n))
	}
	return r, once
}

// body is read whole, in part or not at all.
func (l *load) body(resp *http.Response, dice *rand.Rand) (err error) {
	switch dice.IntN(10) {
	case 0:
	case 1:
		_, err = io.CopyN(io.Discard, resp.Body, 50)
		if errors.Is(err, io.EOF) {
			err = nil
		}
	default:
		_, err = io.Copy(io.Discard, resp.Body)
	}
	resp.Body.Close()
	return err
}

// typed reports whether a program could tell what err is.
func typed(err error) bool {
	var (
		t *throttle.Error
		b *breaker.Error
		r *retry.Error
		o *retry.TimeoutError
		n net.Error
	)
	return errors.As(err, &t) || errors.As(err, &b) || errors.As(err, &r) || errors.As(err, &o) || errors.As(err, &n) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}
