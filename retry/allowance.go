package retry

import (
	"sync"
	"sync/atomic"
	"time"
)

// A host that fails at random and one that is down are told apart by whether
// retries succeed. If retries succeed as often as first attempts do, each is
// worth what it costs the host, and all that the user allows are made. If none
// succeeds, they only add to the load that brought the host down.
//
// So a retry that succeeds earns back its own cost and that of worth retries that
// failed. The tokens are the running sum of a sequential test (Wald's) between "a
// retry succeeds in one case of five or more" and "hardly any succeeds". They grow
// while more than one retry in 1+worth succeeds. They are gone after Tokens/cost
// failures more than that, which is within the first second of an outage at 20
// calls a second.
//
// A success after a timeout, or while answers take longer and longer, earns back
// its own cost alone. Then the host is overloaded, and a retry that is served takes
// the place of somebody else's first attempt.
//
// The size of 500 tokens, cost and earn are those of the AWS SDKs since November 2026.
// trickle is weir's own: one of those SDKs was seen to retry nothing any more once a bad
// period had used up its tokens, until it was restarted.
const (
	cost = 14 // of a retry or a hedge; returned if it succeeds
	// worth is how many failed retries one that succeeds outweighs. Of calls to
	// a host that fails 8 of 10 attempts, three attempts serve half; with 8 one
	// call in fifty there finds no tokens left, with 6 one in ten, and with 4 they
	// are gone after some seconds. With 9 and more they would also last
	// for a host that answers one in ten.
	worth   = 8
	earn    = 1 // by a request that succeeds at the first try
	trickle = 3 // per second, so that a bad period ends even without traffic
)

// allowance is a bucket of tokens. Its zero value is full.
type allowance struct {
	mu    sync.Mutex
	spent float64 // tokens missing from a full bucket, as of at
	at    time.Time
	short atomic.Bool // spent > 0: what is full is not locked
}

// refill is called with mu held.
func (a *allowance) refill(now time.Time) {
	if d := now.Sub(a.at); d > 0 {
		a.spent = max(0, a.spent-d.Seconds()*trickle)
		a.at = now
	}
}

// take pays for one retry out of a bucket of size tokens.
func (a *allowance) take(size int, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refill(now)
	if a.spent+cost > float64(size) {
		return false
	}
	a.spent += cost
	a.short.Store(true)
	return true
}

// give returns n tokens.
func (a *allowance) give(n float64, now time.Time) {
	if !a.short.Load() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refill(now)
	a.spent = max(0, a.spent-n)
	a.short.Store(a.spent > 0)
}

// earned is for a request that succeeded at the first try.
func (a *allowance) earned() {
	if a.short.Load() {
		a.give(earn, time.Now())
	}
}

// left is how many of size tokens there are.
func (a *allowance) left(size int, now time.Time) float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refill(now)
	return max(0, float64(size)-a.spent)
}

// reward pays back what a success earns.
func (l *loop) reward() {
	switch {
	case l.paid && l.cause != TimedOut && !l.h.slows():
		l.h.allowance.give((1+worth)*cost, time.Now())
	case l.paid, l.won && !l.c.Allowance.Disable:
		l.h.allowance.give(cost, time.Now())
	case l.retries == 0 && !l.hedged:
		l.h.allowance.earned()
	}
}

// payBack returns what was paid for an attempt that was not made.
func (l *loop) payBack() {
	if l.paid {
		l.h.allowance.give(cost, time.Now())
	}
}
