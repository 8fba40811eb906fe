package trip

import (
	"testing"
	"unsafe"
)

// A new trip takes memory together with what a throttle adds to it, which counts on 408
// bytes.
func TestATripTakesNoLargerSizeOfMemory(t *testing.T) {
	if n := unsafe.Sizeof(Box{}); n > 408 {
		t.Errorf("%d bytes", n)
	}
}
