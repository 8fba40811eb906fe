package breaker

import (
	"context"
	"time"
)

// Change is one change of a circuit's state.
type Change struct {
	Ctx      context.Context // of the request that caused it; Background for Force, Release and SetHost
	Host     string          // canonical
	Shard    string          // eight hex digits; "" without Config.Shard
	From, To State
	Reason   string // in words: "5 failures in a row without an answer"
	At       time.Time
	Until    time.Time // to Open: the end of the open period; zero if an operator holds it open
}

// changes delivers to the hook, in order and under no lock. Whoever finds
// undelivered changes and nobody delivering does it, so a hook that calls
// back and causes a change is told of it by the call further out.
type changes struct {
	pending    []Change
	delivering bool
}

// unlock gives up c.mu and calls the hook for what is pending.
func (c *circuit) unlock() {
	if len(c.pending) == 0 || c.delivering {
		c.mu.Unlock()
		return
	}
	c.delivering = true
	defer func() { // the hook may panic or end its goroutine
		c.delivering = false
		c.mu.Unlock()
	}()
	for len(c.pending) > 0 {
		next := c.pending[0]
		c.pending = c.pending[1:]
		c.tell(next)
	}
}

// tell calls the hook with c.mu given up.
func (c *circuit) tell(ch Change) {
	c.mu.Unlock()
	defer c.mu.Lock()
	c.cfg.OnStateChange(ch)
}
