package retry_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// Each value of the enumerations has words of its own, and no other value has.
func TestEachValueHasItsWord(t *testing.T) {
	seen := make(map[string]bool)
	check := func(kind, got string, valid bool) {
		t.Helper()
		if valid == (got == "invalid") || valid && got == "" || seen[kind+got] && valid {
			t.Errorf("%s: %q", kind, got)
		}
		seen[kind+got] = true
	}
	for o := range retry.Refused + 3 {
		check("outcome ", o.String(), o <= retry.Refused)
	}
	for r := range retry.Ended + 3 {
		check("reason ", r.String(), r <= retry.Ended)
	}
	for f := range retry.Queue + 3 {
		check("wait ", f.String(), f <= retry.Queue)
	}
	if !(&retry.TimeoutError{}).Temporary() {
		t.Error("a timeout is said to last")
	}
}

// What was attempted at hosts that have been forgotten is in the sum, while
// others are met and forgotten and somebody asks.
func TestAttemptsAtForgottenHostsCount(t *testing.T) {
	rt, err := retry.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody, Request: r}, nil
	}), retry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rt.Link().Hosts.Resize(4)
	const goroutines, each, times = 4, 100, 3
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			last := int64(0)
			for i := range each {
				r, _ := http.NewRequest("GET", fmt.Sprintf("http://h%d-%d.example/", g, i), nil)
				for range times {
					if _, err := rt.RoundTrip(r); err != nil {
						t.Error(err)
					}
				}
				n := rt.Stats().Attempts
				if n < last+times || n > goroutines*each*times {
					t.Errorf("%d attempts after %d and %d more", n, last, times)
				}
				last = n
			}
		})
	}
	wg.Wait()
	if s := rt.Stats(); s.Attempts != goroutines*each*times || s.Requests != s.Attempts || len(s.Hosts) > 5 {
		t.Errorf("%d attempts of %d requests at %d hosts, want %d at 5 at most", s.Attempts, s.Requests, len(s.Hosts), goroutines*each*times)
	}
}
