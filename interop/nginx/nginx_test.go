// Package nginx runs weir against limit_req and limit_conn of a real nginx.
package nginx

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/interop/real"
	"github.com/weirhttp/weir/retry"
)

func start(t *testing.T) string {
	real.Need(t, "nginx")
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "html"), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("html/ok", "ok\n")
	write("html/slow", strings.Repeat("x", 50<<10))
	conf, err := os.ReadFile("nginx.conf.in")
	if err != nil {
		t.Fatal(err)
	}
	user := ""
	if os.Getuid() == 0 {
		user = "user root;"
	}
	name := "nginx"
	if _, err := os.Stat("/usr/sbin/nginx"); err == nil {
		name = "/usr/sbin/nginx"
	}
	port := real.Start(t, 1, func(ports []int) []string {
		write("nginx.conf", strings.NewReplacer("@DIR@", dir, "@PORT@", fmt.Sprint(ports[0]), "@USER@", user).Replace(string(conf)))
		return []string{name, "-p", dir, "-e", "stderr", "-c", filepath.Join(dir, "nginx.conf")}
	})
	return fmt.Sprintf("http://127.0.0.1:%d", port[0])
}

// TestNginx: nginx states nothing: its rate is found by running into it.
func TestNginx(t *testing.T) {
	address := start(t)
	patient := weir.Config{Breaker: breaker.Config{Patience: 30 * time.Second}, Retry: retry.Config{MaxAttempts: 10}}
	real.Together(t, []real.Run{
		{Name: "limit_req, nodelay", From: real.From(2, 1), URL: address + "/nodelay", Calls: 200, Ideal: 18 * time.Second, MayRefuse: 0.4},
		{Name: "limit_req, delayed", From: real.From(2, 2), URL: address + "/queue", Calls: 200, Ideal: 20 * time.Second, MayRefuse: 0.2},
		// A bare 503 says that the server is in trouble, and a circuit opens. Its
		// probes find out that the server serves some; or who knows better says so.
		// In the first case a call that meets too many 503s ends with one.
		{Name: "limit_req, says 503; weir with Patience", From: real.From(2, 3), URL: address + "/stock", Calls: 200, Ideal: 18 * time.Second, MayRefuse: 0.6, MayFail: 10, Config: patient},
		{Name: "limit_req, says 503; a base that turns it into 429", From: real.From(2, 5), URL: address + "/stock", Calls: 200, Ideal: 18 * time.Second, MayRefuse: 0.4, As: read503},
		{Name: "limit_conn 2", From: real.From(2, 4), URL: address + "/conn", Calls: 60, Ideal: 12 * time.Second, MayRefuse: 1},
	})
}

// refused stands for a status where there was none.
const refused = 0

// TestBare503: without either it is retried as trouble is, and a request ends
// with nginx's own answer, or with the circuit's refusal once it has opened.
func TestBare503(t *testing.T) {
	address := start(t)
	client := &http.Client{Transport: real.Chain(t, real.From(2, 9), weir.Config{})}
	seen := make(map[int]int)
	for range 60 {
		resp, err := client.Get(address + "/stock")
		var open *breaker.Error
		switch {
		case errors.As(err, &open):
			seen[refused]++
			time.Sleep(open.RetryAfter)
			continue
		case err != nil:
			t.Fatal(err)
		}
		resp.Body.Close()
		seen[resp.StatusCode]++
	}
	t.Log(seen)
	if seen[http.StatusOK] < 20 || seen[http.StatusOK]+seen[http.StatusServiceUnavailable]+seen[refused] != 60 {
		t.Errorf("60 calls in a row: %v", seen)
	}
}

// read503 is the whole of what a user writes for a server whose 503 means
// "too many requests".
func read503(base http.RoundTripper) http.RoundTripper {
	return real.Func(func(r *http.Request) (*http.Response, error) {
		resp, err := base.RoundTrip(r)
		if err == nil && resp.StatusCode == http.StatusServiceUnavailable {
			resp.StatusCode, resp.Status = http.StatusTooManyRequests, "429 Too Many Requests"
		}
		return resp, err
	})
}
