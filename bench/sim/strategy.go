package sim

import (
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/bench/wait"
)

// A client makes one call and reports whether it succeeded in the end.
type client interface {
	call(ctx context.Context) bool
}

// A strategy makes clients of a server. All clients of one process share one.
type strategy struct {
	name string
	make func(s *server, seed uint64) client
}

func request(ctx context.Context) *http.Request {
	url := "http://api.example/v1/items"
	if shard, ok := ctx.Value(shardKey{}).(int); ok {
		url += "?shard=" + strconv.Itoa(shard)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		panic(err)
	}
	return r
}

// try makes one attempt.
func try(ctx context.Context, s *server, timeout time.Duration) (status int) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	resp, err := s.RoundTrip(request(ctx))
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

func again(status int) bool { return status == 0 || status == 429 || status >= 500 }

// dice are random numbers for many goroutines.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newDice(seed uint64) *dice { return &dice{r: rand.New(rand.NewPCG(seed, 99))} }

func (d *dice) float() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.Float64()
}

// backoff is full jitter.
func (d *dice) backoff(base, most time.Duration, n int) time.Duration {
	return time.Duration(d.float() * math.Min(float64(most), float64(base)*math.Pow(2, float64(n))))
}

// naive retries each request by itself, with exponential backoff and full
// jitter, as often as attempts allows; zero: until it succeeds.
type naive struct {
	s        *server
	d        *dice
	attempts int
	timeout  time.Duration
	base     time.Duration
}

func (c *naive) call(ctx context.Context) bool {
	for n := 0; c.attempts == 0 || n < c.attempts; n++ {
		if n > 0 && wait.For(ctx, c.d.backoff(c.base, 20*time.Second, n-1)) != nil {
			return false
		}
		if status := try(ctx, c.s, c.timeout); !again(status) {
			return status == 200
		}
	}
	return false
}

func naiveRetry(attempts int, timeout, base time.Duration) strategy {
	return strategy{"naive retry", func(s *server, seed uint64) client {
		return &naive{s: s, d: newDice(seed), attempts: attempts, timeout: timeout, base: base}
	}}
}

// limited waits for a limiter that was told the right rate before each attempt.
type limited struct {
	naive
	l *rate.Limiter
}

func (c *limited) call(ctx context.Context) bool {
	for n := 0; ; n++ {
		if n > 0 && wait.For(ctx, c.d.backoff(time.Second, 20*time.Second, n-1)) != nil {
			return false
		}
		if c.l.Wait(ctx) != nil {
			return false
		}
		if status := try(ctx, c.s, 0); !again(status) {
			return status == 200
		}
	}
}

func rightRate(r float64, burst int) strategy {
	return strategy{"right rate", func(s *server, seed uint64) client {
		return &limited{naive{s: s, d: newDice(seed)}, rate.NewLimiter(rate.Limit(r), burst)}
	}}
}

// weirClient is weir as a program uses it.
type weirClient struct{ t *weir.Transport }

func (c *weirClient) call(ctx context.Context) bool {
	resp, err := c.t.RoundTrip(request(ctx))
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == 200
}

func weirWith(c weir.Config) strategy {
	return strategy{"weir", func(s *server, _ uint64) client {
		t, err := weir.New(s, c)
		if err != nil {
			panic(err)
		}
		return &weirClient{t}
	}}
}

// patient is weir told nothing, for jobs that may wait.
func patient() weir.Config {
	var c weir.Config
	c.Throttle.MaxWait = 2 * time.Hour
	c.Retry.MaxDelay = 2 * time.Hour
	return c
}
