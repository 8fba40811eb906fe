package weir_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhttp/weir/internal/doctest"
	"github.com/weirhttp/weir/throttle"
)

func guides(t *testing.T) []string {
	files, err := filepath.Glob("docs/*.md")
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	return append(files, "README.md")
}

// TestREADME compiles every Go block of the README and the guides, but those
// that need modules beside this one.
func TestREADME(t *testing.T) { doctest.Compile(t, ".", false, guides(t)...) }

// TestREADMELinks: a link to a file of the repository finds it.
func TestREADMELinks(t *testing.T) {
	for _, file := range guides(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// TestBudgetsGuide: every budget in the guide's table can be parsed.
func TestBudgetsGuide(t *testing.T) {
	text, err := os.ReadFile("docs/budgets.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shapes, _ := strings.Cut(string(text), "## Shapes")
	shapes, _, _ = strings.Cut(shapes, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| [^|`]* \\| `([^`]+)` \\|").FindAllStringSubmatch(shapes, -1)
	for _, row := range rows {
		if _, err := throttle.ParseBudget(row[1]); err != nil {
			t.Error(err)
		}
	}
	if len(rows) < 7 {
		t.Errorf("only %d budgets found: %q", len(rows), rows)
	}
}
