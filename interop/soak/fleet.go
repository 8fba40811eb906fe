package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/redisstore"
	"github.com/weirhttp/weir/throttle"
)

// redisServer finds the program; "" if there is none.
func redisServer() string {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return ""
	}
	return path
}

// redisProcess is a redis-server on a port of its own, without persistence: a
// restart forgets everything.
type redisProcess struct {
	program, port, dir string
	cmd                *exec.Cmd
}

func newRedis(program string) (*redisProcess, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return &redisProcess{program: program, port: port, dir: dir}, err
}

func (r *redisProcess) start() error {
	r.cmd = exec.Command(r.program, "--port", r.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", r.dir)
	return r.cmd.Start()
}

func (r *redisProcess) kill() {
	r.cmd.Process.Kill()
	r.cmd.Wait()
}

// fleet has two members share a budget through Redis, which is killed, stays
// away for a second and comes back empty, every 10 s.
func fleet(ctx context.Context, s settings, srv *server) {
	srv.shared.away()
	server, err := newRedis(s.redis)
	if err == nil {
		err = server.start()
	}
	if err != nil {
		srv.problems.add("redis: %v", err)
		return
	}
	redis.SetLogger(quiet{}) // that Redis is away is no news here
	defer os.RemoveAll(server.dir)
	defer func() { server.kill() }()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if err := member(ctx, "127.0.0.1:"+server.port, srv); err != nil {
				srv.problems.add("fleet: %v", err)
			}
		})
	}
	restarts := 0
	srv.shared.back()
	for every := time.NewTicker(10 * time.Second); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
			every.Stop()
			continue
		case <-every.C:
		}
		srv.shared.away()
		server.kill()
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		if err := server.start(); err != nil {
			srv.problems.add("redis: %v", err)
		}
		srv.shared.back()
		restarts++
	}
	wg.Wait()
	c := &srv.shared
	c.mu.Lock()
	defer c.mu.Unlock()
	s.log("Redis was restarted %d times; of %d requests to the shared host %d were more than %d in a window, at most %d; %d while Redis was there",
		restarts, c.all, c.over, limit, c.most, c.steady)
	if c.steady > c.all/50 {
		srv.problems.add("fleet: %d of %d requests over the limit while Redis was there", c.steady, c.all)
	}
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// changed counts a member that does without Redis. Where the machine stalls for
// longer than one waits for Redis, that one falls back on its share beside the
// other.
func (c *recent) changed(x throttle.StoreChange) {
	switch throttle.StoreUp {
	case x.From:
		c.away()
	case x.To:
		c.back()
	}
}

// member calls the shared host as fast as it may.
func member(ctx context.Context, addr string, srv *server) error {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	defer client.Close()
	store, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		return err
	}
	base := newWire(srv.addr)
	rt, err := weir.New(base, weir.Config{Throttle: throttle.Config{
		Store: store, Fleet: throttle.FleetConfig{Members: 2, OnStore: srv.shared.changed},
		Budgets: map[string]throttle.Budget{"fleet.soak.test": capOf(limit)},
	}})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				r, err := http.NewRequestWithContext(ctx, "GET", "http://fleet.soak.test/", nil)
				if err != nil {
					panic(err)
				}
				resp, err := rt.RoundTrip(r)
				if err != nil {
					continue // a deadline, or Redis away: typed elsewhere
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
	if err := rt.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	base.CloseIdleConnections()
	return nil
}
