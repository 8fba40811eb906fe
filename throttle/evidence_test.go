package throttle_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// TestALimitIsForgottenAfterALongIdling: nothing has borne it out since.
func TestALimitIsForgottenAfterALongIdling(t *testing.T) {
	for idle, want := range map[time.Duration]bool{throttle.ForgetRate: true, throttle.ForgetRate + 1: false} {
		synctest.Test(t, func(t *testing.T) {
			tr := newTransport(t, newBase(nil), throttle.Config{Learned: knowing(throttle.KnownLimit{Kind: throttle.LearnedRate, Unit: requests, Limit: 1, Per: sec, Left: 3})})
			mustGet(t, tr, "http://a/x")
			time.Sleep(idle)
			mustGet(t, tr, "http://a/x")
			believed := slices.ContainsFunc(statsOf(t, tr).Learned, func(l throttle.LearnedLimit) bool { return l.Kind == throttle.LearnedRate })
			if believed != want {
				t.Errorf("after %v: it is believed: %t", idle, believed)
			}
		})
	}
}

// What brings no answer, because it was not sent, takes nothing of the limit that was found.
func TestWhatIsNotSentIsNoEvidence(t *testing.T) {
	for _, sent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			c := throttle.Config{Learned: knowing(throttle.KnownLimit{Kind: throttle.LearnedRate, Unit: requests, Limit: 1, Per: sec, Left: 3})}
			tr := newTransport(t, metered{testnet.Func(func(r *http.Request) (*http.Response, error) {
				if n++; n > 1 && n <= 4 && !sent {
					return nil, meterRefusal{errors.New("open")}
				}
				return testnet.Answer(r, 200, nil, nil), nil
			})}, c)
			mustGet(t, tr, "http://a/x")
			time.Sleep(10 * sec) // nothing is in use
			start := time.Now()
			for range 3 {
				get(t, t.Context(), tr, "http://a/x")
			}
			early := time.Since(start)
			mustGet(t, tr, "http://a/x")
			if waits := time.Since(start) > early+sec/2; early > sec/10 || waits != sent {
				t.Errorf("three were sent: %t; a fourth waits: %t, and they for %v", sent, waits, early)
			}
		})
	}
}

// The first request to a host is evidence, too: two that were refused at one instant
// show a limit.
func TestTheFirstRequestIsEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := telling(t, throttle.Config{}, speech{status: 429, Signal: headers.Signal{Throttled: true, Kind: headers.Quota}, after: sec})
		for range 2 {
			go get(t, t.Context(), tr, "http://a/x")
		}
		time.Sleep(sec)
		synctest.Wait()
		if !slices.ContainsFunc(statsOf(t, tr).Learned, func(l throttle.LearnedLimit) bool { return l.Kind == throttle.LearnedRate }) {
			t.Errorf("no limit is found: %+v", statsOf(t, tr).Learned)
		}
	})
}
