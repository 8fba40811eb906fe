package main

import (
	"fmt"
	"net"
	"os/exec"
	"time"
)

// redisServer is a redis-server of our own on a free loopback port.
type redisServer struct {
	path, addr string
	cmd        *exec.Cmd
}

func startRedis() (*redisServer, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errNoRedis
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	s := &redisServer{path: path, addr: l.Addr().String()}
	l.Close()
	return s, s.start()
}

// start begins without data, and returns when connections are taken.
func (s *redisServer) start() error {
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	s.cmd = exec.Command(s.path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for range 1000 {
		if c, err := net.Dial("tcp", s.addr); err == nil {
			return c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.kill()
	return fmt.Errorf("redis-server does not answer on %s", s.addr)
}

// kill is kill -9.
func (s *redisServer) kill() {
	if s.cmd != nil && s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}
