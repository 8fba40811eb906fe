package otelweir

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/throttle"
)

// A Limiter's keys are reported added up; counts only grow, also when keys are
// forgotten, and reasons and keys without room are told.
func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("2/m burst 2"), MaxKeys: 3})
		if err != nil {
			t.Fatal(err)
		}
		reader := sdk.NewManualReader()
		r, err := New(&weir.Config{}, Config{MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader))})
		if err != nil {
			t.Fatal(err)
		}
		stop, err := r.ObserveLimiter("posts", l)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		w := watched{t: t, reader: reader}
		for range 3 {
			l.Try("ann", nil)
		}
		l.Try("ann", throttle.Cost{"requests": 9})
		l.Try("bob", nil)
		w.wants(
			`weir.limiter.granted{weir.limiter=posts} 3`,
			`weir.limiter.refusals{weir.limiter=posts,weir.reason=wait too long} 1`,
			`weir.limiter.refusals{weir.limiter=posts,weir.reason=never fits} 1`,
			`weir.limiter.queue.length{weir.limiter=posts} 0`,
			`weir.limiter.overflow{weir.limiter=posts} 0`,
		)
		for i := range 5 {
			l.Try(fmt.Sprint(i), nil)
		}
		w.wants(`weir.limiter.granted{weir.limiter=posts} 6`, `weir.limiter.overflow{weir.limiter=posts} 4`,
			`weir.limiter.refusals{weir.limiter=posts,weir.reason=wait too long} 3`)
		time.Sleep(time.Hour)
		for i := range 6 { // each takes the room of one that is idle
			l.Try(fmt.Sprint("new", i), nil)
			w.wants(fmt.Sprintf(`weir.limiter.granted{weir.limiter=posts} %d`, 7+i))
			time.Sleep(time.Hour)
		}
	})
}
