package throttle

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

func TestFleetConfigNamesFaults(t *testing.T) {
	for want, c := range map[string]FleetConfig{
		"throttle: Fleet.Members: 0: a share of the rates needs the number of processes": {},
		"throttle: Fleet.Members: -1 is negative":                                        {Members: -1},
		"throttle: Fleet.WhenDown: 3 is unknown":                                         {WhenDown: 3},
		"throttle: Fleet.Deadline: -1s is negative":                                      {WhenDown: Open, Deadline: -time.Second},
		"throttle: Fleet.Lease: 2m0s is not within 0 and 1 min":                          {WhenDown: Open, Lease: 2 * time.Minute},
	} {
		if _, err := c.new(store.NewMemory()); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
