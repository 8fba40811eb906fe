package throttle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/store"
)

func TestFleetConfigNamesFaults(t *testing.T) {
	for want, c := range map[string]throttle.FleetConfig{
		"throttle: Fleet.Members: 0: set it to the largest number of processes that share the Store, so that each can continue with its share of the rates while the Store is gone (or set Fleet.WhenDown to FailClosed or FailOpen)": {},

		"throttle: Fleet.Spread: 9601h0m0s is longer than any window a Store keeps, which is 9600h0m0s": {WhenDown: throttle.FailOpen, Spread: 9601 * time.Hour},
		"throttle: Fleet.Members: -1 is negative":                                                       {Members: -1},
		"throttle: Fleet.WhenDown: 3 is unknown":                                                        {WhenDown: 3},
		"throttle: Fleet.Deadline: -1s is negative":                                                     {WhenDown: throttle.FailOpen, Deadline: -time.Second},
		"throttle: Fleet.Lease: 2m0s is not between 0 and 1 min":                                        {WhenDown: throttle.FailOpen, Lease: 2 * time.Minute},
	} {
		if _, err := throttle.NewLimiter(throttle.LimiterConfig{Store: store.NewMemory(), Fleet: c}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A Spread that makes a budget's windows too long for a Store is named, with the
// budget; a budget that is too long without it is named alone.
func TestLongSpreadIsNamed(t *testing.T) {
	for _, tt := range []struct {
		budget, want string
		spread       time.Duration
	}{
		{"5/399d", "throttle: Fleet.Spread: 25h0m0s is too long for Default: 5/57w: ", 25 * time.Hour},
		{"5/401d", "throttle: Default: a Store cannot keep 5/401d: ", time.Hour},
		{"5/400d", "throttle: Default: a Store cannot keep 5/400d: ", 0},
		{"5/s", "", time.Hour},
	} {
		tr, err := throttle.New(nil, throttle.Config{Default: throttle.MustParseBudget(tt.budget), Store: store.NewMemory(), Fleet: throttle.FleetConfig{WhenDown: throttle.FailOpen, Spread: tt.spread}})
		if got := fmt.Sprint(err); tt.want == "" && err != nil || tt.want != "" && !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s with a spread of %v: %v, want %s", tt.budget, tt.spread, err, tt.want)
		}
		if err == nil {
			tr.Close()
		}
	}
}

// How the store does is told by Limiters and Transports alike.
func TestStoreStateIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("10/s"), Store: s, Fleet: throttle.FleetConfig{WhenDown: throttle.FailOpen}})
		if err != nil {
			t.Fatal(err)
		}
		tr := sharedTransports(t, s, throttle.Config{Default: throttle.MustParseBudget("10/s"), Fleet: throttle.FleetConfig{WhenDown: throttle.FailOpen}}, 1, newBase(nil))[0]
		defer tr.Close()
		ask := func(n int) {
			for range n {
				l.Take(t.Context(), "k", nil)
				mustGet(t, tr, "http://h/")
				time.Sleep(100 * time.Millisecond)
			}
		}
		ask(1)
		if l.StoreState() != throttle.StoreUp || tr.StoreState() != throttle.StoreUp {
			t.Error("it is up")
		}
		s.Fail(errors.New("gone"), false)
		ask(5)
		if l.StoreState() != throttle.StoreGone || tr.StoreState() != throttle.StoreGone {
			t.Errorf("it is gone, and said to be %v and %v", l.StoreState(), tr.StoreState())
		}
		l.Close()
		alone := newLimiter(t, "10/s")
		if alone.StoreState() != throttle.StoreUp || newTransport(t, nil, throttle.Config{}).StoreState() != throttle.StoreUp {
			t.Error("without a store nothing is down")
		}
		fleet := func(c throttle.FleetConfig) error {
			l, err := throttle.NewLimiter(throttle.LimiterConfig{Store: s, Fleet: c})
			if err == nil {
				l.Close()
			}
			return err
		}
		if err := fleet(throttle.FleetConfig{WhenDown: throttle.FailOpen, Spread: -1}); err == nil || err.Error() != "throttle: Fleet.Spread: -1ns is negative" {
			t.Error(err)
		}
		for lease, ok := range map[time.Duration]bool{-1: false, 0: true, time.Minute: true, time.Minute + 1: false} {
			if err := fleet(throttle.FleetConfig{WhenDown: throttle.FailOpen, Lease: lease}); (err == nil) != ok {
				t.Errorf("a lease of %v: %v", lease, err)
			}
		}
	})
}
