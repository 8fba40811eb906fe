package throttle_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// How an attempt that brought no answer counts against its host.
func TestLostAttempts(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		deadline, cancel, after time.Duration
		lost                    bool
	}{
		"broken":                    {0, 0, sec, true},
		"cancelled":                 {0, sec, time.Hour, false},
		"a deadline of a second":    {sec, 0, time.Hour, true},
		"a deadline just below":     {sec - time.Millisecond, 0, time.Hour, false},
		"cancelled, and a deadline": {time.Hour, 2 * sec, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) {
					return nil, cmp.Or(testnet.Wait(r.Context(), test.after), broken)
				}), throttle.Config{})
				ctx := t.Context()
				if test.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.deadline)
					defer cancel()
				}
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				if test.cancel > 0 {
					time.AfterFunc(max(1, test.cancel), cancel)
				}
				if _, err := get(t, ctx, tr, "http://h/x"); err == nil {
					t.Fatal("no error")
				}
				fewer := false
				for _, x := range statsOf(t, tr).Learned {
					fewer = fewer || x.Kind == throttle.LearnedConcurrency
				}
				if fewer != test.lost {
					t.Errorf("fewer at a time: %t, want %t; %+v", fewer, test.lost, statsOf(t, tr).Learned)
				}
			})
		})
	}
}
