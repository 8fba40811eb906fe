package throttle

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/weirhttp/weir/headers"
)

// Config says what a [Transport] lets through. The zero Config limits nothing
// by itself: it obeys what servers say. New copies it.
type Config struct {
	// Default is the budget of each host that no host pattern of Budgets names.
	// Zero: unlimited until the server states or shows a limit.
	Default Budget

	// Budgets are by pattern: [METHOD ]host[:port][/path]. A path that ends in "/"
	// names all paths below it, and a segment "*" any one segment. Every pattern
	// that matches a request applies, except that of patterns without method and
	// path only the most specific one does. "*.x" gives each host a budget of its
	// own; a Pool joins them.
	Budgets map[string]Budget

	// Partition names the part of a host that a request belongs to, such as its API
	// key. Each part has budgets of its own. nil: a host has one part. What is
	// learned is kept apart by Credential too.
	Partition func(*http.Request) string

	// Lane names the group of a request: its tenant, or its kind of job. Lanes that
	// wait for one budget take turns. nil: all requests are in one lane.
	Lane func(*http.Request) string

	Cost func(*http.Request) Cost // what a request costs, unless WithCost says so; nil: one request

	MaxWait time.Duration // longest sum of a request's waits for budget, pauses included; zero: 75 s; negative: never wait

	// MaxQueue is how many requests may wait per host. Zero: 10000, and any number at a
	// new host that has refused none, to which requests are only let go by and by.
	MaxQueue int

	// MaxKeys is how many hosts and partitions are kept. Only one whose whole budget
	// is left is forgotten for another. If there is none, new ones share a record
	// and what it may spend. Zero: 100000.
	MaxKeys int

	MaxPause time.Duration // longest pause that is believed if one answer alone asks for it; zero: 5 min

	// Pace spreads a quota that a server states evenly over its window. False: it
	// may be spent at once. Budgets of yours say so themselves: "2400/d even align UTC".
	Pace bool

	// PeekBody is how many bytes of a body may be read for hints, of an answer that
	// may refuse the request (a 400 does, with AWS's code) or may be GraphQL's. The
	// caller still gets them. Zero: 4 KiB; negative: none.
	PeekBody int64

	DisableLearning bool        // learns no limits and no rates; pauses that servers ask for stay
	Learned         Knowledge   // what Transport.Learned returned when the program ran before; zero: nothing
	Store           Store       // shares the budgets with other processes; nil: this process only
	Fleet           FleetConfig // how Store is used; without a Store it is not looked at

	// Credential names the caller, as the server tells callers apart. What is
	// learned of a host is kept apart by it; "" is nobody's. It is called
	// once for each attempt, never under a lock, and only a keyed hash of the
	// result is kept. nil: the Authorization header decides. If it is signed, the
	// caller is the key that signed. If it is a JSON Web Token (RFC 7519), the caller
	// is the issuer, subject and client that it names, unchecked. Other tokens
	// that were used only once are taken for one caller's until answers show otherwise.
	Credential func(*http.Request) string

	// Classify decides what an answer says about the server's limits. It is
	// called with each answer, before anything is learned from it, and with what
	// weir has read in it; what it returns counts instead, for this package and
	// for packages retry and breaker around it:
	//
	//   - Throttled: the request was refused for its rate and not executed. It
	//     waits and is repeated as after a 429, whatever its method and the
	//     status. A Kind of zero then means headers.Quota. A 529 is Throttled
	//     already, of the Kind headers.Overload: it may have been executed, until
	//     its Kind is set to headers.Quota.
	//   - not Throttled: the answer is no refusal. A 429 is then final, and a
	//     good sign to the circuit; a 503 remains a failure.
	//   - RetryAfter and Limits are believed as far as a server's own are.
	//
	// The response is a copy to be read only. Its Body is the start of the body,
	// at most PeekBody bytes of JSON, XML or other text that is neither
	// compressed nor a stream; of all others it is empty. Reading it waits 100 ms
	// at most for what has not come, and takes nothing from the caller. An answer
	// whose Body is not read is not delayed. After Classify has returned, nothing
	// more is read.
	//
	// It is called on the request's goroutine, at the same time for several
	// requests, never under a lock. If it panics, the answer's body is closed and
	// the panic goes on to the caller. nil: what the server says counts.
	Classify func(*http.Response, headers.Signal) headers.Signal

	// OnWait is called when a request begins to wait and again when its wait is
	// over, on the request's goroutine, never under a lock. nil: not called.
	OnWait func(Wait)

	// OnLearn is called when something about a server was learned that it was not told already, on the
	// request's goroutine, never under a lock. nil: not called.
	OnLearn func(Learned)
}

// LimiterConfig says what a [Limiter] lets through. NewLimiter copies it.
type LimiterConfig struct {
	Default Budget // of each key that neither Budgets nor Budget knows. Zero: unlimited

	// Budgets are by key. A "*" in one stands for any text, also none: "*:reply"
	// names "ann:reply" and "bob:reply", each with a budget of its own. If several
	// match a key, one applies: the one that is the key itself, or else the
	// longest (stars not counted).
	Budgets map[string]Budget

	// Budget says the budget of each key that Budgets does not name, for limits
	// that are data: of a user's plan, or written in the key. It is called when a
	// key is first used, used again after it was forgotten, or used again after
	// SetBudget, under no lock; it may be called at the same time for several
	// keys. What the zero Budget names is unlimited. If it returns something that
	// is no budget, the key is refused, and Take says why. It cannot be used
	// together with Default. nil: Default.
	Budget func(key string) Budget

	Lane     func(ctx context.Context) string // lanes take fair turns in one key's budget; called with the context of Take. nil: one lane
	MaxWait  time.Duration                    // longest wait of one Take; zero: 75 s; negative: never wait
	MaxQueue int                              // waiting calls per key; zero: 10000

	// MaxKeys is how many keys are kept; zero: 100000. Only full accounts are
	// evicted. Beyond, newcomers share one account of each budget until there is
	// room: they may be refused for what others spent, never let through for it,
	// and Stats counts them. With a Store they do not share: each has its own
	// account there, and only the places in flight of this process, and the order of
	// those that wait, are shared with others in it.
	MaxKeys int

	Store  Store       // shares the budgets with other processes; nil: this process only
	Fleet  FleetConfig // how Store is used; see there. Without a Store it is not looked at
	OnWait func(Wait)  // as in Config
}

// Wait is one request's wait for budget, as OnWait sees it.
type Wait struct {
	Ctx     context.Context // of the request
	Key     string          // the host, or the Limiter's key, as in Error
	Unit    string          // of the account that binds; "" for a pause or requests in flight
	Why     string          // what is waited for, in words: "100/h is spent"
	Ahead   int             // how many waited before this one in the same queue
	Expect  time.Duration   // the wait, as estimated when it began; zero: not known
	Over    bool            // false when the wait begins, true when it is over
	Waited  time.Duration   // how long it took; zero unless Over
	Granted bool            // whether the wait ended with room; false unless Over
}

// Learned is something a server said or showed about its limits, as OnLearn
// sees it.
type Learned struct {
	Ctx  context.Context // of the request whose answer taught it
	Key  string          // the host, as in Error
	Unit string          // of the limit; "" for a pause
	Name string          // of the limit, as the server calls it; "" if it has none
	Why  string          // what is known now, and from where, in words
}

// ctxKey is the type of this package's context keys.
type ctxKey uint8

const (
	costKey ctxKey = iota
	priorityKey
	maxWaitKey
)

// WithCost returns a context whose requests draw c instead of what Config.Cost
// says. The caller must not change c afterwards.
func WithCost(ctx context.Context, c Cost) context.Context {
	return context.WithValue(ctx, costKey, c)
}

// WithPriority returns a context whose requests belong to priority class p. A
// higher class goes first; zero is normal. Every eighth grant of a queue goes to a
// lower class, if one waits: to its request that has waited longest. Requests that
// may not wait (MaxWait negative) have no priority: each gets what is left when it
// comes, unless it is the turn of one that waits.
func WithPriority(ctx context.Context, p int) context.Context {
	return context.WithValue(ctx, priorityKey, p)
}

// WithMaxWait returns a context whose requests wait at most d, whatever
// Config.MaxWait says; negative: never wait; zero: as configured.
func WithMaxWait(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, maxWaitKey, d)
}

func costFrom(ctx context.Context) (Cost, bool) {
	c, ok := ctx.Value(costKey).(Cost)
	return c, ok
}

func priorityFrom(ctx context.Context) int {
	p, _ := ctx.Value(priorityKey).(int)
	return p
}

func maxWaitFrom(ctx context.Context, otherwise time.Duration) time.Duration {
	d, _ := ctx.Value(maxWaitKey).(time.Duration)
	return cmp.Or(d, otherwise)
}
