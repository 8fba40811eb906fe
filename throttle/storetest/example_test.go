package storetest_test

import (
	"fmt"
	"time"

	"github.com/weirhttp/weir/throttle/store"
	"github.com/weirhttp/weir/throttle/storetest"
)

// forgetful is a store that charges nothing.
func forgetful() storetest.Setup {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return storetest.Setup{
		Stores:  []store.Store{amnesia{}, amnesia{}},
		Now:     func() time.Time { return now },
		Advance: func(d time.Duration) { now = now.Add(d) },
	}
}

// A store that charges nothing is found out. In a store's own tests, Run does
// the same with a subtest for each rule.
func ExampleTest() {
	fmt.Println(storetest.Test(forgetful) != nil)
	// Output: true
}
