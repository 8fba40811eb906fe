package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// fetch runs the program as the command line would.
func fetch(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

// serve starts a loopback server and returns its URL and the folder that its
// files go to.
func serve(t *testing.T, h http.HandlerFunc) (url, folder string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL, strings.ReplaceAll(strings.TrimPrefix(s.URL, "http://"), ":", "_")
}

// tree returns the files below dir with their contents.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		files[filepath.ToSlash(rel)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, content := range want {
		if g, ok := got[name]; !ok || g != content {
			t.Errorf("%s: %q (there: %v), want %q", name, g, ok, content)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is there and should not be", name)
		}
	}
}

func TestDownloadsOnceAndSkipsWhatIsComplete(t *testing.T) {
	var requests atomic.Int64
	url, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		fmt.Fprintf(w, "this is %s", r.URL.RequestURI())
	})
	dir := t.TempDir()
	list := filepath.Join(t.TempDir(), "urls.txt")
	if err := os.WriteFile(list, fmt.Appendf(nil, "# two more\n%s/b/two.txt\n\n  %s/b/?page=2  \n", url, url), 0o666); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		host + "/a/one.txt":           "this is /a/one.txt",
		host + "/b/two.txt":           "this is /b/two.txt",
		host + "/b/index.html@page=2": "this is /b/?page=2",
	}
	code, out, errs := fetch(t, "", "-into", dir, "-from", list, url+"/a/one.txt", url+"/a/one.txt#again")
	if code != 0 || errs != "" {
		t.Errorf("exit %d, %s", code, errs)
	}
	same(t, tree(t, dir), want)
	if got := requests.Load(); got != 3 {
		t.Errorf("%d requests, want 3: the same URL twice is one file", got)
	}
	if got := fields(out, 1); got != "3 0 0 54 B 3 0 "+strings.TrimPrefix(url, "http://") {
		t.Errorf("summary %q", got)
	}

	// A second run, now from the standard input, with one file gone and one more.
	if err := os.Remove(filepath.Join(dir, host, "b", "two.txt")); err != nil {
		t.Fatal(err)
	}
	want[host+"/c"] = "this is /c"
	stdin := strings.Join([]string{url + "/a/one.txt", url + "/b/two.txt", url + "/b/?page=2", url + "/c"}, "\n")
	code, out, errs = fetch(t, stdin, "-into", dir, "-from", "-")
	if code != 0 || errs != "" {
		t.Errorf("second run: exit %d, %s", code, errs)
	}
	same(t, tree(t, dir), want)
	if got := requests.Load(); got != 5 {
		t.Errorf("%d requests after the second run, want 5", got)
	}
	if got := fields(out, 1); !strings.HasPrefix(got, "2 2 0 ") {
		t.Errorf("second summary %q, want 2 done, 2 skipped", got)
	}
	if code, _, _ = fetch(t, stdin, "-into", dir, "-from", "-", "-again"); code != 0 || requests.Load() != 9 {
		t.Errorf("-again: exit %d, %d requests in all, want 0 and 9", code, requests.Load())
	}
}

// fields is a line of the summary with single spaces.
func fields(out string, line int) string {
	lines := strings.Split(out, "\n")
	if line >= len(lines) {
		return ""
	}
	return strings.Join(strings.Fields(lines[line]), " ")
}

func TestFailuresAreListedAndLeaveNothing(t *testing.T) {
	var whole atomic.Bool
	url, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/missing":
			http.NotFound(w, r)
		case r.URL.Path == "/short" && !whole.Load():
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "only this")
		default:
			io.WriteString(w, "all of it")
		}
	})
	dir := t.TempDir()
	urls := []string{url + "/good", url + "/missing", url + "/short"}
	code, out, errs := fetch(t, "", append([]string{"-into", dir}, urls...)...)
	if code != 1 {
		t.Errorf("exit %d, want 1", code)
	}
	for _, want := range []string{"2 of 3 failed", url + "/missing: the server said 404 Not Found", url + "/short: unexpected EOF"} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is not in:\n%s", want, errs)
		}
	}
	same(t, tree(t, dir), map[string]string{host + "/good": "all of it"})
	// One request each for the first two, three for the body that breaks off.
	if got := fields(out, 1); !strings.HasPrefix(got, "1 0 2 9 B 5 0 ") {
		t.Errorf("summary %q", got)
	}

	whole.Store(true)
	if code, _, errs = fetch(t, "", "-into", dir, urls[0], urls[2]); code != 0 {
		t.Errorf("after the repair: exit %d, %s", code, errs)
	}
	same(t, tree(t, dir), map[string]string{host + "/good": "all of it", host + "/short": "all of it"})
}

func TestAnOldFileStaysWhenItsReplacementFails(t *testing.T) {
	url, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "half")
	})
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, host), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, host, "file"), []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	if code, _, _ := fetch(t, "", "-into", dir, "-again", url+"/file"); code != 1 {
		t.Errorf("exit %d, want 1", code)
	}
	same(t, tree(t, dir), map[string]string{host + "/file": "old"})
}

// Nothing is requested and nothing written when the command line is no good.
func TestBadInputIsRefusedWithACause(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	url, _ := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	for _, test := range []struct {
		name  string
		args  []string
		stdin string
		want  []string
	}{
		{"no URLs", nil, "", []string{"no URLs"}},
		{"unknown flag", []string{"-x"}, "", []string{"-x", "fetch -h"}},
		{"scheme", []string{url, "ftp://example.com/x"}, "", []string{"argument 2", `"ftp://example.com/x" is not an http or https URL`}},
		{"no scheme", []string{"example.com/x"}, "", []string{"argument 1", `"example.com/x" is not an http or https URL`}},
		{"no host", []string{"https:///x"}, "", []string{`"https:///x" has no host`}},
		{"not a URL", []string{"http://[::1/"}, "", []string{"argument 1: not a URL: missing ']'"}},
		{"every bad line", []string{"-from", "-"}, url + "\n#\nhttp:/x\nhttp://\x7f/\n", []string{"standard input:3", "standard input:4"}},
		{"no list", []string{"-from", file + ".none"}, "", []string{file + ".none", "no such file"}},
		{"no budget", []string{"-budget", "api.github.com", url}, "", []string{"want PATTERN=BUDGET"}},
		{"bad budget", []string{"-budget", "api.github.com=fast", url}, "", []string{"-budget", "fast"}},
		{"negative budget", []string{"-budget", "api.github.com=-5/s", url}, "", []string{"-budget", "-5"}},
		{"two budgets", []string{"-budget", "a.example=5/s", "-budget", "a.example=6/s", url}, "", []string{"a.example has a budget already"}},
		{"bad pattern", []string{"-budget", "http://a.example=5/s", url}, "", []string{"http://a.example"}},
		{"parallel", []string{"-parallel", "0", url}, "", []string{"-parallel: 0"}},
		{"max-wait", []string{"-max-wait", "-1s", url}, "", []string{"-max-wait: -1s"}},
		{"patience", []string{"-patience", "-1s", url}, "", []string{"-patience: -1s"}},
		{"folder is a file", []string{"-into", file, url}, "", []string{file, "not a directory"}},
		{"folder below a file", []string{"-into", file + "/sub", url}, "", []string{file, "not a directory"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			code, out, errs := fetch(t, test.stdin, test.args...)
			if code != 2 || out != "" {
				t.Errorf("exit %d, want 2; stdout %q", code, out)
			}
			for _, want := range test.want {
				if !strings.Contains(errs, want) {
					t.Errorf("%q is not in:\n%s", want, errs)
				}
			}
			same(t, tree(t, "."), nil)
		})
	}
}

func TestHelp(t *testing.T) {
	code, out, errs := fetch(t, "", "-h")
	if code != 0 || out != "" || !strings.Contains(errs, "usage: fetch") || !strings.Contains(errs, "-budget PATTERN=BUDGET") {
		t.Errorf("exit %d, %q, %s", code, out, errs)
	}
}

func TestUnwritableFolder(t *testing.T) {
	dir, why := t.TempDir(), "permission denied"
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // who may write anywhere but there
		if dir, why = "/proc", ""; runtime.GOOS != "linux" {
			t.Skip("root may write anywhere")
		}
	}
	url, _ := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	code, _, errs := fetch(t, "", "-into", dir, url)
	if want := "cannot write into " + dir + ": " + why; code != 2 || !strings.Contains(errs, want) {
		t.Errorf("exit %d, %q, want 2, %q", code, errs, want)
	}
}

func TestAFolderInTheWayIsAFailure(t *testing.T) {
	url, host := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "x") })
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, host, "a"), 0o777); err != nil {
		t.Fatal(err)
	}
	code, _, errs := fetch(t, "", "-into", dir, url+"/a")
	if code != 1 || !strings.Contains(errs, "/a is a folder") {
		t.Errorf("exit %d, %s", code, errs)
	}
	same(t, tree(t, dir), nil)
}

// A link in the folder does not lead a download out of it.
func TestLinksDoNotLeadOut(t *testing.T) {
	url, host := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "x") })
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, host)); err != nil {
		if runtime.GOOS != "windows" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if code, _, errs := fetch(t, "", "-into", dir, url+"/a"); code != 1 || !strings.Contains(errs, "1 of 1 failed") {
		t.Errorf("exit %d, %s", code, errs)
	}
	same(t, tree(t, outside), nil)
}

// inMemory makes fetch talk to h, under any host name, on a network in memory.
// It is for tests in virtual time.
func inMemory(t *testing.T, h http.HandlerFunc) (n *testnet.Net, stop func()) {
	t.Helper()
	base, n, end := testnet.Server(t, h, false)
	before := http.DefaultTransport
	http.DefaultTransport = base
	return n, func() {
		http.DefaultTransport = before
		end()
	}
}

// numbered returns the URLs of n files of a host.
func numbered(host string, n int) (urls []string) {
	for i := range n {
		urls = append(urls, fmt.Sprintf("http://%s/%d", host, i))
	}
	return urls
}

// In virtual time, so that the server sees exactly when requests come.
func TestBudgetHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var now, most int
		var arrivals []time.Time
		_, stop := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			arrivals = append(arrivals, time.Now())
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			io.WriteString(w, r.URL.Path)
			mu.Lock()
			now--
			mu.Unlock()
		})
		defer stop()
		dir := t.TempDir()
		args := []string{"-into", dir, "-parallel", "30", "-budget", "api.example=3 in flight, 10/5s burst 4"}
		if code, _, errs := fetch(t, "", append(args, numbered("api.example", 40)...)...); code != 0 {
			t.Errorf("exit %d, %s", code, errs)
		}
		if got := len(tree(t, filepath.Join(dir, "api.example"))); got != 40 {
			t.Errorf("%d files, want 40", got)
		}
		if most != 3 {
			t.Errorf("%d requests at a time, want 3", most)
		}
		for i := range arrivals[:len(arrivals)-10] {
			if gap := arrivals[i+10].Sub(arrivals[i]); gap < 5*time.Second {
				t.Errorf("requests %d to %d came within %v, want no more than 10 in 5 s", i+1, i+11, gap)
			}
		}
	})
}

// An outage that is shorter than -patience costs no file.
func TestAnOutageIsWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, stop := inMemory(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "x") })
		defer stop()
		n.Refuse.Store(true)
		back := time.AfterFunc(20*time.Second, func() { n.Refuse.Store(false) })
		defer back.Stop()
		dir := t.TempDir()
		code, _, errs := fetch(t, "", append([]string{"-into", dir}, numbered("api.example", 100)...)...)
		if code != 0 {
			t.Errorf("exit %d, %s", code, errs)
		}
		if got := len(tree(t, dir)); got != 100 {
			t.Errorf("%d files, want 100", got)
		}
	})
}

// A host that stays down is given up when the first downloads have had their
// -patience: the others are not tried one after the other.
func TestADeadHostIsGivenUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, stop := inMemory(t, func(w http.ResponseWriter, r *http.Request) {})
		defer stop()
		n.Refuse.Store(true)
		code, _, errs := fetch(t, "", append([]string{"-into", t.TempDir(), "-patience", "1m"}, numbered("api.example", 200)...)...)
		if code != 1 || !strings.Contains(errs, "200 of 200 failed") {
			t.Errorf("exit %d, %s", code, errs)
		}
		if got := strings.Count(errs, errDown.Error()); got < 100 || got == 200 {
			t.Errorf("%d of 200 were not tried, want most of them", got)
		}
	})
}

func TestRefusedDownloadsAreRepeated(t *testing.T) {
	var requests atomic.Int64
	url, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		io.WriteString(w, "x")
	})
	dir := t.TempDir()
	code, out, errs := fetch(t, "", "-into", dir, url+"/a")
	if code != 0 {
		t.Errorf("exit %d, %s", code, errs)
	}
	same(t, tree(t, dir), map[string]string{host + "/a": "x"})
	if got := fields(out, 1); !strings.HasPrefix(got, "1 0 0 1 B 2 1 ") {
		t.Errorf("summary %q, want 2 requests, one of them refused", got)
	}
}

func TestRedirectsCountWhereTheyGo(t *testing.T) {
	other, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "moved") })
	url, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other+"/b", http.StatusFound)
	})
	dir := t.TempDir()
	code, out, errs := fetch(t, "", "-into", dir, url+"/a")
	if code != 0 {
		t.Errorf("exit %d, %s", code, errs)
	}
	same(t, tree(t, dir), map[string]string{host + "/a": "moved"})
	for _, want := range []string{"1 0 0 5 B 1 0 " + strings.TrimPrefix(url, "http://"), "0 0 0 0 B 1 0 " + strings.TrimPrefix(other, "http://"), "1 0 0 5 B 2 0 all hosts"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}

func TestInterruptLeavesNothingHalf(t *testing.T) {
	begun := make(chan struct{})
	url, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/first" {
			io.WriteString(w, "done")
			return
		}
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		close(begun)
		<-r.Context().Done()
	})
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	var out, errs bytes.Buffer
	code := run(ctx, []string{"-into", dir, "-parallel", "1", url + "/first", url + "/second", url + "/third"}, nil, &out, &errs)
	if code != 1 || !strings.Contains(errs.String(), "interrupted; 2 of 3 left") {
		t.Errorf("exit %d, %s", code, errs.String())
	}
	same(t, tree(t, dir), map[string]string{host + "/first": "done"})
}

func TestPasswordsAreNotShown(t *testing.T) {
	url, _ := serve(t, http.NotFound)
	code, out, errs := fetch(t, "", "-into", t.TempDir(), strings.Replace(url, "//", "//me:secret@", 1))
	if code != 1 || strings.Contains(out+errs, "secret") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	_, out, errs = fetch(t, "", "ftp://me:secret@example.com", "http://me:secret@exa mple.com")
	if strings.Contains(out+errs, "secret") || errs == "" {
		t.Errorf("%s%s", out, errs)
	}
}
