package trip

import (
	"testing"
	"unsafe"
)

// A new trip costs memory of the next size the runtime has. Beyond 512 bytes that
// is of a slower kind, too.
func TestATripTakesNoLargerSizeOfMemory(t *testing.T) {
	if n := unsafe.Sizeof(box{}); n > 480 {
		t.Errorf("%d bytes", n)
	}
}
