package breaker_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
)

// TestQuickHostsNoteLife: what is answered while all is well is noted, seldom,
// so that the first burst of silence finds that the host lives.
func TestQuickHostsNoteLife(t *testing.T) {
	bubble(t, func(t *testing.T) {
		changes := 0
		cs := circuits(t, breaker.Config{OnStateChange: func(breaker.Change) { changes++ }})
		m := cs.Meter(&clocked{Func: testnet.Func(silentOn("/a"))})
		var polls sync.WaitGroup
		for range 50 {
			polls.Go(func() {
				if err := patiently(t, m, "/a"); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		for range 19 {
			time.Sleep(100 * time.Millisecond)
			if _, err := get(m, site+"q"); err != nil {
				t.Fatal(err)
			}
		}
		polls.Wait()
		if changes != 0 {
			t.Errorf("%d changes", changes)
		}
		s := cs.Stats()
		if len(s.Circuits) != 1 || s.Circuits[0].Failures != 0 {
			t.Errorf("%+v", s.Circuits)
		}
	})
}

// TestLifeOfOneShard: what the host's record says of life is another shard's,
// perhaps.
func TestLifeOfOneShard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs := circuits(t, breaker.Config{Shard: firstSegment})
		m := cs.Meter(&clocked{testnet.Func(silentOn("/bad/x"))})
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { patiently(t, m, "/bad/x") })
		}
		time.Sleep(1900 * time.Millisecond)
		if err := patiently(t, m, "/good/x"); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		want(t, cs, breaker.Open, "five silences of a shard")
	})
}

// TestAnsweredRoutesAreNotSilentByNature: a route that was excused and is then
// answered, as the host's record knows, is excused no more.
func TestAnsweredRoutesAreNotSilentByNature(t *testing.T) {
	for _, answered := range []string{"a", "p"} {
		bubble(t, func(t *testing.T) {
			cs := circuits(t, breaker.Config{})
			h := &host{answer: silentOn("/a")}
			m := cs.Meter(&clocked{testnet.Func(h.RoundTrip)})
			done := make(chan bool)
			go func() { asks(t, m, "a"); close(done) }()
			time.Sleep(1900 * time.Millisecond)
			asks(t, m, "q")
			<-done
			time.Sleep(time.Second)
			h.set(status(200))
			asks(t, m, answered)
			h.set(silentOn("/a"))
			asks(t, m, "aaaaa")
			want(t, cs, map[string]breaker.State{"a": breaker.Open, "p": breaker.Closed}[answered], answered+" was answered")
		})
	}
}

// TestWhatWasWaitedForSaysWhomAnEndConcerns: what an attempt that our clock ended was waiting for says whom
// its end concerns: all of its host, its route alone, or nobody.
func TestWhatWasWaitedForSaysWhomAnEndConcerns(t *testing.T) {
	for stage, x := range map[trip.Stage]struct {
		want  breaker.State
		other bool // another route may ask
	}{
		trip.Answering: {breaker.Open, true},
		trip.Sending:   {breaker.Open, true},
		trip.Dialling:  {breaker.Open, false},
		trip.Frozen:    {breaker.Closed, true},
	} {
		bubble(t, func(t *testing.T) {
			cs := circuits(t, breaker.Config{OpenFor: time.Hour, MaxOpenFor: time.Hour})
			m := cs.Meter(&clocked{testnet.Func(func(r *http.Request) (*http.Response, error) {
				tr := trip.From(r.Context())
				tr.SetCause(trip.AttemptTimeout)
				tr.Stage = stage
				time.Sleep(time.Second)
				return nil, context.DeadlineExceeded
			})})
			for range 5 {
				get(m, site+"a")
			}
			want(t, cs, x.want, "five attempts")
			if _, err := get(m, site+"q"); refused(err) == x.other {
				t.Errorf("stage %d: another route: %v", stage, err)
			}
		})
	}
}
