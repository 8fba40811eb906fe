package meter_test

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// TestWindowsFollowOneAnother: without a gap, each beginning where the last
// ended, over years of several places.
func TestWindowsFollowOneAnother(t *testing.T) {
	for _, place := range []string{"America/Los_Angeles", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Tehran", "Africa/Casablanca", "Pacific/Apia"} {
		for _, per := range []time.Duration{24 * time.Hour, 12 * time.Hour, 7 * time.Hour, time.Hour} {
			at := time.Date(2011, 1, 1, 0, 0, 0, 0, zone(t, place))
			for stop := at.AddDate(8, 0, 0); at.Before(stop); {
				start, end := meter.WindowStart(at, per), meter.WindowEnd(at, per)
				if start.After(at) || !end.After(at) || end.Sub(start) > per+25*time.Hour {
					t.Fatalf("%s per %v: %v lies in %v to %v", place, per, at, start, end)
				}
				if last := meter.WindowStart(end.Add(-1), per); !last.Equal(start) {
					t.Fatalf("%s per %v: %v to %v, but its last instant lies in one from %v", place, per, start, end, last)
				}
				if next := meter.WindowStart(end, per); !next.Equal(end) {
					t.Fatalf("%s per %v: after %v to %v comes %v", place, per, start, end, next)
				}
				at = end
			}
		}
	}
}

// TestWindowsOfAPlace: windows begin at multiples of Per of the place's clock,
// also on the days on which that is changed.
func TestWindowsOfAPlace(t *testing.T) {
	const day, hour = 24 * time.Hour, time.Hour
	tests := []struct {
		place, at  string // local time; for an hour that comes twice, "2nd" after it
		per        time.Duration
		start, end string // UTC
	}{
		{"America/Los_Angeles", "2026-06-10 13:00", day, "2026-06-10 07:00", "2026-06-11 07:00"},
		{"America/Los_Angeles", "2026-03-08 13:00", day, "2026-03-08 08:00", "2026-03-09 07:00"}, // 23 hours
		{"America/Los_Angeles", "2026-11-01 13:00", day, "2026-11-01 07:00", "2026-11-02 08:00"}, // 25 hours
		{"America/Los_Angeles", "2026-11-01 00:30", day, "2026-11-01 07:00", "2026-11-02 08:00"},
		{"America/Los_Angeles", "2026-03-08 01:30", hour, "2026-03-08 09:00", "2026-03-08 10:00"},
		{"America/Los_Angeles", "2026-03-08 01:30", 2 * hour, "2026-03-08 08:00", "2026-03-08 10:00"}, // 02:00 is jumped over
		{"America/Los_Angeles", "2026-11-01 01:30", hour, "2026-11-01 08:00", "2026-11-01 09:00"},     // the first 01:30
		{"America/Sao_Paulo", "2018-11-04 12:00", day, "2018-11-04 03:00", "2018-11-05 02:00"},        // midnight did not happen
		{"America/Sao_Paulo", "2018-11-03 12:00", day, "2018-11-03 03:00", "2018-11-04 03:00"},
		{"Australia/Lord_Howe", "2026-04-05 12:00", hour, "2026-04-05 01:30", "2026-04-05 02:30"},
		{"Asia/Kathmandu", "2026-01-01 00:10", hour, "2025-12-31 18:15", "2025-12-31 19:15"},
		{"UTC", "2026-07-01 12:00", 7 * day, "2026-06-29 00:00", "2026-07-06 00:00"}, // from Monday
	}
	const layout = "2006-01-02 15:04"
	for _, test := range tests {
		at, err := time.ParseInLocation(layout, test.at, zone(t, test.place))
		if err != nil {
			t.Fatal(err)
		}
		start, end := meter.WindowStart(at, test.per), meter.WindowEnd(at, test.per)
		if s, e := start.UTC().Format(layout), end.UTC().Format(layout); s != test.start || e != test.end {
			t.Errorf("%s in %s, per %v: got %s to %s, want %s to %s", test.at, test.place, test.per, s, e, test.start, test.end)
		}
	}
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	place, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return place
}
