package population

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weirhttp/weir/bench/wait"
)

// A world is the case's server and the network before it, as a RoundTripper.
// It speaks HTTP and knows nothing of who calls.
type world struct {
	c     *Case
	begin time.Time
	gates []*gate

	mu       sync.Mutex
	refused  int
	arrivals []Arrival
	silence
}

// An Arrival is a request that the server saw.
type Arrival struct {
	At time.Duration
	OK bool
}

func newWorld(c *Case) *world {
	w := &world{c: c, begin: time.Now()}
	for _, g := range c.gates() {
		w.gates = append(w.gates, &gate{Limiter: g})
	}
	return w
}

func (w *world) now() time.Duration { return time.Since(w.begin) }

// A call is what the context of a request knows of it: the call's number, its
// route, and how often it was sent.
type call struct {
	number, route, attempts int
}

type callKey struct{}

// request is that of a call. One path is one kind of request.
func request(ctx context.Context, c *call) *http.Request {
	ctx = context.WithValue(ctx, callKey{}, c)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://api.example/r%d/items", c.route), nil)
	if err != nil {
		panic(err)
	}
	return r
}

func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	ctx := r.Context()
	k := ctx.Value(callKey{}).(*call)
	w.mu.Lock()
	up, down := w.c.way(k.number, k.attempts)
	k.attempts++
	w.send(w.now())
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.wait(w.now())
		w.mu.Unlock()
	}()
	if err := wait.For(ctx, up); err != nil {
		return nil, err
	}
	resp, took := w.decide(k, r)
	if err := wait.For(ctx, took); err != nil {
		return nil, err
	}
	if err := wait.For(ctx, down); err != nil {
		return nil, err
	}
	return resp, nil
}

// decide is what happens when a request arrives.
func (w *world) decide(k *call, r *http.Request) (*http.Response, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g, now := w.gates[k.route], w.now()
	took, ok := g.Take(now)
	w.arrivals = append(w.arrivals, Arrival{now, ok})
	a := &answer{State: g.State(now), refused: !ok, now: time.Now().Add(w.c.Skew), header: http.Header{}}
	status := http.StatusOK
	if ok {
		took += w.c.work(k.number)
	} else {
		w.refused++
		status = w.c.Dialect.status
	}
	if !w.c.NoDate { // servers write it when they begin to answer; what they say of the quota is of the arrival
		a.header.Set("Date", a.now.Add(took).UTC().Format(http.TimeFormat))
	}
	w.heard(now, now+w.c.speak(a))
	w.room(now, w.gates)
	return &http.Response{Status: fmt.Sprint(status, " ", http.StatusText(status)), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Request: r, ContentLength: int64(len(a.body)), Body: io.NopCloser(strings.NewReader(a.body))}, took
}

// speak has the answer say what this server says, and returns the wait that
// it states.
func (c *Case) speak(a *answer) time.Duration {
	if !a.refused && !(c.Dialect.states && c.Everywhere) {
		return 0
	}
	stated := c.Dialect.say(a)
	if a.refused && c.Dialect.states && c.Hinted {
		stated = max(stated, a.retryAfter(ceil(a.Next)))
	}
	return stated
}

// silence finds the longest time in which callers waited and the server had
// room, while nothing that it had said held them back. Its methods are called
// under the world's lock.
type silence struct {
	waiting int           // callers with nothing on its way
	since   time.Duration // that somebody has waited
	sent    time.Duration // the last request
	free    time.Duration // since when the server has had room
	held    time.Duration // until when its word holds
	longest time.Duration
}

// wait is told that a caller begins to wait: with a new call, or with what it
// was answered.
func (s *silence) wait(at time.Duration) {
	if s.waiting++; s.waiting == 1 {
		s.since = at
	}
}

// send is told that a caller sends.
func (s *silence) send(at time.Duration) {
	s.leave(at)
	s.sent = at
}

// leave is told that a call is over.
func (s *silence) leave(at time.Duration) {
	s.longest = max(s.longest, at-max(s.since, s.sent, s.free, s.held))
	s.waiting--
}

func (s *silence) heard(at, until time.Duration) {
	if until > at {
		s.held = max(s.held, until)
	}
}

// room asks the gates when they next accept something.
func (s *silence) room(at time.Duration, gates []*gate) {
	s.free = 0
	for _, g := range gates {
		s.free = max(s.free, g.Ready(at))
	}
}
