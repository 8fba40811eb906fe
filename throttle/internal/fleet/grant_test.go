package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A grant that was cancelled goes back to the store, also when its context ends
// while it waits for its time.
func TestFleetGrantsComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		f := testFleet(t, s, Config{})
		draws := on("k", meter.Spec{Limit: 2, Per: time.Second, Burst: 1, Bucket: true})
		if _, err := take(f, t.Context(), draws, nil, 0, time.Minute); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		time.AfterFunc(100*time.Millisecond, cancel)
		if _, err := take(f, ctx, draws, nil, 0, time.Minute); err == nil || err.Err != context.Canceled {
			t.Errorf("got %v", err)
		}
		time.Sleep(10 * time.Millisecond)
		start := time.Now()
		if _, err := take(f, t.Context(), draws, nil, 0, time.Minute); err != nil || time.Since(start) > 450*time.Millisecond {
			t.Errorf("the next one waited %v: %v", time.Since(start), err)
		}
		if isZero([]int64{0, 1}) || !isZero([]int64{0, 0}) || !isZero(nil) {
			t.Error("what is nothing")
		}
	})
}
