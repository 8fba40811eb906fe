package headers_test

import (
	"testing"

	"github.com/weirhttp/weir/headers"
)

// What a limit says is left, and whether that is nothing.
func TestWhatALimitSaysIsLeft(t *testing.T) {
	known := func(v float64) headers.Opt[float64] { return headers.Opt[float64]{Value: v, Known: true} }
	for _, test := range []struct {
		l       headers.Limit
		left    float64
		ok, out bool
	}{
		{headers.Limit{Remaining: known(3)}, 3, true, false},
		{headers.Limit{Remaining: known(0)}, 0, true, true},
		{headers.Limit{Quota: known(10), Used: known(4)}, 6, true, false},
		{headers.Limit{Quota: known(10), Used: known(14)}, 0, true, true},
		{headers.Limit{Remaining: known(3), Quota: known(10), Used: known(10)}, 3, true, false},
		{headers.Limit{Quota: known(10)}, 0, false, false},
		{headers.Limit{Used: known(4)}, 0, false, false},
		{headers.Limit{UsedRatio: known(1)}, 0, false, true},
		{headers.Limit{UsedRatio: known(0.99)}, 0, false, false},
		{headers.Limit{}, 0, false, false},
	} {
		if left, ok := test.l.Left(); left != test.left || ok != test.ok {
			t.Errorf("%+v: %v, %t", test.l, left, ok)
		}
		if got := test.l.Exhausted(); got != test.out {
			t.Errorf("%+v: exhausted %t", test.l, got)
		}
	}
}
