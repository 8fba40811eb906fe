package headers

import (
	"strings"
	"testing"
)

// This test is in the package because only the table itself knows all its rows: one that
// is never reached, and that no example needs, is missed by nobody.

// TestRowsPass holds that every name in the table of special shapes gets
// through the filter, or its row would be dead.
func TestRowsPass(t *testing.T) {
	for _, r := range rows {
		if name := strings.TrimSuffix(r.name, "*"); !promising(name) {
			t.Errorf("%s does not pass the filter", r.name)
		}
	}
	for _, name := range []string{"Retry-After", "X-Backoff", "RateLimit", "X-Quota-Reset", "X-Should-Retry", "X-Amzn-ErrorType", "X-Throttle-Limit"} {
		if !promising(name) || ordinary(name) {
			t.Errorf("%s does not pass the filter", name)
		}
	}
}
