package throttle_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// TestStrangersHearWhatOneThatAskedIsTold: where requests with a token each share one
// limit, those that wait learn from the answer to one that asked meanwhile: they wait
// as long as it does, and know what it has spent of a bucket that fills. Else that one
// and they are refused again and again.
func TestStrangersHearWhatOneThatAskedIsTold(t *testing.T) {
	const runs, asked = 12, 4
	for _, s := range []limitedServer{
		{kind: slidingLog, dialect: xOnRefusals, quota: 6, size: 6, window: 9 * time.Second, trip: 120 * time.Millisecond, workers: 197, calls: 30},
		{kind: largerBucket, dialect: ietfAlways, quota: 13, size: 24, window: 4 * time.Second, trip: 306 * time.Millisecond, workers: 132, calls: 76},
	} {
		one, each, call := 0, 0, 0
		for range runs {
			var n atomic.Int64
			one += s.refusals(t, func(int) string { return "one" })
			each += s.refusals(t, func(int) string { return strconv.FormatInt(n.Add(1), 10) })
			call += s.refusals(t, strconv.Itoa)
		}
		if got, most := max(each, call), 2*one+runs*asked; got > most {
			t.Errorf("%v: %d refused in %d runs with many tokens, want at most %d: twice the %d of one token, and %d a run", s, got, runs, most, one, asked)
		}
	}
}
