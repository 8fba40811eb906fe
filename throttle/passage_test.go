package throttle

import (
	"testing"
	"unsafe"
)

// The runtime gives out memory by sizes, of which 208 is one: with more, each
// attempt costs 224 bytes.
func TestPassageSize(t *testing.T) {
	if n := unsafe.Sizeof(passage{}); n > 208 {
		t.Errorf("%d bytes", n)
	}
}
