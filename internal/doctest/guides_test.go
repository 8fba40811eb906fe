package doctest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirhttp/weir/internal/doctest"
	"github.com/weirhttp/weir/throttle"
)

// root is the folder of the repository.
const root = "../.."

func guides(t *testing.T) []string {
	files, err := filepath.Glob(root + "/docs/*.md")
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	return append(files, root+"/README.md")
}

// TestREADME compiles every Go block of the README and the guides, but those
// that need modules beside this one.
func TestREADME(t *testing.T) { doctest.Compile(t, root, false, guides(t)...) }

// TestREADMELinks: a link to a file of the repository finds it, in every page that users read.
func TestREADMELinks(t *testing.T) {
	for _, file := range append(guides(t), changelog, root+"/CONTRIBUTING.md", root+"/SECURITY.md", root+"/examples/README.md", root+"/redisstore/README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:\]\(|src="|srcset=")([^)#"]+)`).FindAllStringSubmatch(string(text), -1) {
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
	text, err := os.ReadFile(root + "/docs/budgets.md")
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

// names are what the modules export that the guides speak of.
func names(t *testing.T) map[string]bool {
	return doctest.Names(t, root, ".", "throttle", "throttle/store", "throttle/storetest", "retry", "breaker", "headers", "inspect",
		"redisstore", "filestore", "outbox", "otelweir")
}

// ours is how a name of ours begins in a guide.
var ours = regexp.MustCompile(`^(weir|throttle|store|storetest|retry|breaker|headers|inspect|redisstore|filestore|outbox|otelweir|Throttle|Retry|Breaker|Config|Host|Transport|Limiter|Circuits|Decision)\.`)

// TestGuidesNameWhatThereIs: a name in the README or a guide is exported.
func TestGuidesNameWhatThereIs(t *testing.T) {
	exported := names(t)
	for _, file := range append(guides(t), changelog) {
		text := doctest.Text(t, file)
		if file == changelog {
			text = changes.ReplaceAllString(text, "")
		}
		for _, name := range doctest.Quoted(text) {
			if ours.MatchString(name) && !exported[name] {
				t.Errorf("%s: there is no %s", file, name)
			}
		}
	}
}

const changelog = root + "/CHANGELOG.md"

// changes are the rows of CHANGELOG.md's table of names.
var changes = regexp.MustCompile(`(?m)^\| (.*) \| (.*) \|\n`)

// TestChangedNames: in CHANGELOG.md's table of changed names, what stands on the
// right is exported, and what stands on the left alone is not.
func TestChangedNames(t *testing.T) {
	exported, n := names(t), 0
	for _, row := range changes.FindAllStringSubmatch(doctest.Text(t, changelog), -1) {
		here := doctest.Quoted(row[2])
		for _, name := range here {
			if n++; ours.MatchString(name) && !exported[name] {
				t.Errorf("there is no %s", name)
			}
		}
		for _, name := range doctest.Quoted(row[1]) {
			if n++; exported[name] && !slices.Contains(here, name) {
				t.Errorf("%s is still there", name)
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d names found", n)
	}
}
