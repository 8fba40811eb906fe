package fleet

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// When the store may be asked again after a failure.
func TestFleetGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms, gone := time.Millisecond, errors.New("gone")
		var saw []string
		g := &guard{f: &Fleet{c: Config{Deadline: 50 * ms, OnState: func(from, to State, why error) {
			saw = append(saw, fmt.Sprint(from, ">", to, " ", why == nil))
		}}}}
		start := time.Now()
		want := func(ok, probe bool, in time.Duration) {
			t.Helper()
			gotOK, gotProbe, retry := g.enter(time.Now())
			if gotOK != ok || gotProbe != probe || time.Until(retry) != in {
				t.Errorf("at %v: %t, probe %t, retry in %v; want %t, %t, %v", time.Since(start), gotOK, gotProbe, time.Until(retry), ok, probe, in)
			}
			if gotProbe {
				return
			}
			if got := g.allows(time.Now()); got != ok {
				t.Errorf("at %v: allows %t", time.Since(start), got)
			}
		}
		want(true, false, 0)
		g.heard(gone, 0, false)
		want(false, false, 50*ms)
		time.Sleep(50 * ms)
		want(true, false, 0)
		g.heard(gone, 0, false)
		g.heard(nil, 0, false) // one success forgets them
		want(true, false, 0)
		for range 3 {
			g.heard(gone, 0, false)
		}
		want(false, false, 200*ms)
		g.heard(gone, 0, false) // a straggler
		want(false, false, 200*ms)
		time.Sleep(200 * ms)
		want(false, true, 50*ms)
		want(false, false, 50*ms) // one probe at a time
		g.abandon()
		want(false, true, 50*ms)
		pause := 200 * ms
		for range 6 {
			g.heard(gone, 0, true)
			pause = min(2*pause, 5*time.Second)
			want(false, false, pause)
			time.Sleep(pause)
			want(false, true, 50*ms)
		}
		g.heard(nil, 0, true)
		want(true, false, 0)
		g.heard(fmt.Errorf("x: %w", store.ErrBusy), 0, false)
		want(true, false, 0) // only the queue that was told leaves it alone
		time.Sleep(time.Second - 1)
		g.heard(nil, 0, false)
		if g.now() != Busy {
			t.Error("busy for a second at least")
		}
		time.Sleep(time.Nanosecond)
		g.heard(nil, 0, false)
		if got, want := fmt.Sprint(saw), "[0>2 false 2>0 true 0>1 false 1>0 true]"; got != want {
			t.Errorf("saw %s, want %s", got, want)
		}
	})
}
