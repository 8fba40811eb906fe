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
		synctest.Test(t, func(t *testing.T) { chaos(t, seed) })
	}
}

// chaos is three processes and 300 callers of random patience that book random costs of
// random keys from a store that is slow, hangs, fails and forgets.
func chaos(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	upTo := func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d))) }
	trips := rand.New(rand.NewPCG(seed, 2))
	var calm atomic.Bool
	s := farstore.Vary(func() time.Duration {
		if calm.Load() {
			return time.Millisecond
		}
		return time.Duration(trips.Int64N(int64([]time.Duration{1, 5, 20, 80}[trips.IntN(4)] * time.Millisecond)))
	})
	var fs []*Fleet
	for range 3 {
		fs = append(fs, New(s, Config{Members: 3, WhenDown: WhenDown(random.IntN(3)),
			Lease: []time.Duration{0, 100 * time.Millisecond}[random.IntN(2)]}))
	}
	keys := [][]Key{
		{{ID: "a", Name: "a", InFlight: 2}},
		{{ID: "b", Name: "b", InFlight: 4, Rates: rates("50/s")}},
		{{ID: "c", Name: "c", Rates: rates("40/s, 500/m")}},
		{{ID: "c", Name: "c", Rates: rates("40/s, 500/m")}, {ID: "a", Name: "a", InFlight: 2}},
	}
	var wg sync.WaitGroup
	for range 300 {
		begin, patience, wait, took := upTo(8*time.Second), upTo(400*time.Millisecond), upTo(time.Second)-100*time.Millisecond, upTo(300*time.Millisecond)
		f, ks, end := fs[random.IntN(len(fs))], keys[random.IntN(len(keys))], random.IntN(4)
		o := Options{MaxWait: wait, Held: random.IntN(2) == 0, Priority: random.IntN(3)}
		wg.Go(func() {
			time.Sleep(begin)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			g, _ := f.Book(ctx, ks, nil, o)
			if g == nil {
				return
			}
			time.Sleep(took)
			switch {
			case end == 0:
				g.Cancel()
			case o.Held:
				g.Answered()
			}
			g.Done()
		})
	}
	for range 6 {
		time.Sleep(upTo(2 * time.Second))
		switch random.IntN(4) {
		case 0:
			s.Fail(errors.New("gone"), false)
		case 1:
			s.Fail(nil, true)
		case 2:
			s.Lose()
		default:
			s.Fail(nil, false)
		}
	}
	s.Fail(nil, false)
	calm.Store(true)
	wg.Wait()
	time.Sleep(flightSilence + time.Minute) // windows end
	for _, f := range fs[:2] {
		g, _ := f.Book(context.Background(), keys[2], nil, Options{}) // the guard of a store that was gone asks it
		g.Cancel()
	}
	time.Sleep(time.Second)
	for range 2 {
		for i, f := range fs[:2] { // two places of "a", and as many of the four of "b"
			g, r := f.Book(context.Background(), keys[i], nil, Options{MaxWait: time.Second, Held: true})
			if r != nil {
				t.Errorf("seed %d: a place of %s is lost: %+v", seed, keys[i][0].ID, r)
			}
			defer g.Done()
		}
	}
	for _, f := range fs {
		f.Close()
	}
}
