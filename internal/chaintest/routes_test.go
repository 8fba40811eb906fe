package chaintest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/retry"
)

// TestARouteThatRefusesHoldsUpNoOther: where others are served, what one route refuses
// and says no more of is its own, until another is refused as well.
func TestARouteThatRefusesHoldsUpNoOther(t *testing.T) {
	for _, every := range []int{-1, 2, 4, 8} { // of the calls one is refused; -1: the first two
		synctest.Test(t, func(t *testing.T) {
			s := &limited{start: time.Now(), way: 20 * time.Millisecond, allow: poison}
			rt := must(weir.New(s, weir.Config{}))(t)
			for i := range 40 {
				path := fmt.Sprintf("http://h/served%d/", i%5)
				if i%every == 1 || every < 0 && i < 2 { // its end is a 429, or that it may wait no longer
					r := get(t, "http://h/v1/refused")
					rt.RoundTrip(r.WithContext(retry.With(r.Context(), retry.Override{MaxAttempts: 2})))
					continue
				}
				begin := time.Now()
				resp, err := rt.RoundTrip(get(t, path))
				if took := time.Since(begin); err != nil || resp.StatusCode != 200 || took > 100*time.Millisecond {
					t.Errorf("call %d to %s, beside a route that refuses: %v, %v after %v", i, path, resp, err, took)
				}
			}
		})
	}
}
