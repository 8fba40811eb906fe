package scenario

import (
	"context"
	"fmt"

	"github.com/weirhttp/weir/bench/result"
	"github.com/weirhttp/weir/bench/rival"
)

func herd() Scenario {
	return Scenario{"herd", "A thousand goroutines begin at the same moment, against a host nobody has spoken to.", runHerd}
}

func runHerd(ctx context.Context, s Size) ([]result.Table, []result.Plot, error) {
	n := pick(s, 20, 400, 1000)
	kinds := []dialect{
		{name: "token bucket 200/s of 50, Retry-After", quota: func() quota { return &bucket{perSecond: 200, size: 50, level: 50} }, tell: tellWait},
		{name: "token bucket 200/s of 50, bare 429", quota: func() quota { return &bucket{perSecond: 200, size: 50, level: 50} }},
	}
	var tables []result.Table
	for i, d := range kinds {
		best := ideal(d.quota(), n)
		t := result.Table{ID: fmt.Sprintf("herd%d", i+1), Title: fmt.Sprintf("%d goroutines at once on a fresh host: %s", n, d.name),
			Note:    fmt.Sprintf("One call each, up to 8 retries, the rate not told. Ideal: %.2f s.", best.Seconds()),
			Columns: []result.Column{less("time s", 2, .01), less("of ideal", 2, .01), more("ok", 0, 0), less("lost", 0, 0), less("429", 0, 0)}}
		rivals := rival.All()
		t.Rows = make([]result.Row, len(rivals))
		one := func(i int, r rival.Rival) error {
			p := rival.Default()
			p.Retries = 8
			j, err := work(ctx, r, p, d, n, n)
			line := row(r, result.Num(j.took.Seconds()), result.Num(j.took.Seconds()/max(best.Seconds(), .001)), result.Num(j.ok), result.Num(j.lost), result.Num(j.refused))
			line.Failed = j.lost > 0
			t.Rows[i] = line
			return err
		}
		if err := inTurns(s, rivals, one); err != nil {
			return nil, nil, err
		}
		tables = append(tables, t)
	}
	return tables, nil, nil
}

// inTurns runs one rival after the other when there is time: a herd is all
// about its first instant.
func inTurns(s Size, rivals []rival.Rival, f func(int, rival.Rival) error) error {
	if s != Full {
		return each(rivals, f)
	}
	for i, r := range rivals {
		if err := f(i, r); err != nil {
			return err
		}
	}
	return nil
}
