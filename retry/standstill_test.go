package retry

import (
	"context"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
)

// These tests are in the package because in virtual time no timer is late and no
// machine sleeps, so a standstill cannot be shown to a Transport.

// A timer of a process that runs is a little late at most; one that is later
// was held up. The shorter its time, the less of that is a standstill.
func TestATimerThatIsLateTellsAStandstill(t *testing.T) {
	for _, tt := range []struct {
		late, limit time.Duration
		want        bool
	}{
		{0, time.Second, false},
		{-time.Hour, time.Second, false},
		{99 * time.Millisecond, 30 * time.Second, false},
		{101 * time.Millisecond, 30 * time.Second, true},
		{time.Hour, 30 * time.Second, true},
		{24 * time.Millisecond, 100 * time.Millisecond, false},
		{26 * time.Millisecond, 100 * time.Millisecond, true},
		{9 * time.Millisecond, time.Millisecond, false},
		{11 * time.Millisecond, time.Millisecond, true},
		{time.Second, math.MaxInt64, true},
	} {
		if got := stoodStill(tt.late, tt.limit); got != tt.want {
			t.Errorf("%v late of %v: %v", tt.late, tt.limit, got)
		}
	}
}

// In suspend the wall's clock goes on alone. That it is set by a little, or back,
// is no suspend.
func TestTheWallsClockTellsASuspend(t *testing.T) {
	for _, tt := range []struct {
		wall, other time.Duration
		want        bool
	}{
		{time.Minute, time.Minute, false},
		{time.Minute + asleep, time.Minute, false},
		{time.Minute + asleep + 1, time.Minute, true},
		{8 * time.Hour, time.Second, true},
		{-time.Hour, time.Second, false},
	} {
		if got := slept(tt.wall, tt.other); got != tt.want {
			t.Errorf("%v on the wall, %v otherwise: %v", tt.wall, tt.other, got)
		}
	}
}

// overdue starts f's clock so that it should have struck a while ago.
func overdue(f *flight, limit, late time.Duration) {
	f.start(f.ctx.clocks.now()-limit-late, limit)
}

// An attempt whose clock strikes late has its time once more, and no more than
// once. One whose clock strikes in time does not.
func TestLateClockStrikesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, late := range []time.Duration{0, 3 * time.Second} {
			p := newClocks()
			f := newFlight(p, true)
			began := time.Now()
			overdue(f, time.Minute, late)
			c := f.ctx.clock
			if f.strike(c); f.ctx.expired != (late == 0) || f.ctx.stood != (late > 0) {
				t.Errorf("%v late: struck %v, stood still %v", late, f.ctx.expired, f.ctx.stood)
			}
			if late > 0 {
				if left := f.due - p.now(); left < 50*time.Second || left > time.Minute {
					t.Errorf("%v is left of a minute", left)
				}
				f.due = p.now() - late
				if f.strike(c); !f.ctx.expired {
					t.Error("has a third time")
				}
				if !f.frozen(context.Background(), began) {
					t.Error("to blame for a standstill")
				}
			}
			f.release()
		}
	})
}

// What fails when the process goes on fails because of the standstill, whether
// its own clock, its caller's or another attempt's shows that; and nothing that
// was not under way then, nor long after.
func TestAStandstillIsNotTheHostsFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none := context.Background
		var left time.Time
		deadline := func(late time.Duration) func() context.Context {
			return func() context.Context {
				ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-late))
				t.Cleanup(cancel)
				return ctx
			}
		}
		for _, tt := range []struct {
			name string
			ctx  func() context.Context
			do   func(f *flight)
			want bool
		}{
			{"nothing", none, func(*flight) {}, false},
			{"its clock struck in time", none, func(f *flight) { overdue(f, time.Second, 0) }, false},
			{"its clock has not been heard yet", none, func(f *flight) { overdue(f, time.Second, 2*time.Second) }, true},
			{"its clock struck in time, and the base came back late", none, func(f *flight) {
				overdue(f, time.Second, 0)
				f.strike(f.ctx.clock)
				time.Sleep(time.Minute)
			}, false},
			{"the caller's deadline passed", deadline(0), func(*flight) {}, false},
			{"the caller's deadline had long passed", deadline(2 * time.Second), func(*flight) {}, true},
			{"another clock was late", none, func(f *flight) { f.ctx.clocks.heard(f.ctx.clocks.now() - time.Second) }, true},
			{"another clock was hardly late", none, func(f *flight) { f.ctx.clocks.heard(f.ctx.clocks.now()) }, false},
			{"that was before it", none, func(f *flight) {
				f.ctx.clocks.heard(f.ctx.clocks.now() - time.Second)
				left = time.Now()
			}, false},
			{"that was long ago", none, func(f *flight) {
				f.ctx.clocks.stood.Store(int64(f.ctx.clocks.now() - 2*aftermath))
			}, false},
		} {
			p := newClocks()
			p.epoch = p.epoch.Add(-time.Hour)
			f := newFlight(p, true)
			left = time.Now().Add(-10 * time.Second)
			tt.do(f)
			if got := f.frozen(tt.ctx(), left); got != tt.want {
				t.Errorf("%s: frozen %v", tt.name, got)
			}
			f.release()
		}
	})
}

// A timer that rings late for nobody tells of the standstill all the same.
func TestIdleClockTellsOfStandstill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newClocks()
		f := newFlight(p, true)
		left := time.Now()
		f.start(p.now(), time.Hour)
		f.stop(false)
		time.Sleep(2 * time.Second)
		f.ctx.clock.rings.Store(int64(p.now() - time.Second))
		f.ctx.clock.ring()
		if !f.frozen(context.Background(), left) {
			t.Error("nobody has noticed")
		}
		f.release()
	})
}

// The stage that Wire notes of what failed in a standstill is that alone.
func TestFrozenIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Wire(nil, Config{}).(*wire)
		w.clocks.epoch = w.clocks.epoch.Add(-time.Hour)
		for _, late := range []time.Duration{0, time.Second} {
			r, tr, _ := trip.Begin(httptest.NewRequest("GET", "http://a.example/", nil), trip.Retry, w.Link().Hosts)
			w.base = testnet.Func(func(*http.Request) (*http.Response, error) {
				time.Sleep(time.Second)
				w.clocks.heard(w.clocks.now() - late)
				return nil, io.ErrUnexpectedEOF
			})
			tr.At(trip.Retry)
			_, err := w.RoundTrip(r)
			if frozen := tr.Stage == trip.Frozen; frozen != (late > 0) {
				t.Errorf("%v: stage %v, the clock %v late", err, tr.Stage, late)
			}
			tr.End(err)
		}
	})
}
