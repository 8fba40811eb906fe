package outbox

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Run drains at once, then every so often, then when woken, until it is ended.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{down: true}
		o := box(t, s, Config{})
		pending := func(want int) {
			t.Helper()
			synctest.Wait()
			if got := o.Stats().Pending; got != want {
				t.Errorf("at %v: %d pending, want %d", time.Now(), got, want)
			}
		}
		mustKeep(t, o, "http://api.example/", "1")
		s.set(false)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- o.Run(ctx, time.Minute) }()
		pending(0)

		s.set(true)
		mustKeep(t, o, "http://api.example/", "2")
		time.Sleep(59 * time.Second)
		s.set(false)
		pending(1)
		time.Sleep(time.Second)
		pending(0)

		s.set(true)
		mustKeep(t, o, "http://api.example/", "3")
		time.Sleep(90 * time.Second) // a turn that delivers nothing does not end Run
		pending(1)
		s.set(false)
		o.Wake()
		o.Wake()
		pending(0)
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Errorf("Run = %v", err)
		}
	})
}

// Without an interval only Wake and the end have Run go on.
func TestRunUntilClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		o := box(t, s, Config{})
		ended := make(chan error)
		go func() { ended <- o.Run(context.Background(), 0) }()
		synctest.Wait()
		s.set(true)
		mustKeep(t, o, "http://api.example/", "1")
		s.set(false)
		time.Sleep(24 * time.Hour)
		if got := o.Stats().Pending; got != 1 {
			t.Errorf("%d pending, want 1", got)
		}
		o.Wake()
		synctest.Wait()
		if got := o.Stats().Pending; got != 0 {
			t.Errorf("%d pending, want 0", got)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Errorf("Run = %v", err)
		}
	})
}

// A hook that is written before New may wake nothing.
func TestWakeNil(t *testing.T) {
	var o *Transport
	o.Wake()
}
