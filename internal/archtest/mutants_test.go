package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMutantsAreNotStale: each mutant of ci/mutants/contract.txt, which is a change that a test must
// notice, changes code that is still there. One that changes nothing shows nothing, and that would
// be noticed only when somebody runs them all.
func TestMutantsAreNotStale(t *testing.T) {
	root := filepath.Join("..", "..")
	list, err := os.ReadFile(filepath.Join(root, "ci", "mutants", "contract.txt"))
	if err != nil {
		t.Fatal(err)
	}
	unescape := strings.NewReplacer(`\n`, "\n", `\t`, "\t")
	mutants := 0
	for line := range strings.Lines(string(list)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		mutants++
		fields := strings.Split(line, " | ")
		if len(fields) != 5 {
			t.Errorf("%q has %d fields, want 5", line, len(fields))
			continue
		}
		name, file, old := fields[0], fields[1], unescape.Replace(fields[2])
		if code, err := os.ReadFile(filepath.Join(root, file)); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !strings.Contains(string(code), old) {
			t.Errorf("%s: %s does not contain %q", name, file, old)
		}
	}
	if mutants < 50 {
		t.Errorf("found %d mutants, want at least 50", mutants)
	}
}
