// Package doctest compiles the Go blocks of Markdown files, in a module that it makes in
// a temporary folder. A block that begins with a declaration of a type or function is
// compiled as a file, any other as the body of a function.
package doctest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// known are the packages that a block may name.
var known = []string{
	"context", "errors", "fmt", "net/http", "net/http/httptest", "strings", "database/sql", "testing", "testing/synctest", "time",
	"github.com/weirhttp/weir", "github.com/weirhttp/weir/breaker", "github.com/weirhttp/weir/headers",
	"github.com/weirhttp/weir/inspect", "github.com/weirhttp/weir/retry", "github.com/weirhttp/weir/throttle", "github.com/weirhttp/weir/throttle/store",
	"github.com/weirhttp/weir/filestore", "github.com/weirhttp/weir/outbox", "github.com/weirhttp/weir/redisstore",
	"github.com/hashicorp/go-retryablehttp", "github.com/redis/go-redis/v9",
}

// prelude declares what blocks may use without declaring it.
const prelude = `package blocks

import "net/http"

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func tryLater(any) error { return nil }

func trySomewhereElse(any) error { return nil }

var _ = []any{roundTripper(nil), tryLater, trySomewhereElse}
`

// others are the modules beside the root that blocks may need.
var others = []string{"filestore", "outbox", "redisstore"}

// Compile runs go vet over the blocks of files, and fails t if that complains or if there
// are no blocks. root is the folder of the repository. Blocks that need modules other
// than the root's are skipped unless all is set.
func Compile(t *testing.T, root string, all bool, files ...string) {
	t.Helper()
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir, n := t.TempDir(), 0
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range files {
		for _, block := range Blocks(t, file) {
			if !all && slices.ContainsFunc(others, func(m string) bool { return strings.Contains(block, m+".") }) {
				continue
			}
			n++
			if declares(block) {
				folder := fmt.Sprintf("block%d", n)
				if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
					t.Fatal(err)
				}
				write(folder+"/block.go", "package blocks\n\n"+imports(block)+block)
				continue
			}
			write(fmt.Sprintf("block%d.go", n), body(n, file, block))
		}
	}
	if n == 0 {
		t.Fatalf("no Go blocks in %v", files)
	}
	write("prelude.go", prelude)
	mod, sum := module(t, root, all)
	write("go.mod", mod)
	write("go.sum", sum)
	cmd := exec.Command("go", "vet", "-unreachable=false", "./...")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Blocks returns the Go blocks of a Markdown file, without the lines that fence them.
func Blocks(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, b := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, b[1])
	}
	return blocks
}

// module returns go.mod and go.sum for the blocks.
func module(t *testing.T, root string, all bool) (mod, sum string) {
	t.Helper()
	modules := []string{"."}
	mod = "module blocks\n\ngo 1.26.0\n"
	if all {
		modules = append(modules, others...)
	} else {
		mod = "module blocks\n\ngo 1.25.0\n"
	}
	for _, m := range modules {
		text, err := os.ReadFile(filepath.Join(root, m, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range regexp.MustCompile(`(?m)^\t(\S+ v\S+)`).FindAllStringSubmatch(string(text), -1) {
			if !strings.HasPrefix(r[1], "github.com/weirhttp/") {
				mod += "require " + r[1] + "\n"
			}
		}
		path := strings.TrimSuffix("github.com/weirhttp/weir/"+m, "/.")
		mod += fmt.Sprintf("require %s v0.0.0\nreplace %s => %s\n", path, path, filepath.Join(root, m))
		sums, err := os.ReadFile(filepath.Join(root, m, "go.sum"))
		if err != nil {
			t.Fatal(err)
		}
		sum += string(sums)
	}
	return mod, sum
}

// given are the variables that a block may use without declaring them.
var given = []struct{ name, typ string }{
	{"client", "*http.Client"},
	{"req", "*http.Request"},
	{"ctx", "context.Context"},
	{"t", "*testing.T"},
	{"transport", "*weir.Transport"},
	{"circuits", "*breaker.Circuits"},
	{"db", "*sql.DB"},
	{"old", "*retryablehttp.Client"},
}

// made are the variables that a block may declare without using them.
var made = []string{"config", "client", "resp", "err", "ctx", "limiter", "transport"}

// declares reports whether a block is compiled as a file.
func declares(block string) bool {
	return strings.HasPrefix(block, "type ") || strings.HasPrefix(block, "func ")
}

// imports is the import declaration of code.
func imports(code string) string {
	var b strings.Builder
	b.WriteString("import (\n")
	for _, path := range known {
		if regexp.MustCompile(`\b` + name(path) + `\.`).MatchString(code) {
			fmt.Fprintf(&b, "\t%q\n", path)
		}
	}
	b.WriteString(")\n\n")
	return b.String()
}

// body returns a file with block n as the body of a function, whose parameters are the
// given variables that the block uses.
func body(n int, file, block string) string {
	has := func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(block) }
	var parameters []string
	for _, g := range given {
		if has(`\b` + g.name + `\b`) {
			parameters = append(parameters, g.name+" "+g.typ)
		}
	}
	head := fmt.Sprintf("// %s\nfunc block%d(%s) (_ error) {\n{\n%s", filepath.Base(file), n, strings.Join(parameters, ", "), block)
	var b strings.Builder
	b.WriteString("package blocks\n\n" + imports(head) + head)
	for _, word := range made {
		if has(`(?m)^(\w+, )?` + word + `(, err)? :?= `) {
			b.WriteString("\n_ = " + word)
		}
	}
	b.WriteString("\n}\nreturn nil\n}\n")
	return b.String()
}

// name is what a package is called in code.
func name(path string) string {
	switch path {
	case "github.com/hashicorp/go-retryablehttp":
		return "retryablehttp"
	case "github.com/redis/go-redis/v9":
		return "redis"
	}
	return path[strings.LastIndex(path, "/")+1:]
}
