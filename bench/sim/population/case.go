package population

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirhttp/weir/bench/sim/limit"
)

// A Set is a range of cases. Train's is part of test's.
type Set string

const (
	Train Set = "train"
	Test  Set = "test"
)

// A Case is one server, network and demand. It is the same for all who meet it.
type Case struct {
	Set   Set
	Seed  uint64
	Index int

	Kind       string // of limiter
	Limit      string // the limiter in words
	Dialect    dialect
	Everywhere bool // what the dialect says of the quota stands on every answer, else on refusals
	Hinted     bool // a dialect that states the quota says Retry-After too

	RTT    time.Duration // without jitter
	Jitter float64       // mean of what is added to each way, as a share of it
	Skew   time.Duration // of the server's clock
	NoDate bool
	Works  works

	Demand Demand
	Wait   time.Duration // the longest wait that weir is configured with; zero: Config{}

	limiter
}

// A limiter is what a kind of server is made of.
type limiter struct {
	gates   func() []limit.Limiter       // one for each route
	rate    float64                      // of requests per second that all gates together bear in the long run
	burst   float64                      // that they bear at once
	longest time.Duration                // that a single refusal may last
	work    func(call int) time.Duration // on top of what the limiter takes
	slots   bool                         // it is on requests at a time, and takes as long as the work
	talks   bool                         // it can state a quota
	step    time.Duration                // when the quota rises; zero: it does not
	risen   float64                      // the rate after that
	span    time.Duration                // over which the new rate shows
}

// A Demand is what the program wants: Calls calls, each on its route.
type Demand struct {
	Kind    string
	Load    float64 // of open demand, as a share of the sustained rate; zero: a batch
	Calls   int
	Workers int             // of a batch: each makes one call at a time
	Wants   []time.Duration // of open demand: when each call is wanted, sorted
	Routes  []int
}

// A way is what a request's journey takes, there and back. It depends on which
// call and attempt it is, and on nothing that a strategy does otherwise.
func (c *Case) way(call, attempt int) (up, down time.Duration) {
	r := rand.New(rand.NewPCG(c.Seed<<20^uint64(c.Index), uint64(call)<<20^uint64(attempt)))
	half := func() time.Duration {
		return time.Duration(float64(c.RTT) / 2 * (1 + min(5, r.ExpFloat64())*c.Jitter))
	}
	return half(), half()
}

// String is the case in one line.
func (c *Case) String() string {
	where := "on refusals"
	if c.Everywhere {
		where = "on all answers"
	}
	if !c.Dialect.states {
		where = ""
	} else if c.Hinted {
		where += " with Retry-After"
	}
	work := ""
	if c.Works.kind != "" {
		work = " " + c.Works.String() + ";"
	}
	config := "Config{}"
	if c.Wait > 0 {
		config = fmt.Sprint("MaxWait ", c.Wait)
	}
	return fmt.Sprintf("%s: %s;%s %s %s; round trip %v, jitter %.0f %%, clock off by %v; %s; %s", c.Kind, c.Limit, work, c.Dialect.name, where,
		c.RTT.Round(time.Millisecond), 100*c.Jitter, c.Skew.Round(10*time.Millisecond), c.Demand.describe(), config)
}

func (d *Demand) describe() string {
	switch {
	case d.Load == 0:
		return fmt.Sprintf("%d calls from %d goroutines", d.Calls, d.Workers)
	default:
		return fmt.Sprintf("%d calls, %s at %.2f of the rate", d.Calls, d.Kind, d.Load)
	}
}

// Replay is the command that runs this case again and shows what happened.
func (c *Case) Replay() string {
	return fmt.Sprintf("go run ./bench/sim/population/report -set %s -seed %d -case %d", c.Set, c.Seed, c.Index)
}
