package throttle_test

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/internal/farstore"
)

// A crowdable server serves some requests at a time and refuses what is beyond, in one of
// several ways, or fails at random. Everything follows from its seed.
type crowdable struct {
	says       string // "named", "503", "chance" or "never"
	most       int
	trip, work time.Duration
	r          *rand.Rand

	mu              sync.Mutex
	busy            int
	served, refused int
}

func newCrowdable(seed uint64, says string) *crowdable {
	r := rand.New(rand.NewPCG(seed, 33))
	s := &crowdable{says: says, r: r}
	s.most = int(math.Round(3 * math.Pow(14, r.Float64()))) // 3 to 42
	s.trip = time.Duration(10+r.IntN(70)) * time.Millisecond
	s.work = time.Duration(20*math.Pow(50, r.Float64())) * time.Millisecond // 20 ms to 1 s
	return s
}

// spans are one way, the work, and the other way.
func (s *crowdable) spans() (there, work, back time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	about := func(d time.Duration) time.Duration { return time.Duration(float64(d) * (0.5 + s.r.Float64())) }
	return about(s.trip / 2), about(s.work), about(s.trip / 2)
}

func (s *crowdable) RoundTrip(r *http.Request) (*http.Response, error) {
	there, work, back := s.spans()
	time.Sleep(there)
	resp := s.refuses()
	if resp == nil {
		time.Sleep(work)
		s.mu.Lock()
		s.busy--
		s.served++
		s.mu.Unlock()
		resp = answer(200)
	}
	time.Sleep(back)
	resp.Request = r
	return resp, nil
}

// refuses is the refusal; nil: the request is served.
func (s *crowdable) refuses() *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	bad := s.busy >= s.most && s.says != "never"
	if s.says == "chance" {
		bad = s.r.Float64() < .03
	}
	if !bad {
		s.busy++
		return nil
	}
	s.refused++
	if s.says != "named" {
		return answer(503)
	}
	resp := answer(429, "Content-Type", "application/json")
	resp.Body = io.NopCloser(strings.NewReader(`{"error":{"code":"too_many_concurrent_requests"}}`))
	return resp
}

// ask64 lets 64 workers of n processes ask for as much as they can in most; s may be nil.
func (b *crowdable) ask64(t testing.TB, s *farstore.Store, n int, most time.Duration) (w working) {
	w.each = make([]int, n)
	end := time.Now().Add(most)
	var all sync.WaitGroup
	for i := range n {
		c := throttle.Config{MaxWait: time.Hour}
		if s != nil {
			c.Store, c.Fleet = s, throttle.FleetConfig{Members: n}
		}
		tr, err := throttle.New(b, c)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		var mu sync.Mutex
		for range 64 / n {
			all.Go(func() {
				for time.Now().Before(end) {
					r, _ := http.NewRequest("GET", "https://api.example/items", nil)
					resp, err := tr.RoundTrip(r)
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					if resp.StatusCode == 200 {
						mu.Lock()
						w.each[i]++
						mu.Unlock()
					}
				}
			})
		}
	}
	all.Wait()
	w.took, w.served, w.refused = most, b.served, b.refused
	return w
}

// bears compares so many processes with one that does the same work.
func bears(t *testing.T, says string, processes int, most time.Duration, seeds ...uint64) (f fleets) {
	for _, seed := range seeds {
		calls := 0
		run := func(n int) (w working) {
			synctest.Test(t, func(t *testing.T) {
				var s *farstore.Store
				if n > 1 {
					s = farstore.New(time.Millisecond)
					defer func() { calls = s.Books() }()
				}
				w = newCrowdable(seed, says).ask64(t, s, n, most)
			})
			return w
		}
		one, many := run(1), run(processes)
		ratio := float64(one.served) / float64(max(1, many.served))
		t.Logf("%s %d: %d at a time: served %d -> %d (%.2f), refused %d -> %d, uneven %.2f, %.1f calls of the store for each", says, seed,
			newCrowdable(seed, says).most, one.served, many.served, ratio, one.refused, many.refused, many.unevenness(), float64(calls)/float64(max(1, many.served)))
		n := float64(len(seeds))
		f.ratio, f.uneven = f.ratio+ratio/n, f.uneven+many.unevenness()/n
		f.one, f.many = f.one+float64(one.refused)/n, f.many+float64(many.refused)/n
	}
	return f
}

// Processes learn together how many requests at a time a host bears: they are served nearly as
// much as one with the same work, refused at most twice as often and once each, and served much
// the same each, as they take turns: the farthest share is off by .15 of sixteen processes at most
// in sixty runs, and by .23 of 32, which get fewer than twenty each of some hosts.
func TestAFleetLearnsRequestsAtATime(t *testing.T) {
	for _, test := range []struct {
		processes int
		uneven    float64
	}{{2, .1}, {4, .1}, {16, .2}, {32, .3}} {
		f := bears(t, "named", test.processes, 30*time.Second, fleetSeeds(6)...)
		t.Logf("%d processes: %+v", test.processes, f)
		if f.ratio > 1.15 || f.many > 2*f.one+float64(test.processes) || f.uneven > test.uneven {
			t.Errorf("%d processes: %+v", test.processes, f)
		}
	}
}

// A host that fails at random serves a fleet as much as processes which know nothing of
// each other: few failures are no limit of requests at a time.
func TestAFleetTakesChanceForNoLimit(t *testing.T) {
	served := func(s *farstore.Store, seed uint64) (w working) {
		synctest.Test(t, func(t *testing.T) {
			if s != nil {
				s = farstore.New(time.Millisecond)
			}
			w = newCrowdable(seed, "chance").ask64(t, s, 16, 20*time.Second)
		})
		return w
	}
	alone, together := 0, 0
	for seed := range uint64(4) {
		alone += served(nil, 11+seed).served
		together += served(farstore.New(0), 11+seed).served
	}
	if together < alone*3/4 {
		t.Errorf("%d were served, %d of processes that each learn alone", together, alone)
	}
}

// Where nothing is refused each request is one call to the Store that draws on the host
// alone, and nothing is given back.
func TestAFleetPaysNothingForHostsThatServeAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		w := newCrowdable(11, "never").ask64(t, s, 16, 5*time.Second)
		if n := s.Books(); n > w.served || s.Refunds() > 0 {
			t.Errorf("%d bookings and %d refunds of %d requests", n, s.Refunds(), w.served)
		}
		for _, b := range s.Asked() {
			if n := len(b.Draws); n != 1 || len(b.Draws[0].Limits) != 3 {
				t.Fatalf("a booking of %d keys and %d limits", n, len(b.Draws[0].Limits))
			}
		}
	})
}

// Without the Store each process goes on with its part of the places, and all take places
// again when it is back.
func TestAFleetWithoutStoreHasItsPartOfThePlaces(t *testing.T) {
	for _, places := range []int{31, 32} { // 31 are nearly two for each process, 32 are two
		synctest.Test(t, func(t *testing.T) {
			s, b := farstore.New(time.Millisecond), newCrowdable(13, "named")
			b.most, b.work = places, 200*time.Millisecond
			var before, during working
			count := func() working {
				b.mu.Lock()
				defer b.mu.Unlock()
				return working{served: b.served, refused: b.refused}
			}
			time.AfterFunc(20*time.Second, func() { before = count(); s.Fail(context.DeadlineExceeded, true) })
			time.AfterFunc(40*time.Second, func() { during = count(); s.Fail(nil, false) })
			w := b.ask64(t, s, 16, 60*time.Second)
			most := 20 * float64(b.most) / (b.work + b.trip).Seconds()
			for i, n := range []int{before.served, during.served - before.served, w.served - during.served} {
				t.Logf("%d places: %d were served in part %d, of some %.0f", places, n, i, most)
				if float64(n) < most*3/4 {
					t.Errorf("%d places: %d were served in part %d, of some %.0f", places, n, i, most)
				}
			}
			if n := during.refused - before.refused; n > 20*16 {
				t.Errorf("%d places: %d were refused without the store", places, n)
			}
		})
	}
}
