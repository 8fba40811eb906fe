package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"text/tabwriter"

	"github.com/vbauerster/mpb/v8/decor"
)

// tally is what was done at one host.
type tally struct {
	done, skipped, failed int
	bytes                 int64
	requests, refused     int // on the wire; refused: answered 429
}

// failure is a job that was not done, and why.
type failure struct {
	job job
	err error
}

// tallies counts for all hosts. It is safe for concurrent use.
type tallies struct {
	mu       sync.Mutex
	hosts    map[string]*tally
	failures []failure
}

func (t *tallies) count(host string, f func(*tally)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hosts[host] == nil {
		t.hosts[host] = new(tally)
	}
	f(t.hosts[host])
}

// finished counts one job.
func (t *tallies) finished(j job, bytes int64, skipped bool, err error) {
	t.count(j.host, func(h *tally) {
		switch {
		case err != nil:
			h.failed++
			t.failures = append(t.failures, failure{j, err})
		case skipped:
			h.skipped++
		default:
			h.done++
			h.bytes += bytes
		}
	})
}

// counter is the innermost RoundTripper: it counts what goes over the wire, so
// that the summary shows redirects and retries too.
type counter struct {
	base http.RoundTripper
	t    *tallies
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.base.RoundTrip(r)
	host := r.URL.Host
	if j, err := parse(r.URL.String()); err == nil {
		host = j.host
	}
	c.t.count(host, func(h *tally) {
		h.requests++
		if err == nil && resp.StatusCode == http.StatusTooManyRequests {
			h.refused++
		}
	})
	return resp, err
}

// print writes one line for each host, and their sum if there are several.
func (t *tallies) print(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "done\tskipped\tfailed\tbytes\trequests\t429s\t  host")
	var sum tally
	row := func(h tally, name string) {
		fmt.Fprintf(table, "%d\t%d\t%d\t%s\t%d\t%d\t  %s\n", h.done, h.skipped, h.failed, size(h.bytes), h.requests, h.refused, name)
	}
	for _, name := range slices.Sorted(maps.Keys(t.hosts)) {
		h := *t.hosts[name]
		row(h, name)
		sum.done += h.done
		sum.skipped += h.skipped
		sum.failed += h.failed
		sum.bytes += h.bytes
		sum.requests += h.requests
		sum.refused += h.refused
	}
	if len(t.hosts) > 1 {
		row(sum, "all hosts")
	}
	table.Flush()
}

// list writes what failed, in the order of the URLs.
func (t *tallies) list(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortFunc(t.failures, func(a, b failure) int { return cmp.Compare(a.job.text(), b.job.text()) })
	for _, f := range t.failures {
		fmt.Fprintf(w, "  %s: %v\n", f.job.text(), f.err)
	}
}

// size is a number of bytes for people.
func size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("% .1f", decor.SizeB1024(n))
}
