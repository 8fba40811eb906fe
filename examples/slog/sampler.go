package main

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// sampler hands on the first few records of each message in each interval,
// and every record of level Warn or above. The first record of a later
// interval says how many were left out.
type sampler struct {
	slog.Handler
	*counts
}

// counts is shared by the handlers that With makes of one sampler. Its map is
// bounded by the number of messages that the program's text has.
type counts struct {
	most  int
	every time.Duration
	mu    sync.Mutex
	seen  map[string]*count
}

type count struct {
	since time.Time
	n     int
}

// sample returns a handler that hands at most n records of a message to h in
// each interval.
func sample(h slog.Handler, n int, every time.Duration) slog.Handler {
	return sampler{h, &counts{most: n, every: every, seen: map[string]*count{}}}
}

func (s sampler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		return s.Handler.Handle(ctx, r)
	}
	pass, left := s.take(r)
	if !pass {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("left_out", left))
	}
	return s.Handler.Handle(ctx, r)
}

// take counts r and says whether it is handed on, and how many like it were
// not in the interval that it ends.
func (c *counts) take(r slog.Record) (pass bool, left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.seen[r.Message]
	if s == nil {
		s = &count{since: r.Time}
		c.seen[r.Message] = s
	}
	if r.Time.Sub(s.since) >= c.every {
		left = max(0, s.n-c.most)
		*s = count{since: r.Time}
	}
	s.n++
	return s.n <= c.most, left
}

func (s sampler) WithAttrs(a []slog.Attr) slog.Handler {
	return sampler{s.Handler.WithAttrs(a), s.counts}
}

func (s sampler) WithGroup(name string) slog.Handler {
	return sampler{s.Handler.WithGroup(name), s.counts}
}
