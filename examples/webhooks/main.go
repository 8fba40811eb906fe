// Webhooks sends events to a dozen endpoints of which one hangs, one is down and
// two are slow. The sender is killed several times and started again; the
// outbox sees to it that every endpoint gets every event, in order.
//
//	go run ./examples/webhooks
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// senderEnv holds the job of a process that is the sender.
const senderEnv = "WEBHOOKS_SENDER"

func main() {
	if text := os.Getenv(senderEnv); text != "" {
		log.Fatal(send(text))
	}
	events := flag.Int("events", 90, "events for each endpoint")
	kills := flag.Int("kills", 3, "how often the sender is killed")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *events, *kills); err != nil {
		log.Fatal(err)
	}
}

// run plays all of it and prints what came of it.
func run(ctx context.Context, w io.Writer, events, kills int) error {
	dir, err := os.MkdirTemp("", "webhooks")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	world := newWorld(events)
	defer world.close()
	j := job{File: filepath.Join(dir, "outbox.db"), Events: events, Endpoints: world.urls(), Next: make([]int, len(world.all))}
	fmt.Fprintf(w, "%d events for each of %d endpoints\n", events, len(j.Endpoints))
	for kill := 1; kill <= kills; kill++ {
		least := world.healthyTotal() * kill / (kills + 1)
		if err := j.live(ctx, func() bool { return world.delivered() >= least }); err != nil {
			return err
		}
		fmt.Fprintf(w, "sender killed after %d deliveries or more\n", least)
	}
	err = j.live(ctx, func() bool {
		if world.healthyDone() {
			world.repair()
		}
		return world.done()
	})
	if err != nil {
		return err
	}
	world.report(w)
	return nil
}

// job is what a sender is told.
type job struct {
	File      string   // of its outbox
	Endpoints []string // URLs
	Events    int      // for each
	Next      []int    // the first that is not known to be kept, for each
}

// live starts a sender, kills it when the time has come, and notes what it has
// said it kept.
func (j *job) live(ctx context.Context, enough func() bool) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), senderEnv+"="+string(text))
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for in := bufio.NewScanner(out); in.Scan(); {
			var endpoint, n int
			if _, err := fmt.Sscanf(in.Text(), "kept %d %d", &endpoint, &n); err == nil {
				j.Next[endpoint] = n + 1
			}
		}
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for early := false; !early && !enough(); {
		select {
		case <-tick.C:
		case <-heard:
			early = true
		}
	}
	cmd.Process.Kill() // kill -9: it gets no chance to clean up
	<-heard
	cmd.Wait()
	if complaints.Len() > 0 {
		return fmt.Errorf("the sender: %s", complaints.String())
	}
	return ctx.Err()
}
