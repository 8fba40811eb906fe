package outbox

import (
	"context"
	"errors"
	"net/http"
	"slices"
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

// A queue whose server has asked to be left alone is not sent to before then, by
// Run, by Wake or by Drain; nor for longer than an hour, whatever it asked for.
func TestRetryAfterOfAStuckQueue(t *testing.T) {
	for _, tt := range []struct {
		name, asked string
		every       time.Duration
		want        []time.Duration // of the sendings, since the first
	}{
		{"longer than every", "90", 20 * time.Second, []time.Duration{0, 90 * time.Second, 180 * time.Second}},
		{"shorter than every", "5", 40 * time.Second, []time.Duration{0, 40 * time.Second, 80 * time.Second}},
		{"none", "", 40 * time.Second, []time.Duration{0, 40 * time.Second, 80 * time.Second}},
		{"a year", "31536000", time.Minute, []time.Duration{0, time.Hour, 2 * time.Hour}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var sent []time.Duration
			start := time.Now()
			o := box(t, tripper(func(r *http.Request) (*http.Response, error) {
				r.Body.Close()
				resp := &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody, Request: r}
				if tt.asked != "" {
					resp.Header.Set("Retry-After", tt.asked)
				}
				if sent = append(sent, time.Since(start)); len(sent) == 3 {
					resp.StatusCode = 200
				}
				return resp, nil
			}), Config{Patterns: []string{}})
			enqueue(t, o, "http://a/", "x")
			stop := running(t, o, tt.every)
			time.Sleep(4 * time.Second)
			n, err := o.Drain(t.Context())
			if tt.asked == "" {
				tt.want = []time.Duration{0, 4 * time.Second, 44 * time.Second}
			} else {
				o.Wake()
				var left *Error
				if n != 0 || !errors.As(err, &left) || left.Status != 503 || left.RetryAfter.String() != tt.asked+"s" && left.RetryAfter < time.Minute {
					t.Errorf("%s: Drain = %d, %+v", tt.name, n, err)
				}
			}
			time.Sleep(3 * time.Hour)
			stop()
			if tt.name == "shorter than every" { // Wake had it tried as soon as that was allowed
				tt.want = []time.Duration{0, 5 * time.Second, 45 * time.Second}
			}
			if !slices.Equal(sent, tt.want) || o.Stats().Delivered != 1 {
				t.Errorf("%s: sent after %v, want %v", tt.name, sent, tt.want)
			}
		})
	}
}
