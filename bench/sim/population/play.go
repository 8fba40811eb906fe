package population

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/weirhttp/weir/bench/wait"
)

// A Result is what one caller made of one case.
type Result struct {
	Index  int
	Caller string

	Calls   int
	Lost    int
	Refused int     // requests
	Time    float64 // over the all-knowing client's
	Stall   float64 // seconds
	Found   float64 // seconds until a raised quota was used; negative: it was not raised
	Why     map[string]int
	Panics  string
}

// refusals are those for each success.
func (r *Result) refusals() float64 { return float64(r.Refused) / float64(max(1, r.Calls-r.Lost)) }

// Play has a caller work off a case. It must be called in a bubble of
// testing/synctest.
func Play(c *Case, who Caller) (Result, []Arrival) {
	// A year in which Unix times have ten digits, and no round instant.
	time.Sleep(26*365*24*time.Hour + time.Duration(c.Seed*7919+uint64(c.Index))%1e6*time.Millisecond)
	p := &play{c: c, world: newWorld(c), result: Result{Index: c.Index, Caller: who.Name, Calls: c.Demand.Calls, Why: map[string]int{}}}
	do, end := who.start(c, p.world)
	p.do = do
	ideal := c.Ideal()
	ctx, cancel := context.WithCancel(context.Background())
	horizon := time.AfterFunc(50*ideal.Span+time.Hour, cancel)
	if c.Demand.Load > 0 {
		p.open(ctx)
	} else {
		p.batch(ctx)
	}
	horizon.Stop()
	cancel()
	span := p.world.now()
	end()
	return p.measure(ideal, span), p.world.arrivals
}

type play struct {
	c     *Case
	world *world
	do    func(*http.Request) (*http.Response, error)

	mu     sync.Mutex
	served int
	spent  time.Duration // by the calls that were served
	result Result
}

// batch has the workers take call after call.
func (p *play) batch(ctx context.Context) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := 0
	for range min(p.c.Demand.Workers, p.c.Demand.Calls) {
		wg.Go(func() {
			for {
				mu.Lock()
				k := next
				next++
				mu.Unlock()
				if k >= p.c.Demand.Calls || ctx.Err() != nil {
					return
				}
				if !p.call(ctx, k) {
					_ = wait.For(ctx, 10*time.Millisecond) // who is refused without a wait must not stop the clock
				}
			}
		})
	}
	wg.Wait()
}

// open begins each call when it is wanted.
func (p *play) open(ctx context.Context) {
	var wg sync.WaitGroup
	for k, at := range p.c.Demand.Wants {
		if wait.For(ctx, at-p.world.now()) != nil {
			break
		}
		wg.Go(func() { p.call(ctx, k) })
	}
	wg.Wait()
}

// call makes one call and reports whether it was served.
func (p *play) call(ctx context.Context, k int) (ok bool) {
	begin := p.world.now()
	p.wait(true)
	defer func() {
		p.wait(false)
		if x := recover(); x != nil {
			p.mu.Lock()
			p.result.Panics = fmt.Sprint(x)
			p.mu.Unlock()
		}
	}()
	resp, err := p.do(request(ctx, &call{number: k, route: p.c.Demand.Routes[k]}))
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.result.Why[reason(err)]++
		return false
	case resp.StatusCode != http.StatusOK:
		resp.Body.Close()
		p.result.Why[resp.Status]++
		return false
	}
	resp.Body.Close()
	p.served++
	p.spent += p.world.now() - begin
	return true
}

// reason is an error without the durations in it, which differ from call to call.
func reason(err error) string {
	if errors.Is(err, context.Canceled) {
		return "not over at the horizon"
	}
	return regexp.MustCompile(`\b(\d+(\.\d+)?(h|m|s|ms|µs|ns))+\b`).ReplaceAllString(err.Error(), "#")
}

func (p *play) wait(begins bool) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	if begins {
		p.world.wait(p.world.now())
	} else {
		p.world.leave(p.world.now())
	}
}

// measure is called when all is over.
func (p *play) measure(ideal *Plan, span time.Duration) Result {
	r := &p.result
	r.Lost = r.Calls - p.served
	r.Refused = p.world.refused
	r.Stall = p.world.longest.Seconds()
	r.Time = p.c.over(ideal, span, p.spent/time.Duration(max(1, p.served)))
	r.Found = -1
	if p.c.step > 0 {
		r.Found = found(p.world.arrivals, p.c, span, ideal.rate(p.c.step)).Seconds()
	}
	return *r
}

// over is a span, or the mean time of a call, over the all-knowing client's: what counts depends on
// how calls come.
func (c *Case) over(ideal *Plan, span, mean time.Duration) float64 {
	if c.Demand.Load == 0 {
		return span.Seconds() / ideal.Span.Seconds()
	}
	return mean.Seconds() / ideal.Mean.Seconds()
}

// found is the time from a rise of the quota until the first span of time in which four fifths
// are accepted of what the new rate allows, or until the end. most is how many a second the
// all-knowing client gets accepted since: the workers of a demand may ask for less than the rate.
func found(arrivals []Arrival, c *Case, end time.Duration, most float64) time.Duration {
	var good []time.Duration
	for _, a := range arrivals {
		if a.OK && a.At >= c.step {
			good = append(good, a.At)
		}
	}
	want := max(1, int(.8*min(c.risen, most)*c.span.Seconds()))
	for i := range good {
		if i+want-1 < len(good) && good[i+want-1]-good[i] < c.span {
			return good[i] - c.step
		}
	}
	return max(0, end-c.step)
}
