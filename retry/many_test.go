package retry_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// stormServer fails at random and remembers each request by its id.
type stormServer struct {
	faultServer
	rng  *rand.Rand
	done map[string]int // how often each id had its effect
}

// storm picks what happens to one request: most go well.
func (s *stormServer) storm(r *http.Request) (text string, hang time.Duration, keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.Header.Get("X-Id")
	s.received++
	n := s.rng.IntN(100)
	if n >= 20 {
		s.done[id]++
	}
	good := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(id), id)
	switch {
	case n < 5:
		return "", 0, false // breaks off, unprocessed
	case n < 10:
		return "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 5\r\n\r\nsorry", 0, true
	case n < 15:
		return "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 9\r\n\r\nso", 0, false // cut short
	case n < 18:
		return "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 5\r\n\r\nsorry", 0, true
	case n < 20:
		return "", time.Hour, false // hangs
	case n < 25:
		return "", 0, false // breaks off, processed
	case n < 28:
		return "HTTP/1.1 500 Oops\r\nContent-Length: 5\r\n\r\nsorry", 0, true
	case n < 40:
		return good, 50 * time.Millisecond, true
	}
	return good, 0, true
}

func (s *stormServer) run() { s.n.Each(&s.wg, s.connection) }

func (s *stormServer) connection(c net.Conn) {
	for br := bufio.NewReader(c); ; {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		text, hang, keep := s.storm(r)
		if hang == time.Hour {
			stall(c)
			return
		}
		time.Sleep(hang)
		io.WriteString(c, text)
		if !keep {
			return
		}
	}
}

// TestTenThousandRequestsGetTheirOwnAnswers sends 10000 requests through a server that fails at random:
// every answer belongs to its request, no POST has its effect twice, and no
// connection is left behind; nor is a goroutine, or the bubble would not end.
func TestTenThousandRequestsGetTheirOwnAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stormServer{faultServer: faultServer{n: testnet.New()}, rng: rand.New(rand.NewPCG(1, 2)), done: make(map[string]int)}
		s.wg.Go(s.run)
		base := &http.Transport{DialContext: s.n.DialContext, MaxIdleConnsPerHost: 64}
		rt := newTransport(t, base, retry.Config{AttemptTimeout: 2 * time.Second, Allowance: retry.Allowance{Disable: true}})
		const workers, each = 50, 200
		s.flood(t, rt, workers, each)
		if st := rt.Stats(); st.Attempts < workers*each || st.Attempts > int64(s.received) { // net/http repeats some by itself
			t.Errorf("the server received %d requests, counted %d", s.received, st.Attempts)
		}
		rt.CloseIdleConnections()
		s.n.Close()
		s.wg.Wait()
		synctest.Wait()
		if open := s.n.Open(); open != 0 {
			t.Errorf("%d connections are left", open)
		}
	})
}

// flood sends requests from so many workers, each of them so many, and checks
// what they got.
func (s *stormServer) flood(t *testing.T, rt http.RoundTripper, workers, each int) {
	var mu sync.Mutex
	good, bad := make(map[string]int), make(map[string]bool)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				id := fmt.Sprintf("%d-%d", w, i)
				ok := s.one(t, rt, id, i)
				mu.Lock()
				if ok {
					good[id]++
				} else {
					bad[id] = true
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	s.check(t, good, bad)
	if len(good)+len(bad) != workers*each || len(good) < workers*each*8/10 {
		t.Errorf("%d good, %d bad", len(good), len(bad))
	}
}

// check compares what callers got with what the server did.
func (s *stormServer) check(t *testing.T, good map[string]int, bad map[string]bool) {
	for id, n := range s.done {
		if strings.HasSuffix(id, "1") && n > 1 { // the POSTs, see one
			t.Errorf("POST %s had its effect %d times", id, n)
		}
	}
	for id := range good {
		if s.done[id] == 0 {
			t.Errorf("%s has an answer and was never processed", id)
		}
	}
}

// one sends the request id and reports whether it got its own answer.
func (s *stormServer) one(t *testing.T, rt http.RoundTripper, id string, i int) bool {
	method, body := "GET", ""
	switch i % 10 {
	case 1:
		method, body = "POST", "body"
	case 2:
		method, body = "PUT", "body"
	}
	r := request(t, method, "http://a.example/", body)
	r.Header.Set("X-Id", id)
	resp, err := rt.RoundTrip(r)
	if err != nil {
		if resp != nil {
			t.Errorf("%s: both a response and %v", id, err)
		}
		return false
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if resp.StatusCode != 200 || err != nil {
		return false
	}
	if string(b) != id {
		t.Errorf("%s got the answer of %q", id, b)
	}
	return true
}

// The same over HTTP/2, where all requests share a connection.
func TestTenThousandRequestsOverOneConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stormServer{rng: rand.New(rand.NewPCG(3, 4)), done: make(map[string]int)}
		base, n, stop := testnet.Server(t, http.HandlerFunc(s.serveHTTP), true)
		rt := newTransport(t, base, retry.Config{AttemptTimeout: 2 * time.Second, Allowance: retry.Allowance{Disable: true}})
		const workers, each = 50, 40
		s.flood(t, rt, workers, each)
		rt.CloseIdleConnections()
		stop()
		synctest.Wait()
		if open := n.Open(); open != 0 {
			t.Errorf("%d connections are left", open)
		}
	})
}

func (s *stormServer) serveHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	id := r.Header.Get("X-Id")
	s.mu.Lock()
	n := s.rng.IntN(100)
	if n >= 20 {
		s.done[id]++
	}
	s.mu.Unlock()
	switch {
	case n < 5, n >= 95:
		panic(http.ErrAbortHandler)
	case n < 10:
		w.WriteHeader(http.StatusTooManyRequests)
	case n < 15:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, "sorry")
	case n < 17:
		quietly(r)
	case n < 20:
		w.WriteHeader(http.StatusBadGateway)
	default:
		io.WriteString(w, id)
	}
}
