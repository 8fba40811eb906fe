package scenario

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/weirhttp/weir/bench/result"
	"github.com/weirhttp/weir/bench/rival"
)

func overhead() Scenario {
	return Scenario{"overhead", "What a call costs over a base that does nothing, with all layers on. No call has to wait, and none fails.", runOverhead}
}

// stub is a base that costs next to nothing.
type stub struct{ header http.Header }

func (s *stub) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: s.header, Body: http.NoBody, Request: r}, nil
}

// A contender is a rival with one setting of its timeouts.
type contender struct {
	rival  rival.Rival
	policy rival.Policy
	name   string
	client rival.Client
}

// contenders returns every rival over one stub, first without timeouts, then
// with. The limiters are on, with more room than can be used.
func contenders() ([]contender, func(), error) {
	base := &stub{http.Header{"Content-Type": {"text/plain"}}}
	off, on := rival.Default(), rival.Default()
	off.Timeout = 0
	off.Rate = rival.Rate{Limit: 1e8, Per: time.Second, Bucket: 1e8}
	on.Rate = off.Rate
	var out []contender
	done := func() {
		for _, c := range out {
			c.client.Close()
		}
	}
	for _, policy := range []rival.Policy{off, on} {
		for _, r := range rival.All() {
			name := r.Name
			if r.Known != "" && name != rival.Bare().Name {
				name = r.Known
			}
			if policy.Timeout == 0 && r.Name == rival.Heimdall().Name {
				continue // it cannot be without
			}
			c, err := r.New(base, policy)
			if err != nil {
				return nil, done, err
			}
			out = append(out, contender{r, policy, name, c})
		}
	}
	return out, done, nil
}

// get calls c with one request again and again; requests are not modified by
// those that keep to the contract, and the others take a copy.
func (c contender) get(url string) (func(int), error) {
	var pool sync.Pool // a request per goroutine, as heimdall and resty may write to it
	if _, err := http.NewRequest(http.MethodGet, url, nil); err != nil {
		return nil, err
	}
	pool.New = func() any {
		r, _ := http.NewRequest(http.MethodGet, url, nil)
		return r
	}
	return func(int) {
		r := pool.Get().(*http.Request)
		finish(c.client.Do(r))
		pool.Put(r)
	}, nil
}

// post sends 1 KiB, and makes the request each time, as GetBody's owner must.
func (c contender) post(url string) func(int) {
	body := bytes.Repeat([]byte("x"), 1024)
	return func(int) {
		r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
		if err == nil {
			finish(c.client.Do(r))
		}
	}
}

func runOverhead(_ context.Context, s Size) ([]result.Table, []result.Plot, error) {
	rounds, n := pick(s, 1, 3, 13), pick(s, 20, 6000, 15000)
	all, done, err := contenders()
	defer done()
	if err != nil {
		return nil, nil, err
	}
	gets, posts := make([]func(int), len(all)), make([]func(int), len(all))
	for i, c := range all {
		if gets[i], err = c.get("http://api.example.com/v1/items"); err != nil {
			return nil, nil, err
		}
		posts[i] = c.post("http://api.example.com/v1/items")
	}
	measured := [][]cost{interleave(rounds, n, 1, gets), interleave(rounds, n, 2, gets), interleave(rounds, n, 1, posts), interleave(rounds, n, 2, posts)}
	hosts, err := manyHosts(s)
	if err != nil {
		return nil, nil, err
	}
	headers, err := headerCosts(s)
	if err != nil {
		return nil, nil, err
	}
	off, on := overheadTable(all, measured, false), overheadTable(all, measured, true)
	return []result.Table{off, on, headers, hosts}, []result.Plot{overheadPlot(on)}, nil
}

func overheadTable(all []contender, m [][]cost, timeouts bool) result.Table {
	id, title := "overhead-off", "Cost of a call over a stub, timeouts off"
	if timeouts {
		id, title = "overhead", "Cost of a call over a stub, timeouts on"
	}
	t := result.Table{ID: id, Title: title,
		Note: "The row net/http is the cost of the base alone. The other rows are the nanoseconds, bytes (B) and allocations that are added to it. x2: with two goroutines, the time per call. " +
			"A library that has a limiter which waits uses it; otherwise x/time/rate is below it. heimdall and resty have no RoundTripper, so their rows are the cost of their own entry point, with the http.Client that is part of them. heimdall cannot be used without timeouts. The figures are medians of rounds in which the libraries take turns.",
		Columns: []result.Column{less("GET ns", 0, .1), less("B", 0, .05), less("allocs", 1, 0), less("GET x2 ns", 0, .1), less("POST 1 KiB ns", 0, .1), less("B", 0, .05), less("allocs", 1, 0), less("POST x2 ns", 0, .1)}}
	for i, c := range all {
		if timeouts != (c.policy.Timeout > 0) {
			continue
		}
		r := row(c.rival)
		r.Name = c.name
		for k, column := range m {
			v := column[i]
			if !r.Aside {
				v = cost{v.ns - column[0].ns, v.bytes - column[0].bytes, v.allocs - column[0].allocs}
			}
			r.Cells = append(r.Cells, result.Num(v.ns))
			if k%2 == 0 {
				r.Cells = append(r.Cells, result.Num(max(v.bytes, 0)), result.Num(max(v.allocs, 0)))
			}
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

func overheadPlot(t result.Table) result.Plot {
	p := result.Plot{ID: "overhead", Title: "Added to a call by each library (stub base, timeouts on, one goroutine)", Y: "ns per call", Names: []string{"GET", "POST 1 KiB"}}
	for _, r := range t.Rows {
		if !r.Aside {
			p.Series = append(p.Series, result.Series{Name: r.Name, Y: []float64{r.Cells[0].Value, r.Cells[4].Value}})
		}
	}
	return p
}

// manyHosts goes round many hosts. weir keeps a record of each; what others
// know is one state for all, so those with a state get one per host, in the
// map that programs write around them.
func manyHosts(s Size) (result.Table, error) {
	hosts, rounds := pick(s, 20, 5000, 10000), pick(s, 1, 4, 9)
	t := result.Table{ID: "hosts", Title: fmt.Sprintf("GET over %d hosts in turns, a state for each", hosts),
		Note:    "The figures are added to those of the base. hand-made and failsafe-go are one per host, in a map with a lock, and are never dropped. Bytes per host: the growth of the heap after all hosts were called, minus the growth with the base alone.",
		Columns: []result.Column{less("ns", 0, .1), less("ns x2", 0, .1), less("allocs", 1, 0), less("bytes per host", 0, .02)}}
	policy := rival.Default()
	policy.Timeout = 0
	policy.Rate = rival.Rate{Limit: 1e8, Per: time.Second, Bucket: 1e8}
	requests := make([]*http.Request, hosts)
	for i := range requests {
		r, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://h%d.example.com/", i), nil)
		if err != nil {
			return t, err
		}
		requests[i] = r
	}
	list := []rival.Rival{rival.Bare(), rival.Weir(), perHost(rival.Hand()), perHost(rival.Failsafe())}
	fs, memory := make([]func(int), len(list)), make([]float64, len(list))
	for i, r := range list {
		before := heap()
		c, err := r.New(&stub{http.Header{}}, policy)
		if err != nil {
			return t, err
		}
		defer c.Close()
		fs[i] = func(k int) { finish(c.Do(requests[k%hosts])) }
		timed(hosts, 1, fs[i])
		memory[i] = (heap() - before) / float64(hosts)
	}
	one, two := interleave(rounds, hosts, 1, fs), interleave(rounds, hosts, 2, fs)
	for i, r := range list {
		a, b, m := one[i], two[i], memory[i]
		if i > 0 {
			a.ns, a.allocs, b.ns, m = a.ns-one[0].ns, a.allocs-one[0].allocs, b.ns-two[0].ns, m-memory[0]
		}
		t.Rows = append(t.Rows, row(r, result.Num(a.ns), result.Num(b.ns), result.Num(a.allocs), result.Num(max(m, 0))))
	}
	return t, nil
}

// perHost is r with a state for each host.
func perHost(r rival.Rival) rival.Rival {
	r.Name += " per host"
	inner := r.New
	r.New = func(base http.RoundTripper, p rival.Policy) (rival.Client, error) {
		var mu sync.RWMutex
		clients := make(map[string]rival.Client)
		do := func(q *http.Request) (*http.Response, error) {
			mu.RLock()
			c, ok := clients[q.URL.Host]
			mu.RUnlock()
			if ok {
				return c.Do(q)
			}
			c, err := inner(base, p)
			if err != nil {
				return nil, err
			}
			mu.Lock()
			if first, ok := clients[q.URL.Host]; ok {
				c = first
			} else {
				clients[q.URL.Host] = c
			}
			mu.Unlock()
			return c.Do(q)
		}
		return rival.Client{Do: do, Close: func() {}}, nil
	}
	return r
}
