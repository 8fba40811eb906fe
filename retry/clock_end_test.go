package retry

import (
	"context"
	"io"
	"math"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// These tests are in the package because a clock that is kept for nobody is memory
// that is lost slowly, and callers see nothing else of it.

// A body that is read on after its end, as by whoever drains it to be sure,
// takes no clock: nobody would give it back, and its timer would keep the whole
// attempt.
func TestReadAfterTheEndTakesNoClock(t *testing.T) {
	for name, end := range map[string]func(io.ReadCloser){
		"end":    func(b io.ReadCloser) { io.Copy(io.Discard, b) },
		"closed": func(b io.ReadCloser) { b.Close() },
	} {
		w := Wire(testnet.Func(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 200, nil, testnet.NewBody("x")), nil
		}), Config{})
		resp, err := testnet.Get(t, context.Background(), w, "http://a.example/")
		if err != nil {
			t.Fatal(err)
		}
		end(resp.Body)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.Body.(*flight).clock != nil {
			t.Errorf("%s: an attempt that is over has a clock", name)
		}
	}
}

// A timeout that is as good as none neither strikes at once nor spoils the clock
// for those that have it later.
func TestEndlessTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newClocks()
		time.Sleep(time.Second)
		f := newFlight(p, true)
		f.start(p.now(), math.MaxInt64)
		c := f.clock
		c.ring()
		if f.release(); f.expired {
			t.Error("an endless timeout is over")
		}
		f = taker(t, p, c)
		f.start(p.now(), time.Second)
		select {
		case <-f.ctx.Done():
		case <-time.After(time.Hour):
			t.Error("a timeout of 1 s has not struck after 1 h")
		}
		f.release()
	})
}

// Clocks that idle are dropped, however long their timers have still to run.
func TestIdleClocksAreDropped(t *testing.T) {
	p := newClocks()
	var flights [100]*flight
	for i := range flights {
		flights[i] = newFlight(p, true)
		flights[i].start(p.now(), 1000*time.Hour)
	}
	for _, f := range flights {
		f.release()
	}
	live := func() (n int) {
		for _, w := range p.all {
			if w.Value() != nil {
				n++
			}
		}
		return n
	}
	for range 100 { // pools drop what nobody takes from one collection to the one after the next
		if runtime.GC(); live() == 0 {
			return
		}
	}
	t.Errorf("%d of %d clocks are kept for weeks", live(), len(p.all))
}
