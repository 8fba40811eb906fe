package archtest

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"
)

// screens is how many lines of go doc a reader gets: three screens of 50.
const screens = 3 * 50

// TestGoDocFitsThreeScreens: what a package is for and what it has is read at one go.
// A package whose go doc -all is much longer says in its comment where to begin.
func TestGoDocFitsThreeScreens(t *testing.T) {
	for _, dir := range []string{".", "throttle", "throttle/store", "throttle/storetest", "retry", "breaker", "headers", "inspect",
		"outbox", "redisstore", "filestore", "otelweir"} {
		c := exec.Command("go", "doc", ".")
		c.Dir = filepath.Join("..", "..", dir)
		out, err := c.Output()
		if err != nil {
			t.Fatal(dir, err)
		}
		if n := bytes.Count(out, []byte("\n")); n > screens || n < 10 {
			t.Errorf("%s: go doc has %d lines, want at most %d", dir, n, screens)
		}
	}
}
