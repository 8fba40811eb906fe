package learn

import "testing"

// TestALimitIsShownAsPeopleWriteIt, with what spoke for it.
func TestALimitIsShownAsPeopleWriteIt(t *testing.T) {
	for want, c := range map[string]candidate{
		"20 per 2s, sliding":                          {shape: shape{family: slidingLog, per: 2 * second}, size: 20},
		"100 per 1m from the first request":           {shape: shape{family: windowFirst, per: 60 * second}, size: 100},
		"1000 per 1h by the clock":                    {shape: shape{family: windowClock, per: 3600 * second}, size: 1000},
		"30 per 10s, counted in two windows":          {shape: shape{family: counter, per: 10 * second}, size: 30},
		"5/s, bucket of 10":                           {shape: shape{family: bucket, per: second / 5}, size: 10},
		"7 at a time":                                 {shape: shape{family: atOnce}, size: 7},
		"3 per 1.5s, sliding, refused requests count": {shape: shape{family: slidingLog, per: second * 3 / 2, refused: true}, size: 3},
	} {
		if got := c.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
