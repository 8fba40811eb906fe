package scenario

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/bench/result"
	"github.com/weirhttp/weir/bench/rival"
)

func outage() Scenario {
	return Scenario{"outage", "A server fails for some seconds and comes back, under steady traffic.", runOutage}
}

// A plan is when the server fails, and what it is asked meanwhile.
type plan struct {
	healthy, down, after time.Duration
	perSecond            int
	refuse               bool // connections; else it answers 503
}

func outagePlan(s Size, refuse bool) plan {
	return plan{pick(s, 100*time.Millisecond, time.Second, time.Second), pick(s, 300*time.Millisecond, 3500*time.Millisecond, 3500*time.Millisecond),
		pick(s, 200*time.Millisecond, 2*time.Second, 3*time.Second), pick(s, 20, 100, 200), refuse}
}

// patient is weir with Breaker.Patience: a row of its own.
func patient() rival.Rival {
	r := rival.Weir()
	r.Name = "weir, patient"
	inner := r.New
	r.New = func(base http.RoundTripper, p rival.Policy) (rival.Client, error) {
		p.Patience = 10 * time.Second
		return inner(base, p)
	}
	return r
}

// A call is one that was made.
type call struct {
	at, end time.Duration
	ok      bool
}

// An ordeal is what a rival made of a plan.
type ordeal struct {
	calls    []call
	attempts []time.Duration
}

// suffer runs plan p against r.
func suffer(ctx context.Context, r rival.Rival, p plan) (ordeal, error) {
	var down atomic.Bool
	srv, err := newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	if err != nil {
		return ordeal{}, err
	}
	defer srv.stop()
	base := newBase()
	defer base.CloseIdleConnections()
	wire := &counted{base: base, begin: time.Now(), keep: true}
	c, err := r.New(wire, rival.Default())
	if err != nil {
		return ordeal{}, err
	}
	defer c.Close()
	var o ordeal
	var mu sync.Mutex
	begin := time.Now()
	wire.begin = begin
	failed := make(chan error, 1)
	go func() { failed <- p.carryOut(begin, srv, &down) }()
	steady(ctx, p.perSecond, p.healthy+p.down+p.after, func(at time.Duration) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.url, nil)
		ok := err == nil && finish(c.Do(q))
		end := time.Since(begin)
		mu.Lock()
		o.calls = append(o.calls, call{at, end, ok})
		mu.Unlock()
	})
	o.attempts = wire.at
	quantile(o.attempts, 0) // sorts
	return o, <-failed
}

func (p plan) carryOut(begin time.Time, srv *server, down *atomic.Bool) error {
	time.Sleep(time.Until(begin.Add(p.healthy)))
	if down.Store(true); p.refuse {
		srv.stop()
	}
	time.Sleep(time.Until(begin.Add(p.healthy + p.down)))
	if down.Store(false); p.refuse {
		return srv.restart()
	}
	return nil
}

// back is how long after the server's return goodput was 90 % of the
// arrivals, over 100 ms; -1: never.
func (o ordeal) back(p plan) time.Duration {
	var ends []time.Duration
	for _, c := range o.calls {
		if c.ok {
			ends = append(ends, c.end)
		}
	}
	up := p.healthy + p.down
	for t := up; t < up+p.after-100*time.Millisecond; t += 10 * time.Millisecond {
		if float64(between(ends, t, t+100*time.Millisecond)) >= .09*float64(p.perSecond) {
			return t - up
		}
	}
	return -1
}

// between counts the instants from a to before b.
func between(ds []time.Duration, a, b time.Duration) int {
	n := 0
	for _, d := range ds {
		if d >= a && d < b {
			n++
		}
	}
	return n
}

// errors splits the calls that failed by when they came.
func (o ordeal) errors(p plan) (during, after int) {
	for _, c := range o.calls {
		switch {
		case c.ok:
		case c.at >= p.healthy+p.down:
			after++
		default:
			during++
		}
	}
	return during, after
}

func (o ordeal) row(r rival.Rival, p plan) result.Row {
	down, up := p.healthy, p.healthy+p.down
	upstream := between(o.attempts, down, up)
	peak := 0
	for t := up; t < up+p.after; t += 10 * time.Millisecond {
		peak = max(peak, between(o.attempts, t, t+100*time.Millisecond))
	}
	during, after := o.errors(p)
	back := result.None()
	if b := o.back(p); b >= 0 {
		back = result.Num(b.Seconds() * 1e3)
	}
	line := row(r, result.Num(upstream), result.Num(float64(upstream)/(float64(p.perSecond)*p.down.Seconds())), back,
		result.Num(float64(peak)*10/float64(p.perSecond)), result.Num(during), result.Num(after))
	line.Ours = line.Ours || r.Name == patient().Name
	return line
}

func runOutage(ctx context.Context, s Size) ([]result.Table, []result.Plot, error) {
	tables, plots := make([]result.Table, 2), make([]result.Plot, 2)
	err := parts(s, 2, func(i int) (err error) {
		tables[i], plots[i], err = oneOutage(ctx, outagePlan(s, i == 1))
		return err
	})
	return tables, plots, err
}

// oneOutage lets all rivals suffer the same at the same time.
func oneOutage(ctx context.Context, p plan) (result.Table, result.Plot, error) {
	rivals := append(rival.All(), patient())
	ordeals := make([]ordeal, len(rivals))
	err := each(rivals, func(i int, r rival.Rival) (err error) {
		ordeals[i], err = suffer(ctx, r, p)
		return err
	})
	id, how := "outage503", "answers 503"
	if p.refuse {
		id, how = "outage-refused", "refuses connections"
	}
	t := result.Table{ID: id, Title: fmt.Sprintf("Server %s for %.1f s at %d calls/s", how, p.down.Seconds(), p.perSecond),
		Note: "Each call is retried up to three times. Breakers open after 5 failures in a row, for 250 ms. Callers wait up to 10 s. Attempts are those that were sent during the outage; per call, they are divided by the calls that were made in that time. Recovered after: how long after the server's return as many calls succeed in 100 ms as nine tenths of those that are made. " +
			"Peak: the most attempts in any 100 ms after the return, divided by the calls that are made in 100 ms. Failed calls are counted by when they were made: in the outage, or after it. In the row \"weir, patient\", Breaker.Patience is 10 s.",
		Columns: []result.Column{less("attempts", 0, .02), less("attempts per call", 3, .02), less("recovered after ms", 0, .1), less("peak after it", 2, .1), less("failed, made in the outage", 0, 0), less("failed, made after it", 0, 0)}}
	for i, r := range rivals {
		t.Rows = append(t.Rows, ordeals[i].row(r, p))
	}
	return t, outagePlot(id, t.Title, rivals, ordeals, p), err
}

// outagePlot shows what the server gets to see.
func outagePlot(id, title string, rivals []rival.Rival, ordeals []ordeal, p plan) result.Plot {
	pl := result.Plot{ID: id, Title: title + ": what reaches the server", X: "s", Y: "attempts per second"}
	for i, r := range rivals {
		line := result.Series{Name: r.Name}
		for t := time.Duration(0); t < p.healthy+p.down+p.after; t += 100 * time.Millisecond {
			line.X = append(line.X, t.Seconds())
			line.Y = append(line.Y, 10*float64(between(ordeals[i].attempts, t, t+100*time.Millisecond)))
		}
		pl.Series = append(pl.Series, line)
	}
	return pl
}
