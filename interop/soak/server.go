package main

import (
	"context"
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

	"github.com/weirhttp/weir/interop/real"
)

// The kinds of hosts, by number.
const (
	hosts     = 200
	capped    = 80  // below: weir has a budget of limit per window for them
	stating   = 120 // below: a fixed window, stated
	silent    = 150 // below: a fixed window that only says 429
	flaky     = 170 // below: some answers fail, in every way
	dying     = 180 // below: away half of the time
	narrow    = 190 // below: weir may have so many requests in flight
	window    = 2 * time.Second
	limit     = 20 // per window, and its lower value while budgets change is half
	inFlight  = 4
	tolerance = 100 * time.Millisecond // of a busy machine, between grant and arrival
)

func hostName(i int) string { return fmt.Sprintf("h%d.soak.test", i) }

// site is one host as the server knows it.
type site struct {
	mu       sync.Mutex
	arrivals []arrival // the last limit ones
	seen     map[string]time.Time
	left     int // of a fixed window
	ends     time.Time
	running  int
}

type arrival struct {
	at  time.Time
	lag time.Duration // since the attempt left weir
}

// server answers for all hosts and judges what arrives.
type server struct {
	http     *http.Server
	addr     string
	sites    [hosts]site
	fleet    site // the host that is shared through Redis
	shared   recent
	conns    atomic.Int64
	requests atomic.Int64
	refused  atomic.Int64
	stalls   real.Stalls // of this process, for which nobody is to blame
	problems problems
}

// problems keeps the first few of what did not hold.
type problems struct {
	mu   sync.Mutex
	all  []string
	more int
}

func (p *problems) add(format string, a ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) < 20 {
		p.all = append(p.all, fmt.Sprintf(format, a...))
	} else {
		p.more++
	}
}

// newServer starts one that finds operations in books.
func newServer(books *ledger) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{addr: l.Addr().String()}
	inBooks := func(ctx context.Context, _ net.Conn) context.Context { return context.WithValue(ctx, key{}, books) }
	s.http = &http.Server{Handler: s, ConnContext: inBooks, ConnState: func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.conns.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.conns.Add(-1)
		}
	}}
	go s.http.Serve(l)
	return s, nil
}

// ServeHTTP counts the attempt and answers as its host does.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // not all of it came: nothing is done
	}
	name, _, _ := strings.Cut(r.Host, ".")
	if name == "fleet" {
		// While Redis is away, or slow for one member alone, one spends its
		// share beside the other, and what Redis forgets is healed as far as
		// the members remember.
		s.arrive(&s.fleet, "fleet", r, limit+limit/2)
		s.tally()
		answer(w, http.StatusOK, 200)
		return
	}
	i, err := strconv.Atoi(strings.TrimPrefix(name, "h"))
	if err != nil || i < 0 || i >= hosts {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	s.serve(w, r, i)
}

func (s *server) serve(w http.ResponseWriter, r *http.Request, i int) {
	h := &s.sites[i]
	if i >= capped && i < silent {
		s.fixed(w, r, h, i < stating)
		return
	}
	process(r)
	switch {
	case i < capped:
		s.arrive(h, r.Host, r, limit)
		answer(w, http.StatusOK, 300)
	case i < flaky:
		s.fail(w)
	case i < dying:
		if time.Now().Unix()/10%2 == int64(i%2) {
			panic(http.ErrAbortHandler)
		}
		answer(w, http.StatusOK, 100)
	case i < narrow:
		s.narrow(w, h, r)
	default:
		answer(w, http.StatusOK, 100<<10)
	}
}

func answer(w http.ResponseWriter, status, size int) {
	w.WriteHeader(status)
	io.WriteString(w, strings.Repeat("x", size))
}

// recent counts how often the shared host had more than its limit in a window.
type recent struct {
	mu       sync.Mutex
	arrivals []time.Time
	all      int
	over     int
	most     int
	without  int       // how many do without Redis: each member, and who restarts it
	quiet    time.Time // nobody does since then
	steady   int       // of over, those for which neither a restart nor a stall can be blamed
}

// away notes that one more does without Redis, and back that one no longer does.
func (c *recent) away() { c.count(1) }
func (c *recent) back() { c.count(-1) }

func (c *recent) count(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.without += n
	c.quiet = time.Now()
}

func (s *server) tally() {
	now := time.Now()
	c := &s.shared
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.arrivals) > 0 && now.Sub(c.arrivals[0]) >= window-tolerance {
		c.arrivals = c.arrivals[1:]
	}
	c.arrivals = append(c.arrivals, now)
	c.all++
	if n := len(c.arrivals); n > limit {
		c.over++
		c.most = max(c.most, n)
		if c.without == 0 && now.Sub(c.quiet) > 2*window && s.stalls.Since(now.Add(-2*window)) < tolerance {
			c.steady++
		}
	}
}

// process is what must not be done twice.
func process(r *http.Request) {
	if n := operation(r); n != nil {
		n.Add(1)
	}
}

// arrive holds that this arrival and the one most before it are a window
// apart. An attempt that net/http repeats by itself counts once: weir sees one.
// A unit is charged until a window after its answer, or 5 % of one after its
// grant if that is earlier, so lag beyond that is the machine's. So is what was
// lost in a stall, which may lie between a grant and the stamp.
func (s *server) arrive(h *site, name string, r *http.Request, most int) {
	attempt, sent := stamp(r)
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen == nil {
		h.seen = make(map[string]time.Time)
	}
	if _, again := h.seen[attempt]; again {
		return
	}
	for id, at := range h.seen { // there are at most a few windows' worth
		if now.Sub(at) > time.Minute {
			delete(h.seen, id)
		}
	}
	h.seen[attempt] = now
	if len(h.arrivals) == most {
		first := h.arrivals[0]
		h.arrivals = h.arrivals[1:]
		if gap, need := now.Sub(first.at), window-tolerance-max(0, first.lag-window/20)-s.stalls.Since(first.at.Add(-first.lag-window)); gap < need {
			s.problems.add("%s: %d requests within %v; the first came %v after it was let go", name, most+1, gap, first.lag)
		}
	}
	h.arrivals = append(h.arrivals, arrival{now, now.Sub(sent)})
}

func (s *server) fixed(w http.ResponseWriter, r *http.Request, h *site, states bool) {
	h.mu.Lock()
	if now := time.Now(); !now.Before(h.ends) {
		h.left, h.ends = limit, now.Add(window)
	}
	ok := h.left > 0
	if ok {
		h.left--
	}
	left, reset := h.left, time.Until(h.ends)
	h.mu.Unlock()
	if states {
		w.Header().Set("RateLimit-Policy", fmt.Sprintf(`"all";q=%d;w=%d`, limit, int(window.Seconds())))
		w.Header().Set("RateLimit", fmt.Sprintf(`"all";r=%d;t=%d`, left, int(reset.Seconds())+1))
	}
	if !ok {
		s.refused.Add(1)
		answer(w, http.StatusTooManyRequests, 50)
		return
	}
	process(r)
	answer(w, http.StatusOK, 300)
}

// fail is an answer of every bad kind.
func (s *server) fail(w http.ResponseWriter) {
	switch n := rand.IntN(100); {
	case n < 10:
		answer(w, http.StatusServiceUnavailable, 100)
	case n < 15:
		answer(w, http.StatusInternalServerError, 200<<10)
	case n < 20:
		panic(http.ErrAbortHandler)
	case n < 23: // cut
		w.Header().Set("Content-Length", "5000")
		answer(w, http.StatusOK, 1000)
		panic(http.ErrAbortHandler)
	case n < 26:
		time.Sleep(300 * time.Millisecond)
		answer(w, http.StatusOK, 100)
	case n < 29:
		for range 5 {
			io.WriteString(w, "drop")
			w.(http.Flusher).Flush()
			time.Sleep(30 * time.Millisecond)
		}
	default:
		answer(w, http.StatusOK, 500)
	}
}

func (s *server) narrow(w http.ResponseWriter, h *site, r *http.Request) {
	h.mu.Lock()
	h.running++
	if h.running > inFlight {
		s.problems.add("%s: %d requests at a time, %d may be", r.Host, h.running, inFlight)
	}
	h.mu.Unlock()
	time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	h.mu.Lock() // before the answer is complete, after which another may come
	h.running--
	h.mu.Unlock()
	answer(w, http.StatusOK, 100)
}
