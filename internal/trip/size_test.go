package trip

import (
	"testing"
	"unsafe"
)

// Beyond 512 bytes a new trip costs a larger and slower kind of memory.
func TestSize(t *testing.T) {
	if n := unsafe.Sizeof(box{}); n > 512 {
		t.Errorf("%d bytes", n)
	}
}
