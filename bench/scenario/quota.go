package scenario

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/bench/result"
	"github.com/weirhttp/weir/bench/rival"
)

func quotas() Scenario {
	return Scenario{"quota", "How long a fixed amount of work takes under a quota, and how often the server has to refuse.", runQuotas}
}

// A job is one rival's work against one server.
type job struct {
	took    time.Duration // until the last success
	ok      int
	lost    int // calls that ended without a success
	refused int // answered 429
}

// work makes n calls from so many goroutines through r.
func work(ctx context.Context, r rival.Rival, p rival.Policy, d dialect, n, goroutines int) (job, error) {
	l := &limited{dialect: d, quota: d.quota()}
	srv, err := newServer(l)
	if err != nil {
		return job{}, err
	}
	defer srv.stop()
	base := newBase()
	defer base.CloseIdleConnections()
	c, err := r.New(base, p)
	if err != nil {
		return job{}, err
	}
	defer c.Close()
	var good atomic.Int64
	do := func(q *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		resp, err := c.Do(q.WithContext(ctx))
		if finish(resp, err) {
			good.Add(1)
		}
		return resp, err
	}
	_, _, failed := batch(do, srv.url, n, goroutines)
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = failed // a body is finished above, while its context lives
	return job{l.last, int(good.Load()), n - int(good.Load()), l.refused}, nil
}

func runQuotas(ctx context.Context, s Size) ([]result.Table, []result.Plot, error) {
	n, goroutines := pick(s, 12, 150, 500), pick(s, 4, 50, 50)
	list := dialects(s)
	pairs := make([][2]result.Table, len(list))
	err := parts(s, len(list), func(i int) (err error) {
		pairs[i], err = makespan(ctx, s, list[i], i, n, goroutines)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	var unknown, all []result.Table
	for _, p := range pairs {
		unknown, all = append(unknown, p[0]), append(all, p[0], p[1])
	}
	return all, quotaPlots(list, unknown), nil
}

// makespan lets all rivals do the same work at the same time but for their
// starts, each against a server of its own: without knowing the rate, and with.
func makespan(ctx context.Context, s Size, d dialect, i, n, goroutines int) (out [2]result.Table, err error) {
	best := ideal(d.quota(), n)
	var lists [2][]rival.Rival
	for _, r := range rival.All() {
		lists[0] = append(lists[0], r)
		if r.Known != "" {
			lists[1] = append(lists[1], r)
		}
	}
	title := fmt.Sprintf("%d calls from %d goroutines: %s", n, goroutines, d.name)
	for k, words := range []string{", rate not told", ", rate told"} {
		out[k] = result.Table{ID: fmt.Sprintf("quota%d%s", i+1, []string{"", "-told"}[k]), Title: title + words,
			Note:    fmt.Sprintf("Ideal: %.2f s. Each call is retried up to 8 times, with a backoff of 100 ms to 5 s. Rows that lost calls did less than the whole work; their figures are not compared.", best.Seconds()),
			Columns: []result.Column{less("time s", 2, .01), less("of ideal", 2, .01), more("ok", 0, 0), less("lost", 0, 0), less("429 per ok", 2, 0)},
			Rows:    make([]result.Row, len(lists[k]))}
	}
	one := func(k, i int, r rival.Rival) error {
		p := rival.Default()
		p.Retries = 8
		if k == 1 {
			p.Rate = d.known
		}
		j, err := work(ctx, r, p, d, n, goroutines)
		line := row(r, result.Num(j.took.Seconds()), result.Num(j.took.Seconds()/max(best.Seconds(), .001)), result.Num(j.ok), result.Num(j.lost), result.Num(float64(j.refused)/max(float64(j.ok), 1)))
		if line.Failed = j.lost > 0; k == 1 {
			line.Name = r.Known
		}
		out[k].Rows[i] = line
		return err
	}
	step := pick(s, 0, 20*time.Millisecond, 100*time.Millisecond)
	err = apart(step, slices.Concat(lists[0], lists[1]), func(i int, r rival.Rival) error {
		if n := len(lists[0]); i >= n {
			return one(1, i-n, r)
		}
		return one(0, i, r)
	})
	return out, err
}

func quotaPlots(list []dialect, tables []result.Table) []result.Plot {
	waste := result.Plot{ID: "quota-429", Title: "Refusals per success, rate not told", Y: "429 per success"}
	took := result.Plot{ID: "quota-time", Title: "Time of the whole work, rate not told (no bar: calls were lost)", Y: "times ideal"}
	for _, d := range list {
		waste.Names, took.Names = append(waste.Names, d.short), append(took.Names, d.short)
	}
	for i, r := range rival.All() {
		if r.Name == rival.Bare().Name || r.Name == rival.Heimdall().Name {
			continue // they do not retry a 429
		}
		a, b := result.Series{Name: r.Name}, result.Series{Name: r.Name}
		for _, t := range tables {
			cells := t.Rows[i].Cells
			a.Y = append(a.Y, cells[4].Value)
			if v := cells[1].Value; t.Rows[i].Failed {
				b.Y = append(b.Y, 0)
			} else {
				b.Y = append(b.Y, v)
			}
		}
		waste.Series, took.Series = append(waste.Series, a), append(took.Series, b)
	}
	return []result.Plot{waste, took}
}
