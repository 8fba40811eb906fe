package throttle_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain makes properties look at the same schedules in every run, so that a
// run that fails can be repeated. To look at others: -rapid.seed=n.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.seed"); f != nil && f.Value.String() == "0" {
		flag.Set("rapid.seed", "20260101")
	}
	os.Exit(m.Run())
}
