package retry

import (
	"testing"
	"unsafe"
)

// This test is in the package because the count of allocations, which a caller can
// see, does not show their size.

// The runtime gives out memory by sizes, of which 144 is one: with more, each
// attempt that has a timeout costs 160 bytes.
func TestAFlightTakes144Bytes(t *testing.T) {
	if n := unsafe.Sizeof(flight{}); n > 144 {
		t.Errorf("%d bytes", n)
	}
}
