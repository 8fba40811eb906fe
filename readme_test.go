package weir_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestREADME compiles every Go block of the README as the body of a function
// in a package outside the module's own.
func TestREADME(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 3 {
		t.Fatalf("%d Go blocks found", len(blocks))
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, b := range blocks {
		write(fmt.Sprintf("block%d.go", i), compilable(i, b[1]))
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	requires := strings.SplitN(string(mod), "\n", 2)[1]
	write("go.mod", "module readme\n"+requires+"\nrequire github.com/weirhttp/weir v0.0.0\nreplace github.com/weirhttp/weir => "+here+"\n")
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	write("go.sum", string(sum))
	cmd := exec.Command("go", "vet", "./...")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// compilable makes a block the body of a function with the names it uses.
func compilable(i int, block string) string {
	var b strings.Builder
	b.WriteString("package readme\n\nimport (\n")
	for name, path := range map[string]string{
		"errors":   "errors",
		"http":     "net/http",
		"weir":     "github.com/weirhttp/weir",
		"throttle": "github.com/weirhttp/weir/throttle",
		"retry":    "github.com/weirhttp/weir/retry",
		"breaker":  "github.com/weirhttp/weir/breaker",
	} {
		if name == "http" || regexp.MustCompile(`\b`+name+`\.`).MatchString(block) {
			fmt.Fprintf(&b, "\t%q\n", path)
		}
	}
	fmt.Fprintf(&b, ")\n\nfunc block%d(client *http.Client, req *http.Request", i)
	for _, f := range []string{"tryLater", "trySomewhereElse"} {
		if strings.Contains(block, f) {
			fmt.Fprintf(&b, ", %s func(any) error", f)
		}
	}
	b.WriteString(") (result error) {\n{\n" + block + "\n_ = client\n")
	if strings.Contains(block, "resp, ") {
		b.WriteString("_ = resp\n")
	}
	if strings.Contains(block, "err") {
		b.WriteString("_ = err\n")
	}
	b.WriteString("}\nreturn nil\n}\n")
	return b.String()
}
