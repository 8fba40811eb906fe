package chaintest

import (
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// balanced are servers behind a balancer. Each counts for itself, and states what it has left on
// every answer.
type balanced struct {
	mu      sync.Mutex
	dice    *rand.Rand
	of      []allowance
	turn    bool // they are asked in turn; else at random
	epoch   bool // resets are Unix times; else seconds
	after   bool // refusals say Retry-After
	takes   time.Duration
	n       int
	refused int
}

// An allowance is a limit of size requests per time: a bucket, or else a window.
type allowance struct {
	windowed
	bucket bool
	level  float64 // how full the bucket is, at seen
	seen   time.Time
}

// take reports whether a request is let pass, how many more would be, and after what time all are there.
func (a *allowance) take(now time.Time) (ok bool, left int, reset time.Duration) {
	if !a.bucket {
		ok = a.draw(now)
		return ok, a.size - len(a.drawn), a.back(now)
	}
	flow := float64(a.size) / a.per.Seconds()
	a.level, a.seen = max(0, a.level-flow*now.Sub(a.seen).Seconds()), now
	if ok = a.level+1 <= float64(a.size); ok {
		a.level++
	}
	return ok, int(float64(a.size) - a.level), time.Duration(a.level / flow * float64(time.Second))
}

// RoundTrip answers later than it takes the request in, after a time of its own each.
func (s *balanced) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(roundTrip)
	s.mu.Lock()
	i := s.dice.IntN(len(s.of))
	if s.n++; s.turn {
		i = s.n % len(s.of)
	}
	now, status := time.Now(), 200
	ok, left, reset := s.of[i].take(now)
	seconds := int(math.Ceil(reset.Seconds()))
	works := time.Duration(s.dice.Float64() * float64(s.takes))
	h := http.Header{"Date": {now.UTC().Format(http.TimeFormat)}}
	if !ok {
		s.refused++
		if status, works = 429, 0; s.after {
			h.Set("Retry-After", strconv.Itoa(seconds))
		}
	}
	s.mu.Unlock()
	if s.epoch {
		seconds = int(math.Ceil(float64(now.Add(reset).UnixNano()) / 1e9))
	}
	h.Set("X-RateLimit-Limit", strconv.Itoa(s.of[i].size))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(left))
	h.Set("X-RateLimit-Reset", strconv.Itoa(seconds))
	time.Sleep(roundTrip + works)
	return testnet.Answer(r, status, h, nil), nil
}

// balancedOf draws so many servers.
func balancedOf(seed uint64, servers int) *balanced {
	s := &balanced{
		dice: rand.New(rand.NewPCG(seed, uint64(servers))), turn: seed&1 > 0, epoch: seed&2 > 0, after: seed&4 > 0,
		takes: []time.Duration{100 * time.Millisecond, time.Second}[seed>>3&1],
	}
	kind := s.dice.IntN(3)
	w := windowed{kind: []string{"first", "clock", ""}[kind], size: 3 + s.dice.IntN(6), per: time.Duration(5+s.dice.IntN(6)) * time.Second}
	for range servers {
		s.of = append(s.of, allowance{windowed: w, bucket: kind == 2})
	}
	return s
}

// call calls the servers for three minutes at load times the rate of all of them. Each call might take
// half a minute.
func (s *balanced) call(t *testing.T, load float64) (calls, lost int) {
	synctest.Test(t, func(t *testing.T) {
		rt, dice := must(weir.New(s, weir.Config{}))(t), rand.New(rand.NewPCG(1, uint64(len(s.of))))
		gap := float64(s.of[0].per) / float64(s.of[0].size*len(s.of)) / load
		var wg sync.WaitGroup
		for start := time.Now(); time.Since(start) < 3*time.Minute; time.Sleep(time.Duration(dice.ExpFloat64() * gap)) {
			calls++
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				resp, err := testnet.Get(t, ctx, rt, "http://h/a")
				s.mu.Lock()
				defer s.mu.Unlock()
				if err != nil || resp.StatusCode != 200 {
					lost++
				}
			})
		}
		wg.Wait()
	})
	return calls, lost
}

// TestServersThatCountAloneAndSaySoAreUsedInFull: where each of several servers behind a balancer states
// its own count, callers get what all of them take.
func TestServersThatCountAloneAndSaySoAreUsedInFull(t *testing.T) {
	draws := testnet.Drawn(32, 8)
	for _, servers := range []int{2, 3, 8} {
		all, lost, refused := 0, 0, 0
		for seed := range uint64(draws) {
			s := balancedOf(seed, servers)
			n, gone := s.call(t, .6)
			all, lost, refused = all+n, lost+gone, refused+s.refused
		}
		t.Logf("%d servers: of %d calls %d were lost, %d refused", servers, all, lost, refused)
		testnet.Judge(t, lost <= all/50, "%d servers: %d of %d calls were lost, want one in 50", servers, lost, all)
		testnet.Judge(t, refused <= all/10, "%d servers: %d of %d calls were refused, want one in ten", servers, refused, all)
	}
}

// TestOneServerThatAnswersOutOfOrderIsObeyed: what it states is true of all requests, though its
// answers overtake one another, and more is asked for than it has.
func TestOneServerThatAnswersOutOfOrderIsObeyed(t *testing.T) {
	all, refused := 0, 0
	for seed := range uint64(testnet.Drawn(64, 8)) {
		s := balancedOf(seed, 1)
		s.takes *= 3
		n, _ := s.call(t, 1.5)
		all, refused = all+n, refused+s.refused
	}
	t.Logf("of %d calls %d were refused", all, refused)
	testnet.Judge(t, refused <= all/100, "%d of %d calls were refused, want one in 100", refused, all)
}
