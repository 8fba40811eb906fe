package scenario

import (
	"context"
	"fmt"

	"github.com/weirhttp/weir/bench/result"
	"github.com/weirhttp/weir/bench/rival"
)

func herd() Scenario {
	return Scenario{"herd", "A thousand goroutines begin at the same moment to call a host that was not called before.", runHerd}
}

func runHerd(ctx context.Context, s Size) ([]result.Table, []result.Plot, error) {
	n := pick(s, 20, 400, 1000)
	kinds := []dialect{
		{name: "token bucket 200/s of 50, Retry-After", quota: func() quota { return &bucket{perSecond: 200, size: 50, level: 50} }, tell: tellWait},
		{name: "token bucket 200/s of 50, bare 429", quota: func() quota { return &bucket{perSecond: 200, size: 50, level: 50} }},
	}
	tables := make([]result.Table, len(kinds))
	err := parts(s, len(kinds), func(i int) (err error) {
		tables[i], err = oneHerd(ctx, s, kinds[i], i, n)
		return err
	})
	return tables, nil, err
}

// oneHerd lets the rivals run one after the other when there is time: a herd
// is all about its first instant.
func oneHerd(ctx context.Context, s Size, d dialect, i, n int) (result.Table, error) {
	best := ideal(d.quota(), n)
	t := result.Table{ID: fmt.Sprintf("herd%d", i+1), Title: fmt.Sprintf("%d goroutines at once on a fresh host: %s", n, d.name),
		Note:    fmt.Sprintf("Each goroutine makes one call, with up to 8 retries. No client is told the rate. Ideal: %.2f s. Rows that lost calls did less than the whole work.", best.Seconds()),
		Columns: []result.Column{less("time s", 2, .01), less("of ideal", 2, .01), more("ok", 0, 0), less("lost", 0, 0), less("429", 0, 0)}}
	rivals := rival.All()
	t.Rows = make([]result.Row, len(rivals))
	return t, parts(s, len(rivals), func(i int) error {
		r, p := rivals[i], rival.Default()
		p.Retries = 8
		j, err := work(ctx, r, p, d, n, n)
		line := row(r, result.Num(j.took.Seconds()), result.Num(j.took.Seconds()/max(best.Seconds(), .001)), result.Num(j.ok), result.Num(j.lost), result.Num(j.refused))
		line.Failed = j.lost > 0
		t.Rows[i] = line
		return err
	})
}
