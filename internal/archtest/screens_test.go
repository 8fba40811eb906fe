package archtest

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// screens is how many lines of go doc a reader gets: three screens of 50.
const screens = 3 * 50

// begins is how a package comment says what most programs need of the package, or who
// does not need it.
var begins = regexp.MustCompile(`Most programs\s+need |do not need this package`)

// TestGoDocFitsThreeScreens: what a package is for and what it has is read at one go.
// A package whose go doc -all takes twice as much says in its comment where to begin.
func TestGoDocFitsThreeScreens(t *testing.T) {
	for _, dir := range []string{".", "throttle", "throttle/store", "throttle/storetest", "retry", "breaker", "headers", "inspect",
		"outbox", "redisstore", "filestore", "otelweir"} {
		brief, all := goDoc(t, dir, "."), goDoc(t, dir, "-all", ".")
		if n := strings.Count(brief, "\n"); n > screens || n < 10 {
			t.Errorf("%s: go doc has %d lines, want at most %d", dir, n, screens)
		}
		if n := strings.Count(all, "\n"); n > 2*screens && !begins.MatchString(brief) {
			t.Errorf("%s: go doc -all has %d lines, and the package comment does not say where to begin", dir, n)
		}
	}
}

func goDoc(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("go", append([]string{"doc"}, args...)...)
	c.Dir = filepath.Join("..", "..", dir)
	out, err := c.Output()
	if err != nil {
		t.Fatal(dir, err)
	}
	return string(out)
}
