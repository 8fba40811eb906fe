package redisstore

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A server is a redis-server of the test's own, on a free loopback port,
// without persistence.
type server struct {
	addr string
	args []string
	env  []string // beside the test's own
	conf string   // of a Sentinel
	dir  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	out  *output
}

// patience is how long a test waits for what must come, on a machine that may
// stall. Nothing here is tested by waiting so long.
const patience = time.Minute

// output is what a server writes, which is read while it runs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// binary finds redis-server. Without it the test is skipped, unless CI=true.
func binary(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("redis-server is not installed: apt-get install redis-server")
	}
	t.Skip("SKIPPED: redis-server is not installed; nothing here was tested against a real server")
	return ""
}

// startServer starts one and stops it when the test ends.
func startServer(t testing.TB, args ...string) *server {
	t.Helper()
	return begin(t, &server{args: args})
}

// startSentinel starts the same binary as a Sentinel.
func startSentinel(t testing.TB, conf string) *server {
	t.Helper()
	return begin(t, &server{conf: conf})
}

func begin(t testing.TB, s *server) *server {
	t.Helper()
	binary(t)
	s.dir = t.TempDir()
	t.Cleanup(s.kill) // before the folder goes
	for range 6 {
		s.addr = freeAddr(t)
		if s.start(t) {
			return s
		}
	}
	t.Fatalf("redis-server does not start: %s", s.out.String())
	return nil
}

// restart starts a killed server again, empty, where its clients look for it.
// For a moment another socket of this machine may be there.
func (s *server) restart(t testing.TB) {
	t.Helper()
	for range 20 {
		if s.start(t) {
			return
		}
		time.Sleep(100 * time.Millisecond) // real ports, real time
	}
	t.Fatalf("no restart: %s", s.out.String())
}

// freeAddr finds a port that is free now, with its cluster bus's port. Another
// process may take it, so starting is tried again.
func freeAddr(t testing.TB) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		port := l.Addr().(*net.TCPAddr).Port
		if port+10000 > 65535 {
			continue
		}
		bus, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+10000))
		if err != nil {
			continue
		}
		defer bus.Close()
		return l.Addr().String()
	}
}

// start runs the server and waits until it answers. It reports false, with
// nothing left running, if it ends or does not answer.
func (s *server) start(t testing.TB) bool {
	t.Helper()
	_, port, _ := net.SplitHostPort(s.addr)
	var args []string
	if s.conf != "" {
		args = []string{s.conf, "--sentinel", "--port", port, "--bind", "127.0.0.1"}
	} else {
		args = append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.dir, "--loglevel", "warning"}, s.args...)
	}
	cmd, ended := exec.Command(binary(t), args...), make(chan struct{})
	s.out = new(output)
	cmd.Stdout, cmd.Stderr, cmd.Env = s.out, s.out, append(os.Environ(), s.env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.cmd, s.done = cmd, ended
	go func() { _ = cmd.Wait(); close(ended) }()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		c, err := net.DialTimeout("tcp", s.addr, patience)
		if err == nil {
			_, _ = c.Write([]byte("PING\r\n"))
			answer := make([]byte, 64)
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
			n, _ := c.Read(answer)
			c.Close()
			if strings.Contains(string(answer[:n]), "PONG") || strings.Contains(string(answer[:n]), "NOAUTH") {
				return true
			}
		}
		select {
		case <-ended:
			return false
		case <-time.After(10 * time.Millisecond): // of a server that is starting, not of what is tested
		}
	}
	s.kill()
	return false
}

// kill is kill -9. The port refuses when it returns.
func (s *server) kill() {
	if s.done != nil {
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

// options are of a client that gives up by its calls' contexts alone.
func options(addr string) *redis.Options {
	return &redis.Options{Addr: addr, ContextTimeoutEnabled: true, PoolSize: 16, DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience}
}

func (s *server) client(t testing.TB, change ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o := options(s.addr)
	for _, c := range change {
		c(o)
	}
	client := redis.NewClient(o)
	t.Cleanup(func() { client.Close() })
	return client
}

func (s *server) store(t testing.TB, change ...func(*redis.Options)) *Store {
	t.Helper()
	store, err := New(s.client(t, change...), Config{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// stat reads a number from INFO.
func (s *server) stat(t testing.TB, section, field string) float64 {
	t.Helper()
	info, err := s.client(t).Info(context.Background(), section).Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), field); ok {
			v = strings.TrimLeft(v, ":=")
			v, _, _ = strings.Cut(v, ",")
			f, err := strconv.ParseFloat(v, 64)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	t.Fatalf("INFO %s has no %s", section, field)
	return 0
}
