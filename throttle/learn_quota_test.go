package throttle_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle"
)

// A limit that is not mentioned any more is forgotten after ten minutes, or two
// of its windows.
func TestQuotasAreForgotten(t *testing.T) {
	for _, test := range []struct {
		window, after time.Duration
		kept          bool
	}{{0, 10 * time.Minute, true}, {0, 10*time.Minute + 1, false}, {time.Hour, 2 * time.Hour, true}, {time.Hour, 2*time.Hour + 1, false}, {sec, 10 * time.Minute, true}} {
		synctest.Test(t, func(t *testing.T) {
			l := left(9, 0)
			l.Name, l.Window = "a", headers.Opt[time.Duration]{Value: test.window, Known: test.window > 0}
			tr := telling(t, throttle.Config{}, stating(l), speech{})
			mustGet(t, tr, "http://h/x")
			time.Sleep(test.after)
			mustGet(t, tr, "http://h/x")
			if _, limits, _ := throttle.LearnedKept(tr, "h"); (limits == 1) != test.kept {
				t.Errorf("%+v: kept %t", test, !test.kept)
			}
		})
	}
}
