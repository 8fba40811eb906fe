package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// api is a server that refuses its first POST and notes what reaches it.
type api struct {
	mu    sync.Mutex
	posts int
	times []time.Time // of what is below /paced
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	switch {
	case r.Method == "POST":
		if a.posts++; a.posts == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
	case strings.HasPrefix(r.URL.Path, "/v1/paced/"):
		a.times = append(a.times, time.Now())
	case r.URL.Path == "/v1/moved":
		w.Header().Set("Location", "http://"+r.Host+"/v1/here?x=1")
		w.WriteHeader(http.StatusFound)
		return
	case strings.HasPrefix(r.URL.Path, "/v1/to"):
		w.Header().Set("Location", r.URL.Query().Get("location"))
		w.WriteHeader(http.StatusFound)
		return
	}
	fmt.Fprintf(w, "%s %s auth=%q for=%q %s", r.Method, r.URL, r.Header.Get("Authorization"), r.Header.Get("X-Forwarded-For"), body)
}

// start runs the proxy with flags and returns its address and that of its page.
func start(t *testing.T, args ...string) (proxy, page string) {
	t.Helper()
	s, err := parse(append(args, "-listen", "127.0.0.1:0", "-inspect", "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, s, in) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	lines := bufio.NewScanner(out)
	for proxy == "" && lines.Scan() {
		name, address, _ := strings.Cut(lines.Text(), ": ")
		if name == "page" {
			page = address
		} else {
			proxy = address
		}
	}
	return proxy, page
}

// curl returns what curl prints.
func curl(t *testing.T, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("curl")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("curl is not installed")
		}
		t.Skip("NOT TESTED: curl is not installed")
	}
	cmd := exec.Command(path, append([]string{"--silent", "--show-error", "--noproxy", "*", "--max-time", "60"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// What curl asks of the proxy the API gets, and the other way round.
func TestCurlThroughTheProxy(t *testing.T) {
	server := httptest.NewServer(&api{})
	defer server.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	proxy, page := start(t, "-route", "/api="+server.URL+"/v1", "-route", "/gone="+gone.URL)
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"a path and a query", []string{proxy + "/api/a%20b/c?d=e&f"}, `GET /v1/a%20b/c?d=e&f auth="" for="" `},
		{"credentials", []string{"-H", "Authorization: Bearer x", proxy + "/api/"}, `GET /v1/ auth="Bearer x" for="" `},
		{"a POST that is refused once", []string{"--data", "hello", proxy + "/api/orders"}, `POST /v1/orders auth="" for="" hello`},
		{"a redirect", []string{"--location", proxy + "/api/moved"}, `GET /v1/here?x=1 auth="" for="" `},
		{"a redirect to the API's root", []string{"-w", "%{redirect_url}", proxy + "/api/to?location=/v1?y=2"}, proxy + "/api?y=2"},
		{"a redirect to another part of the host", []string{"-w", "%{redirect_url}", proxy + "/api/to?location=" + server.URL + "/v10/x"}, server.URL + "/v10/x"},
		{"a redirect elsewhere", []string{"-w", "%{redirect_url}", proxy + "/api/to?location=https://other.example/v1/x"}, "https://other.example/v1/x"},
		{"no route", []string{"-w", "%{http_code}", proxy + "/apix"}, "proxy: no -route is above this path\n404"},
		{"an API that is down", []string{"-o", os.DevNull, "-w", "%{http_code}", "--data", "x", proxy + "/gone/"}, "502"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := curl(t, tt.args...); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
	if got := curl(t, page+"/stats.json"); !strings.Contains(got, strings.TrimPrefix(server.URL, "http://")) {
		t.Errorf("the page does not know the API: %s", got)
	}
}

// Two programs share one budget, and a request that would wait too long is told
// when to come back.
func TestProgramsShareABudget(t *testing.T) {
	a := &api{}
	server := httptest.NewServer(a)
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	proxy, _ := start(t, "-route", "/api="+server.URL, "-route", "/v1="+server.URL+"/v1",
		"-budget", "GET "+host+"/v1/paced/=5/s burst 1", "-budget", "GET "+host+"/v1/rare=1/h", "-max-wait", "20s")
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { curl(t, "-o", os.DevNull, proxy+"/v1/paced/[1-4]") })
	}
	both.Wait()
	a.mu.Lock()
	n := len(a.times)
	took := a.times[n-1].Sub(a.times[0])
	a.mu.Unlock()
	if n != 8 || took < 1200*time.Millisecond { // 7 gaps of 200 ms, less what the network moves
		t.Errorf("%d calls in %v", n, took)
	}
	curl(t, "-o", os.DevNull, proxy+"/v1/rare")
	got := curl(t, "-o", os.DevNull, "-w", "%{http_code} %header{retry-after}", proxy+"/v1/rare")
	var status, after int
	if fmt.Sscan(got, &status, &after); status != 429 || after < 3000 || after > 3600 {
		t.Errorf("the second call in an hour: %q", got)
	}
}

// Flags that make no sense name themselves.
func TestFlags(t *testing.T) {
	for _, args := range [][]string{
		{}, {"-route", "api=http://x"}, {"-route", "/api"}, {"-route", "/api=ftp://x"}, {"-route", "/a=http://x", "-budget", "x"}, {"-route", "/a=http://x", "-budget", "x=5"},
	} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q is no error", args)
		}
	}
}
