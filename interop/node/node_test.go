// Package node runs weir against the rate limiters that JavaScript servers
// use. It needs Node 20 or newer and what package.json names.
package node

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/weirhttp/weir/interop/real"
)

func TestNode(t *testing.T) {
	real.Need(t, "node")
	if _, err := os.Stat("node_modules/express"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("run npm ci in this folder: make test does")
		}
		t.Skip("NOT TESTED: run npm ci in interop/node first")
	}
	version(t)
	ports := real.Start(t, 2, func(ports []int) []string {
		return []string{"node", "server.mjs", fmt.Sprint(ports[0]), fmt.Sprint(ports[1])}
	})
	express, fastify := ports[0], ports[1]
	var runs []real.Run
	for i, tt := range []struct {
		calls     int
		name      string
		port      int
		path      string
		crowd     int
		mayRefuse float64
		penalty   time.Duration // beyond the window, for what the crowd did
	}{
		{200, "express-rate-limit draft-6", express, "/draft-6", 0, real.OneInTwenty, 0},
		{200, "express-rate-limit draft-7", express, "/draft-7", 0, real.OneInTwenty, 0},
		{200, "express-rate-limit draft-8", express, "/draft-8", 0, real.OneInTwenty, 0},
		{200, "express-rate-limit legacy", express, "/legacy", 0, real.OneInTwenty, 0},
		{200, "rate-limiter-flexible", express, "/flexible", 0, real.OneInTwenty, 0},
		{200, "fastify rate-limit legacy", fastify, "/legacy", 0, real.OneInTwenty, 0},
		{200, "fastify rate-limit ietf", fastify, "/ietf", 0, real.OneInTwenty, 0},
		// Says nothing but 429.
		{200, "express-rate-limit silent", express, "/silent", 0, 0.5, 0},
		// Refused calls prolong the penalty. The first call finds one.
		{200, "rate-limiter-flexible, blocks for 5 s", express, "/block", 30, real.OneInTwenty, 5 * time.Second},
		{100, "rate-limiter-flexible, blocks for 5 s, silent", express, "/block-silent", 30, 1, 5 * time.Second}, // .2 to .6, as chance has it
		{200, "fastify, a refused call starts the window anew", fastify, "/continue", 30, real.OneInTwenty, 2 * time.Second},
		{100, "fastify, a refused call starts the window anew, silent", fastify, "/continue-silent", 30, 0.5, 2 * time.Second},
		{200, "fastify, a refused call doubles what it says", fastify, "/exponential", 20, real.OneInTwenty, 2 * time.Second},
	} {
		runs = append(runs, real.Run{
			Name: tt.name, From: real.From(3, byte(i+1)), URL: fmt.Sprintf("http://127.0.0.1:%d%s", tt.port, tt.path),
			Crowd: tt.crowd, Calls: tt.calls, Ideal: time.Duration(tt.calls/20-1)*2*time.Second + tt.penalty, MayRefuse: tt.mayRefuse,
		})
	}
	real.Together(t, runs)
}

// version skips where Node is too old for what package.json names.
func version(t *testing.T) {
	out, err := exec.Command("node", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	var major int
	if _, err := fmt.Sscanf(string(out), "v%d.", &major); err != nil {
		t.Fatalf("node --version says %q: %v", out, err)
	}
	switch {
	case major >= 20:
	case os.Getenv("CI") != "":
		t.Fatalf("Node %s is too old: 20 is needed", out)
	default:
		t.Skipf("NOT TESTED: Node %s is too old: 20 is needed", out)
	}
}
