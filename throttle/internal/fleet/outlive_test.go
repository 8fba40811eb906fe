package fleet

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
)

// Whatever callers do and however the store fares, nobody is stuck, nothing panics, and
// afterwards all places are free.
func TestFleetsOutliveChaos(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) { new(chaos).run(t, seed) })
	}
}

// chaos is three processes and 300 callers of random patience that book random costs of
// random keys from a store that is slow, hangs, fails and forgets.
type chaos struct {
	random  *rand.Rand // of the goroutine that runs it
	store   *farstore.Store
	calm    atomic.Bool // the store is quick
	fleets  []*Fleet
	tallies []*Tally // per fleet
}

// chaosKeys are what is booked from. One budget is changed from call to call.
func chaosKeys() [][]Key {
	return [][]Key{
		{{ID: "a", Name: "a", InFlight: 2}},
		{{ID: "b", Name: "b", InFlight: 4, Rates: rates("50/s")}},
		{{ID: "c", Name: "c", Rates: rates("40/s, 500 tokens/m")}},
		{{ID: "c", Name: "c", Rates: rates("40/s, 500/m")}, {ID: "a", Name: "a", InFlight: 2}},
	}
}

func (c *chaos) run(t *testing.T, seed uint64) {
	c.random = rand.New(rand.NewPCG(seed, 1))
	trips := rand.New(rand.NewPCG(seed, 2)) // of the store's goroutines
	c.store = farstore.Vary(func() time.Duration {
		if c.calm.Load() {
			return time.Millisecond
		}
		return time.Duration(trips.Int64N(int64([]time.Duration{1, 5, 20, 80}[trips.IntN(4)] * time.Millisecond)))
	})
	for range 3 {
		c.fleets = append(c.fleets, New(c.store, Config{Members: 3, WhenDown: WhenDown(c.random.IntN(3)),
			Lease: []time.Duration{0, 100 * time.Millisecond}[c.random.IntN(2)]}))
		c.tallies = append(c.tallies, NewTally("t", "requests"))
	}
	var wg sync.WaitGroup
	for range 300 {
		wg.Go(c.caller())
	}
	c.faults()
	wg.Wait()
	c.judge(t, seed)
	for _, f := range c.fleets {
		f.Close()
	}
}

func (c *chaos) upTo(d time.Duration) time.Duration {
	return time.Duration(c.random.Int64N(int64(d)))
}

// caller is one that comes within eight seconds, may give up, and does something random
// with what it got.
func (c *chaos) caller() func() {
	begin, patience, took := c.upTo(8*time.Second), c.upTo(400*time.Millisecond), c.upTo(300*time.Millisecond)
	o := Options{MaxWait: c.upTo(time.Second) - 100*time.Millisecond, Held: c.random.IntN(2) == 0, Priority: c.random.IntN(3)}
	all := chaosKeys()
	i, n, then := c.random.IntN(len(c.fleets)), c.random.IntN(len(all)), c.random.IntN(6)
	f, tally, keys := c.fleets[i], c.tallies[i], all[n]
	cost := map[string]int64{"requests": 1, "tokens": int64(c.random.IntN(30))}
	if n == 2 && c.random.IntN(2) == 0 {
		keys[0].Tallies = []*Tally{tally}
	}
	return func() {
		time.Sleep(begin)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		g, _ := f.Book(ctx, keys, cost, o)
		if g == nil {
			return
		}
		time.Sleep(took)
		switch then {
		case 0:
			g.Cancel()
		case 1:
			g.Settle(map[string]int64{"tokens": cost["tokens"] * 2})
		case 2:
			f.Pause(keys[0].ID, time.Now().Add(took), false)
		case 3:
			f.Look(keys, cost)
			tally.Bound(int64(took) % 50)
		case 4:
			tally.Bound(Unbounded)
			_ = f.Refill(keys[0], func(string) int64 { return 1 }) // the store may be gone
		}
		if o.Held {
			g.Answered()
		}
		g.Done()
	}
}

// faults befall the store meanwhile, and end.
func (c *chaos) faults() {
	for range 6 {
		time.Sleep(c.upTo(2 * time.Second))
		switch c.random.IntN(4) {
		case 0:
			c.store.Fail(errors.New("gone"), false)
		case 1:
			c.store.Fail(nil, true)
		case 2:
			c.store.Lose()
		default:
			c.store.Fail(nil, false)
		}
	}
	c.store.Fail(nil, false)
	c.calm.Store(true)
}

// judge finds out whether a place was lost: two of "a", or as many of the four of "b".
func (c *chaos) judge(t *testing.T, seed uint64) {
	keys := chaosKeys()
	time.Sleep(flightSilence + time.Minute) // windows end
	for _, f := range c.fleets[:2] {
		g, _ := f.Book(context.Background(), keys[2], nil, Options{}) // the guard of a store that was gone asks it
		g.Cancel()
	}
	time.Sleep(time.Second)
	for range 2 {
		for i, f := range c.fleets[:2] {
			g, r := f.Book(context.Background(), keys[i], nil, Options{MaxWait: time.Second, Held: true})
			if r != nil {
				t.Errorf("seed %d: a place of %s is lost: %+v", seed, keys[i][0].ID, r)
			}
			defer g.Done()
		}
	}
}
