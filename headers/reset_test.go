package headers_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
)

// TestParseReset holds how deltas, Unix times and nonsense are told apart.
func TestParseReset(t *testing.T) {
	for _, c := range []struct {
		text string
		unit time.Duration
		want time.Duration
		ok   bool
	}{
		{"60", time.Second, time.Minute, true},
		{"60", time.Millisecond, 60 * time.Millisecond, true},
		{"31622400", time.Second, 366 * day, true},
		{"31622401", time.Second, 0, false},
		{"946684799", time.Second, 0, false},
		{"946684800", time.Second, 0, true}, // long past
		{"1768478460", time.Second, time.Minute, true},
		{"1768478460000", time.Second, time.Minute, true},
		{"1768478460000", time.Millisecond, time.Minute, true},
		{"1768478460000000", time.Second, time.Minute, true},
		{"1768478460000000000", time.Second, time.Minute, true},
		{"-5", time.Second, 0, true},
		{"-5s", time.Second, 0, true},
		{"never", time.Second, 0, false},
		{"", time.Second, 0, false},
		{"-", time.Second, 0, false},
	} {
		name := map[time.Duration]string{time.Second: "X-Ratelimit-Reset", time.Millisecond: "X-Ratelimit-Reset-Ms"}[c.unit]
		got := headers.Parse(response(200, http.Header{"X-Ratelimit-Limit": {"1"}, name: {c.text}}), noon).Limits[0].Reset
		if got.Value != c.want || got.Known != c.ok {
			t.Errorf("%q in %v resets in %v, want %v, %v", c.text, c.unit, got, c.want, c.ok)
		}
	}
}
