package learn

import (
	"strings"
	"testing"
	"time"
)

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

// TestCandidatesSayWhatSpokeForThem.
func TestCandidatesSayWhatSpokeForThem(t *testing.T) {
	var l Learner
	now := zero
	if l.Candidates() != nil {
		t.Error("a Learner that saw nothing has candidates")
	}
	for i := range 40 { // 10 per 10 s, hints in full
		l.Sent(now, 1)
		if i%11 == 10 {
			l.Refused(now+trip, now, 1, waits(10*time.Second-time.Duration(i%11)*30*time.Millisecond))
			now += 10 * second
			continue
		}
		l.Accepted(now+trip, now, 1, Answer{})
		now += 30 * second / 1000
	}
	c := l.Candidates()[0]
	if !strings.HasPrefix(c.Limit, "10 per 10s") || c.Explains != 3 || c.Misses != 0 {
		t.Errorf("got %+v", c)
	}
	if s := c.String(); !strings.Contains(s, "said by nobody, seen in 3 refusals") {
		t.Error(s)
	}
}
