package scenario

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/bench/rival"
)

// A server is a real one on loopback that can go away and come back under the
// same address.
type server struct {
	url     string
	handler http.Handler

	mu   sync.Mutex
	http *http.Server
}

func newServer(h http.Handler) (*server, error) {
	s := &server{handler: h}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.url = "http://" + l.Addr().String()
	s.serve(l)
	return s, nil
}

func (s *server) serve(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.http = &http.Server{Handler: s.handler, ReadHeaderTimeout: time.Minute}
	go s.http.Serve(l) // returns when stop closes it
}

// stop refuses connections from now on and breaks those there are.
func (s *server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.http.Close()
}

// restart listens again.
func (s *server) restart() error {
	for try := 0; ; try++ {
		l, err := net.Listen("tcp", s.url[len("http://"):])
		if err == nil {
			s.serve(l)
			return nil
		}
		if try == 3000 {
			return errors.Join(errors.New("scenario: the address was taken"), err)
		}
		time.Sleep(time.Millisecond)
	}
}

// counted counts the attempts that reach the wire and when.
type counted struct {
	base  http.RoundTripper
	begin time.Time
	n     atomic.Int64
	mu    sync.Mutex
	at    []time.Duration
	keep  bool
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	if c.keep {
		d := time.Since(c.begin)
		c.mu.Lock()
		c.at = append(c.at, d)
		c.mu.Unlock()
	}
	return c.base.RoundTrip(r)
}

// each runs f for every rival at the same time: they spend their time waiting,
// not computing. It returns the first error.
func each(rivals []rival.Rival, f func(i int, r rival.Rival) error) error {
	errs := make([]error, len(rivals))
	var wg sync.WaitGroup
	for i, r := range rivals {
		wg.Go(func() { errs[i] = f(i, r) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// apart is each with a moment between one start and the next, so that nobody's
// first burst meets another's.
func apart(step time.Duration, rivals []rival.Rival, f func(i int, r rival.Rival) error) error {
	return each(rivals, func(i int, r rival.Rival) error {
		time.Sleep(time.Duration(i) * step)
		return f(i, r)
	})
}

// steady makes so many calls per second for as long as d, whether or not
// earlier ones have come back, and waits for all of them.
func steady(ctx context.Context, perSecond int, d time.Duration, call func(at time.Duration)) {
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range int(float64(perSecond) * d.Seconds()) {
		at := time.Duration(i) * time.Second / time.Duration(perSecond)
		select {
		case <-time.After(time.Until(begin.Add(at))):
		case <-ctx.Done():
			wg.Wait()
			return
		}
		wg.Go(func() { call(at) })
	}
	wg.Wait()
}

// parts runs the parts of a scenario one after the other if there is time, and
// all at once if not.
func parts(s Size, n int, f func(i int) error) error {
	if s != Full {
		return each(make([]rival.Rival, n), func(i int, _ rival.Rival) error { return f(i) })
	}
	for i := range n {
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}
