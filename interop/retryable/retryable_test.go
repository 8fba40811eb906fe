package retryable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// differs are the library's tests that do not pass, and why: docs/migrating.md
// says the same.
var differs = map[string]string{
	"TestClient_Do_WithResponseHandler":              "a ResponseHandler is the request's, not the client's",
	"TestClient_Do_WithPrepareRetry":                 "its cases but the first have a ResponseHandler",
	"TestClient_Do_fails":                            "the last answer is returned, no error that says giving up",
	"TestClient_CheckRetry":                          "the error is CheckRetry's, without giving up around it",
	"TestClient_RequestWithContext":                  "a caller who has left is not asked about",
	"TestClient_DefaultRetryPolicy_redirects":        "redirects are followed outside: each hop has its attempts",
	"TestRoundTripper_TransportFailureErrorHandling": "the error wraps what failed, with the same text",
}

// TestItsOwnSuite: all of the library's tests pass but those that differ on
// purpose, which is also checked.
func TestItsOwnSuite(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}} {{.Version}}", "github.com/hashicorp/go-retryablehttp")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	from, version, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	dir := patched(t, root, from, version)
	suite := exec.Command("go", "test", "-timeout", "5m", "-json", ".")
	suite.Dir, suite.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	var wrong bytes.Buffer
	suite.Stderr = &wrong
	out, _ = suite.Output() // it fails, as some tests differ
	passed, failed := 0, make(map[string]bool)
	for _, line := range bytes.Split(out, []byte("\n")) {
		var e struct{ Action, Test string }
		if json.Unmarshal(line, &e) != nil || e.Test == "" {
			continue
		}
		name, _, sub := strings.Cut(e.Test, "/")
		switch {
		case e.Action == "fail" && differs[name] == "":
			t.Errorf("%s fails", e.Test)
		case e.Action == "fail" && !sub:
			failed[name] = true
		case e.Action == "pass":
			passed++
		}
	}
	for name, why := range differs {
		if !failed[name] {
			t.Errorf("%s passes, though %s", name, why)
		}
	}
	if passed < 40 {
		t.Errorf("%d tests passed\n%s\n%s", passed, wrong.String(), out[max(0, len(out)-2000):])
	}
}

// patched is a copy of the library in which weir sends.
func patched(t *testing.T, root, from, version string) string {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0") // the library's tests have a port of their own
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(free.Addr().(*net.TCPAddr).Port)
	free.Close()
	files, err := filepath.Glob(filepath.Join(from, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	const own = "func (c *Client) Do(req *Request)"
	found := false
	for _, file := range files {
		text := read(file)
		found = found || strings.Contains(text, own)
		text = strings.ReplaceAll(text, own, "func (c *Client) doOwn(req *Request)")
		text = strings.ReplaceAll(text, `":28934"`, `"127.0.0.1:28934"`)
		write(filepath.Base(file), strings.ReplaceAll(text, "28934", port))
	}
	if !found {
		t.Fatalf("%s has no %s", version, own)
	}
	write("via_weir.go", read("testdata/via_weir.go.txt"))
	write("go.mod", strings.Replace(read(filepath.Join(from, "go.mod")), "module github.com/hashicorp/go-retryablehttp", "module suite.example/retryablehttp", 1)+
		"\nrequire github.com/hashicorp/go-retryablehttp "+version+"\nrequire github.com/weirhttp/weir v0.0.0\nreplace github.com/weirhttp/weir => "+root+"\n")
	write("go.sum", read(filepath.Join(root, "go.sum"))+read(filepath.Join(from, "go.sum")))
	return dir
}
