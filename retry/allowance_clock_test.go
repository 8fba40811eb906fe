package retry

import (
	"testing"
	"time"
)

// This test is in the package because no clock that a RoundTripper reads steps back:
// only callers that read it one after the other and come here in the other order show
// that.

// A reading that is older than the last one brings no tokens, and takes none.
func TestAnOlderReadingBringsNoTokens(t *testing.T) {
	var a allowance
	now := time.Now()
	for a.take(100, now) {
	}
	if before := now.Add(-time.Hour); a.take(100, before) || a.left(100, before) != 2 {
		t.Error("a step back brought tokens")
	}
	if a.take(100, now.Add(3999*time.Millisecond)) || !a.take(100, now.Add(4*time.Second)) {
		t.Error("12 more tokens come in 4s")
	}
}
