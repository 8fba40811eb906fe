package throttle_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

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
