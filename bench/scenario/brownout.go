package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/weirhttp/weir/bench/result"
	"github.com/weirhttp/weir/bench/rival"
)

func brownout() Scenario {
	return Scenario{"brownout", "A server fails some of its calls at random: how many attempts retries add, and how many calls they save.", runBrownout}
}

func runBrownout(ctx context.Context, s Size) ([]result.Table, []result.Plot, error) {
	chances := pick(s, []float64{.5}, []float64{.05, .3, 1}, []float64{.05, .1, .2, .3, .5, .8, 1})
	d, perSecond := pick(s, 200*time.Millisecond, 2*time.Second, 8*time.Second), pick(s, 20, 100, 200)
	rivals := rival.All()
	load := result.Table{ID: "brownout-load", Title: fmt.Sprintf("Brown-out at %d calls/s: attempts per call", perSecond),
		Note: "The columns are shares of answers that are 503. Each call is retried up to three times, and breakers are set as in the outage. A client with less than one attempt per call refuses the other calls itself. Rows are compared only in the last column, where no call can succeed; in the other columns more attempts also mean more calls that succeed, as the next table shows."}
	good := result.Table{ID: "brownout-ok", Title: "Brown-out: calls that succeed, %", Note: "The columns are those of the table above, and the figures are of the same run."}
	for _, t := range []*result.Table{&load, &good} {
		t.Rows = make([]result.Row, len(rivals))
		for i, r := range rivals {
			t.Rows[i] = row(r)
		}
	}
	plot := result.Plot{ID: "brownout", Title: "What a brown-out does to the load", X: "share of answers that are 503", Y: "attempts per call", Series: make([]result.Series, len(rivals))}
	for _, p := range chances {
		attempts := plain(fmt.Sprintf("%.0f %%", p*100), 2)
		if p == 1 {
			attempts.Better, attempts.Slack = -1, .03
		}
		load.Columns = append(load.Columns, attempts)
		good.Columns = append(good.Columns, more(fmt.Sprintf("%.0f %%", p*100), 1, .01))
		err := each(rivals, func(i int, r rival.Rival) error {
			attempts, ok, calls, err := fade(ctx, r, p, perSecond, d)
			load.Rows[i].Cells = append(load.Rows[i].Cells, result.Num(float64(attempts)/float64(calls)))
			good.Rows[i].Cells = append(good.Rows[i].Cells, result.Num(100*float64(ok)/float64(calls)))
			line := &plot.Series[i]
			line.Name, line.X, line.Y = r.Name, append(line.X, p), append(line.Y, float64(attempts)/float64(calls))
			return err
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return []result.Table{load, good}, []result.Plot{plot}, nil
}

// fade is steady traffic to a server that fails with probability p.
func fade(ctx context.Context, r rival.Rival, p float64, perSecond int, d time.Duration) (attempts, ok, calls int, err error) {
	random := rand.New(rand.NewPCG(1, 2)) // the same luck for all
	var mu sync.Mutex
	srv, err := newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		bad := random.Float64() < p
		mu.Unlock()
		if bad {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	if err != nil {
		return 0, 0, 1, err
	}
	defer srv.stop()
	base := newBase()
	defer base.CloseIdleConnections()
	wire := &counted{base: base}
	c, err := r.New(wire, rival.Default())
	if err != nil {
		return 0, 0, 1, err
	}
	defer c.Close()
	var count sync.Mutex
	steady(ctx, perSecond, d, func(time.Duration) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.url, nil)
		good := err == nil && finish(c.Do(q))
		count.Lock()
		defer count.Unlock()
		if calls++; good {
			ok++
		}
	})
	return int(wire.n.Load()), ok, calls, nil
}
