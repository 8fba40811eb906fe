package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/store"
)

// A pause that is made shorter ends sooner for all processes, also if it is made shorter while
// the store is being told of something else: then both are told in one call.
func TestAPauseIsShortenedWhileTheStoreIsBeingTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip, long, short = 10 * time.Millisecond, time.Hour, 2 * time.Second
		s := farstore.New(trip)
		f, other := testFleet(t, s, Config{}), testFleet(t, s, Config{})
		f.Pause("k", time.Now().Add(long), false)
		f.Pause("k", time.Now().Add(short), true) // the call for the first one is under way
		time.Sleep(5 * trip)
		keys := on("k", rates("9/s burst 9")...)
		if _, _, wait := other.Look(keys, nil); wait <= 0 || wait > short {
			t.Errorf("another process waits for %v, want no longer than %v", wait, short)
		}
		f.Pause("k", time.Now(), true)
		time.Sleep(5 * trip)
		if _, _, wait := other.Look(keys, nil); wait != 0 {
			t.Errorf("another process waits for %v after the end of the pause", wait)
		}
	})
}

// told is a store that keeps what it was told, in order, and does not answer before go is
// closed.
type told struct {
	store.Store
	proceed chan struct{}
	mu      sync.Mutex
	news    []store.News
}

func (s *told) Tell(_ context.Context, _ string, n store.News) error {
	<-s.proceed
	s.mu.Lock()
	defer s.mu.Unlock()
	s.news = append(s.news, n)
	return nil
}

// News that is joined says what it says one by one, whatever came before it and in whatever
// order it comes.
func TestJoinedNewsSaysWhatItSaysOneByOne(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		random := func() store.News {
			var n store.News
			seconds := func(most int) time.Duration { return time.Duration(r.IntN(most)) * time.Second }
			switch r.IntN(6) {
			case 0:
				n.Pause = seconds(9)
			case 1:
				n.Guess = seconds(9)
			case 2:
				n.Resume = true
			case 3:
				n = store.News{Resume: r.IntN(2) == 0, Pause: seconds(9), Guess: seconds(9)}
			}
			for range r.IntN(4) { // windows end at the same time, or are certainly others
				n.Stated = append(n.Stated, store.Stated{ID: fmt.Sprint(r.IntN(5)), Unit: fmt.Sprint(r.IntN(2)),
					Remaining: r.Int64N(9), Reset: time.Minute + 10*seconds(20)})
			}
			return n
		}
		before := make([]store.News, r.IntN(4))
		all := make([]store.News, 2+r.IntN(8))
		for _, ns := range [][]store.News{before, all} {
			for i := range ns {
				ns[i] = random()
			}
		}
		var joined []store.News
		synctest.Test(t, func(t *testing.T) {
			s := &told{Store: farstore.New(0), proceed: make(chan struct{})}
			f := New(s, Config{Members: 2})
			for _, n := range all {
				f.Tell("k", n)
			}
			close(s.proceed)
			f.Close()
			joined = s.news
		})
		if len(joined) != 2 { // the first one, and all others together
			t.Fatalf("told in %d calls, want 2", len(joined))
		}
		now := time.UnixMicro(1e15)
		ledger := func(lists ...[]store.News) (l store.Ledger) {
			for _, n := range slices.Concat(lists...) {
				if err := n.Validate(); err != nil {
					t.Fatal(err)
				}
				l = l.AfterNews(now, n)
			}
			slices.SortFunc(l.Stated, func(a, b store.LedgerStated) int { return int(a.Ends - b.Ends) })
			return l
		}
		got, want := ledger(before, joined), ledger(before, all)
		if got.Pause != want.Pause || got.Guess != want.Guess || fmt.Sprint(ends(got)) != fmt.Sprint(ends(want)) {
			t.Fatalf("seed %d: after %+v, news %+v joined to %+v says %+v, want %+v", seed, before, all, joined, got, want)
		}
	}
}

// ends are when the quotas end that l knows, and what is left of each.
func ends(l store.Ledger) (all []string) {
	for _, s := range l.Stated {
		all = append(all, fmt.Sprint(s.Ends, s.ID, s.Unit, s.Remaining))
	}
	slices.Sort(all)
	return all
}
