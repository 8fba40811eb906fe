package main

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/interop/real"
)

// TestSoak is the program for some seconds.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute of real time")
	}
	real.Need(t, "redis-server")
	for _, f := range run(t.Context(), settings{length: 15 * time.Second, workers: 32, seed: 1, redis: redisServer(), log: t.Logf}) {
		t.Error(f)
	}
}
