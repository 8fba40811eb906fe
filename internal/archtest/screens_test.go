package archtest

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// screens is how many lines go doc may print for a package: three screens of 50.
const screens = 3 * 50

// begins matches how a package comment says where a reader may begin: what most programs need of
// the package, or who does not need it.
var begins = regexp.MustCompile(`Most programs\s+need |do not need this package`)

// TestGoDocFitsThreeScreens: a reader can take in at one go what a package is for and what it has.
// If go doc -all prints more than twice as much, the package comment says where to begin.
func TestGoDocFitsThreeScreens(t *testing.T) {
	for _, dir := range []string{".", "throttle", "throttle/store", "throttle/storetest", "retry", "breaker", "headers", "inspect",
		"outbox", "redisstore", "filestore", "otelweir"} {
		brief, all := goDoc(t, dir, "."), goDoc(t, dir, "-all", ".")
		if n := strings.Count(brief, "\n"); n > screens || n < 10 {
			t.Errorf("%s: go doc prints %d lines, want 10 to %d", dir, n, screens)
		}
		if n := strings.Count(all, "\n"); n > 2*screens && !begins.MatchString(brief) {
			t.Errorf("%s: go doc -all prints %d lines; if it is more than %d, the package comment has to match %q", dir, n, 2*screens, begins)
		}
	}
}

func goDoc(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("go", append([]string{"doc"}, args...)...)
	c.Dir = filepath.Join("..", "..", dir)
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: go doc: %v", dir, err)
	}
	return string(out)
}
