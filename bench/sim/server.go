package sim

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirhttp/weir/bench/wait"
)

// A dialect is how a server tells its quota.
type dialect int

const (
	silent     dialect = iota // 429 and nothing else
	retryAfter                // Retry-After in whole seconds, on 429
	ietf                      // RateLimit and RateLimit-Policy fields, and Retry-After
	legacy                    // X-RateLimit-Limit, -Remaining, -Reset with Unix time, and Retry-After
	untilFull                 // X-RateLimit-*, Reset is seconds until all is there again
	trio                      // RateLimit-Limit, -Remaining, -Reset of the older IETF drafts, in seconds
	named                     // x-ratelimit-limit-requests and so on, Reset is a duration as Go writes it, until all is there again
	stamped                   // anthropic-ratelimit-requests-limit and so on, Reset is an RFC 3339 time at which all is there again
)

func (d dialect) String() string {
	return [...]string{"silent", "Retry-After", "IETF headers", "X-RateLimit", "X-RateLimit until full",
		"RateLimit trio", "x-ratelimit-requests", "anthropic-ratelimit"}[d]
}

// A server is an API behind a network: requests take a random time to get
// there and back.
type server struct {
	quota   quota // nil: none
	dialect dialect
	tell    string                                   // instead of the dialect's Retry-After
	status  int                                      // of refusals; zero: 429
	work    func(s *server, r *http.Request) outcome // how long the work takes, and how it ends; called under the lock. nil: at once

	mu       sync.Mutex
	random   *rand.Rand
	oneWay   [2]time.Duration // shortest and longest
	begin    time.Time
	good     int
	refused  int
	failed   int
	arrivals int
	log      []moment // of arrivals, if keep
	keep     bool
}

// outcome is what the work on a request comes to.
type outcome struct {
	took   time.Duration
	status int // zero: 200
	reset  bool
}

type moment struct {
	at time.Duration
	ok bool
}

func newServer(seed uint64, q quota, d dialect) *server {
	return &server{quota: q, dialect: d, random: rand.New(rand.NewPCG(seed, 77)), begin: time.Now(),
		oneWay: [2]time.Duration{15 * time.Millisecond, 25 * time.Millisecond}}
}

func (s *server) way() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.oneWay[0] + time.Duration(s.random.Int64N(int64(s.oneWay[1]-s.oneWay[0])+1))
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	ctx := r.Context()
	if err := wait.For(ctx, s.way()); err != nil {
		return nil, err
	}
	resp, out := s.decide(r)
	if err := wait.For(ctx, out.took); err != nil {
		return nil, err
	}
	if out.reset {
		return nil, io.ErrUnexpectedEOF
	}
	if err := wait.For(ctx, s.way()); err != nil {
		return nil, err
	}
	return resp, nil
}

// decide is what happens when a request arrives.
func (s *server) decide(r *http.Request) (*http.Response, outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.arrivals++
	ok := s.quota == nil || s.quota.take(now)
	out := outcome{status: 200}
	switch {
	case !ok:
		s.refused++
		if out.status = s.status; out.status == 0 {
			out.status = http.StatusTooManyRequests
		}
	case s.work != nil:
		if out = s.work(s, r); out.status == 0 {
			out.status = 200
		}
	}
	switch {
	case out.status == 200 && !out.reset:
		s.good++
	case ok:
		s.failed++
	}
	if s.keep {
		s.log = append(s.log, moment{now.Sub(s.begin), ok})
	}
	resp := &http.Response{StatusCode: out.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Date": {now.UTC().Format(http.TimeFormat)}}, Request: r, Body: io.NopCloser(strings.NewReader(""))}
	s.describe(resp.Header, ok, now)
	return resp, out
}

// describe writes what the dialect says.
func (s *server) describe(h http.Header, ok bool, now time.Time) {
	if s.quota == nil {
		return
	}
	left, next, full := s.quota.state(now)
	if !ok && s.tell != "" {
		h.Set("Retry-After", s.tell)
	} else if !ok && s.dialect != silent {
		h.Set("Retry-After", whole(next))
	}
	n, per := s.quota.stated()
	three := func(limit, remaining, reset, value string) {
		h.Set(limit, strconv.Itoa(n))
		h.Set(remaining, strconv.Itoa(left))
		h.Set(reset, value)
	}
	switch s.dialect {
	case ietf:
		h.Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=%s`, n, whole(per)))
		h.Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%s`, left, whole(max(next, min(full, per)))))
	case legacy:
		three("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset",
			strconv.FormatInt(int64(math.Ceil(float64(now.Add(full).UnixNano())/1e9)), 10))
	case untilFull:
		three("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", whole(full))
	case trio:
		three("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", whole(full))
	case named:
		three("x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests", (full + time.Millisecond - 1).Truncate(time.Millisecond).String())
	case stamped:
		three("anthropic-ratelimit-requests-limit", "anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset",
			now.Add(full+time.Second-1).UTC().Truncate(time.Second).Format(time.RFC3339))
	}
}

func whole(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }
