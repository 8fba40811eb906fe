package retry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// The server's wait is a floor, in every form it is written in.
func TestServerWaitIsFloor(t *testing.T) {
	for _, tt := range []struct {
		name, header string
		floor, most  time.Duration
	}{
		{"seconds", "Retry-After: 10", 10 * time.Second, 15 * time.Second},
		{"fraction", "Retry-After: 2.5", 2500 * time.Millisecond, 3750 * time.Millisecond},
		{"date", "Retry-After: Sat, 01 Jan 2000 00:00:20 GMT; Date: Sat, 01 Jan 2000 00:00:00 GMT", 20 * time.Second, 30 * time.Second},
		{"date of a clock that is an hour ahead", "Retry-After: Sat, 01 Jan 2000 01:00:20 GMT; Date: Sat, 01 Jan 2000 01:00:00 GMT", 20 * time.Second, 30 * time.Second},
		{"past date", "Retry-After: Sat, 01 Jan 1999 00:00:00 GMT", 0, 100 * time.Millisecond},
		{"zero", "Retry-After: 0", 0, 100 * time.Millisecond},
		{"negative", "Retry-After: -5", 0, 100 * time.Millisecond},
		{"none", "", 0, 100 * time.Millisecond},
		{"of another status, by the limit that is spent", "X-RateLimit-Remaining: 0; X-RateLimit-Limit: 60; X-RateLimit-Reset: 30", 0, 100 * time.Millisecond},
		{"as long as may be", "Retry-After: 75", 75 * time.Second, 75 * time.Second},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			s := play(step{status: 503, header: tt.header}, step{status: 200})
			resp, err := newTransport(t, s, retry.Config{}).RoundTrip(request(t, "GET", "http://a.example/", ""))
			if err != nil || resp.StatusCode != 200 || s.calls() != 2 {
				t.Fatalf("got %v, %v after %d attempts", resp, err, s.calls())
			}
			floor, most := tt.floor, max(tt.most, tt.floor+time.Second)
			if tt.floor == 0 || tt.floor == 75*time.Second {
				most = tt.most
			}
			if got := s.times[1]; got < floor || got > most {
				t.Errorf("second attempt after %v, want between %v and %v", got, floor, most)
			}
		})
	}
}

// A throttled answer without Retry-After is waited out until the limit that is
// spent is back, if no throttle does it.
func TestSpentLimitIsFloor(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"X-RateLimit-Remaining: 0; X-RateLimit-Limit: 60; X-RateLimit-Reset: 30": 30 * time.Second,
		"X-RateLimit-Remaining: 9; X-RateLimit-Limit: 60; X-RateLimit-Reset: 30": 0,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := play(step{status: 429, header: header}, step{status: 200})
			newTransport(t, s, retry.Config{}).RoundTrip(request(t, "GET", "http://a.example/", ""))
			if got := s.times[1]; got < want || want == 0 && got > time.Second {
				t.Errorf("%s: second attempt after %v, want %v", header, got, want)
			}
		})
	}
}

// What does not fit is answered at once, with the answer in hand, unread.
func TestNoRoomForDelay(t *testing.T) {
	for _, tt := range []struct {
		name, header string
		deadline     time.Duration
		c            retry.Config
		want         retry.Reason
	}{
		{"beyond MaxDelay", "Retry-After: 76", 0, retry.Config{}, retry.TooLong},
		{"beyond a MaxDelay of one's own", "Retry-After: 6", 0, retry.Config{MaxDelay: 5 * time.Second}, retry.TooLong},
		{"huge", "Retry-After: 9223372036854775807", 0, retry.Config{}, retry.TooLong},
		{"overflowing", "Retry-After: 10000000000000000000000000", 0, retry.Config{}, retry.TooLong},
		{"beyond the deadline", "Retry-After: 10", 5 * time.Second, retry.Config{}, retry.NoTime},
		{"at the deadline", "Retry-After: 5", 5 * time.Second, retry.Config{}, retry.NoTime},
		{"backoff beyond the deadline", "", 5 * time.Second, retry.Config{Backoff: fixed(6 * time.Second)}, retry.NoTime},
		{"backoff says stop", "", 0, retry.Config{Backoff: func() backoff.BackOff { return &backoff.StopBackOff{} }}, retry.Declined},
		{"no attempts", "Retry-After: 1", 0, retry.Config{MaxAttempts: 1}, retry.Exhausted},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			body := testnet.NewBody("sorry")
			s := play(step{status: 503, header: tt.header, body: body})
			var got retry.Attempt
			tt.c.OnAttempt = func(a retry.Attempt) { got = a }
			ctx := background()
			if tt.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tt.deadline)
				defer cancel()
			}
			start := time.Now()
			resp, err := newTransport(t, s, tt.c).RoundTrip(request(t, "GET", "http://a.example/", "").WithContext(ctx))
			if err != nil || resp.StatusCode != 503 {
				t.Fatalf("got %v, %v", resp, err)
			}
			if body.Reads() != 0 || body.Closes() != 0 || time.Since(start) != 0 {
				t.Errorf("%d reads, %d closes, %v", body.Reads(), body.Closes(), time.Since(start))
			}
			if got.Reason != tt.want || s.calls() != 1 {
				t.Errorf("got reason %q after %d attempts, want %q", got.Reason, s.calls(), tt.want)
			}
			if got := text(t, resp); got != "sorry" {
				t.Errorf("got body %q", got)
			}
		})
	}
}

// Jitter on top of a server's wait never reaches over the deadline or
// MaxDelay, and spreads.
func TestJitterStaysWithinTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(map[time.Duration]bool)
		for range 200 {
			ctx, cancel := context.WithTimeout(background(), 12*time.Second)
			s := play(step{status: 503, header: "Retry-After: 10"}, step{status: 200})
			resp, err := newTransport(t, s, retry.Config{}).RoundTrip(request(t, "GET", "http://a.example/", "").WithContext(ctx))
			if err != nil || resp.StatusCode != 200 {
				t.Fatalf("got %v, %v", resp, err)
			}
			if s.times[1] < 10*time.Second || s.times[1] >= 12*time.Second {
				t.Fatalf("second attempt after %v", s.times[1])
			}
			seen[s.times[1]] = true
			cancel()
		}
		if len(seen) < 100 {
			t.Errorf("200 delays have %d values", len(seen))
		}
	})
}

// The answer in hand is read and closed before the next attempt, and comes
// back with its bytes if nothing later brings a response.
func TestAnswerInHand(t *testing.T) {
	long := strings.Repeat("x", holdBytes)
	for _, tt := range []struct {
		name string
		body func() io.Reader
		want string // "": not kept
	}{
		{"short", func() io.Reader { return strings.NewReader("try later") }, "try later"},
		{"exactly 64 KiB", func() io.Reader { return strings.NewReader(long) }, long},
		{"a byte more", func() io.Reader { return strings.NewReader(long + "y") }, ""},
		{"slow", func() io.Reader {
			return io.MultiReader(strings.NewReader("half"), &slow{time.Second, strings.NewReader("rest")})
		}, ""},
		{"slow but in time", func() io.Reader { return &slow{30 * time.Millisecond, strings.NewReader("rest")} }, "rest"},
		{"broken", func() io.Reader { return io.MultiReader(strings.NewReader("half"), failing{}) }, ""},
	} {
		for _, end := range []struct {
			name string
			err  error
		}{{"refusal", &refusal{notsent.Throttle}}, {"reset", errReset}} {
			bubble(t, tt.name+", then "+end.name, func(t *testing.T) {
				body := testnet.BodyOf(tt.body())
				trailer := http.Header{"X-Sum": {"1"}}
				base := testnet.Func(func(r *http.Request) (*http.Response, error) {
					if body.Closes() > 0 {
						return nil, end.err
					}
					resp := testnet.Answer(r, 503, nil, body)
					resp.Trailer = trailer
					return resp, nil
				})
				resp, err := newTransport(t, base, retry.Config{MaxAttempts: 2, Backoff: fixed(0)}).RoundTrip(request(t, "GET", "http://a.example/", ""))
				if tt.want != "" {
					if err != nil || text(t, resp) != tt.want || resp.StatusCode != 503 || resp.Trailer.Get("X-Sum") != "1" {
						t.Errorf("got %v, %v", resp, err)
					}
					return
				}
				var e *retry.Error
				if resp != nil || !errors.As(err, &e) || len(e.Tried) != 2 || e.Tried[0].Status != 503 || !errors.Is(err, end.err) {
					t.Fatalf("got %v, %v", resp, err)
				}
				if !strings.Contains(err.Error(), "503") || e.Host != "a.example" {
					t.Errorf("the error does not name the status: %v", err)
				}
			})
		}
	}
}

type slow struct {
	d time.Duration
	r io.Reader
}

func (s *slow) Read(b []byte) (int, error) { time.Sleep(s.d); return s.r.Read(b) }

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errReset }

// A caller who leaves during a delay gets the context's error, with what was
// learned; a deadline that passes later, the answer in hand.
func TestCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(background())
		time.AfterFunc(3*time.Second, cancel)
		s := play(step{status: 503, header: "Retry-After: 10"})
		_, err := newTransport(t, s, retry.Config{}).RoundTrip(request(t, "GET", "http://a.example/", "").WithContext(ctx))
		var e *retry.Error
		if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.Tried[0].Status != 503 || e.Timeout() {
			t.Errorf("got %v", err)
		}
		if time.Since(s.start) != 3*time.Second {
			t.Errorf("took %v", time.Since(s.start))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(background(), 3*time.Second)
		defer cancel()
		calls := 0
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			if calls++; calls == 1 {
				return testnet.Answer(r, 503, nil, testnet.NewBody("sorry")), nil
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		resp, err := newTransport(t, base, retry.Config{}).RoundTrip(request(t, "GET", "http://a.example/", "").WithContext(ctx))
		if err != nil || resp.StatusCode != 503 || text(t, resp) != "sorry" || calls != 2 {
			t.Errorf("got %v, %v", resp, err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // during the second attempt
		ctx, cancel := context.WithCancel(background())
		calls := 0
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			if calls++; calls == 1 {
				return testnet.Answer(r, 503, nil, testnet.NewBody("sorry")), nil
			}
			cancel()
			return nil, r.Context().Err()
		})
		_, err := newTransport(t, base, retry.Config{}).RoundTrip(request(t, "GET", "http://a.example/", "").WithContext(ctx))
		var e *retry.Error
		if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.Attempts != 2 || e.Reason != retry.Ended {
			t.Errorf("got %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		r := request(t, "GET", "http://a.example/", "")
		r.Cancel = leave //lint:ignore SA1019 what old callers do
		time.AfterFunc(3*time.Second, func() { close(leave) })
		_, err := newTransport(t, play(step{err: errReset}), retry.Config{Backoff: fixed(10 * time.Second)}).RoundTrip(r)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, errReset) {
			t.Errorf("got %v", err)
		}
	})
}

// An error after a deadline is a timeout for those who ask, and both errors
// are found in it.
func TestErrorIsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			if calls++; calls == 1 {
				return nil, errReset
			}
			<-r.Context().Done()
			return nil, errors.New("stream cancelled")
		})
		ctx, cancel := context.WithTimeout(background(), 3*time.Second)
		defer cancel()
		client := &http.Client{Transport: newTransport(t, base, retry.Config{})}
		_, err := client.Do(request(t, "GET", "http://user:secret@a.example/?token=secret", "").WithContext(ctx))
		var u *url.Error
		var e *retry.Error
		if !errors.As(err, &u) || !u.Timeout() || !errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if e.Attempts != 2 || e.Reason != retry.Ended || strings.Contains(e.Error(), "secret") {
			t.Errorf("got %+v", e)
		}
	})
}
