// Fetch downloads many files. It keeps to the budgets that it is given and to the
// limits that servers state, and skips files that an earlier run has downloaded.
//
//	go run ./examples/fetch -into data -budget 'api.github.com=5000/h, 20 in flight' -from urls.txt
//
// It exits with 0 if every file is there, and with 1 if some are not. It exits with 2
// if the command line, a URL or the folder is wrong; then nothing was requested.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	s, err := read(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	fail := func(err error) int {
		fmt.Fprintln(stderr, "fetch:", err)
		return 2
	}
	jobs, err := s.jobs(stdin)
	if err != nil {
		return fail(err)
	}
	t := &tallies{hosts: map[string]*tally{}}
	b := new(bar)
	transport, stop, err := s.transport(t, b)
	if err != nil {
		return fail(err)
	}
	defer stop()
	folder, err := open(s.into)
	if err != nil {
		return fail(err)
	}
	defer folder.Close()

	d := &downloader{
		client:   &http.Client{Transport: transport},
		state:    transport.Circuits().State,
		folder:   folder,
		again:    s.again,
		patience: s.patience,
	}
	b.start(stderr, len(jobs))
	done := d.all(ctx, jobs, s.parallel, t, b)
	b.stop()
	t.print(stdout)
	if len(t.failures) > 0 {
		fmt.Fprintf(stderr, "fetch: %d of %d failed:\n", len(t.failures), len(jobs))
		t.list(stderr)
	}
	if done < len(jobs) {
		fmt.Fprintf(stderr, "fetch: interrupted; %d of %d left\n", len(jobs)-done, len(jobs))
	}
	if done < len(jobs) || len(t.failures) > 0 {
		return 1
	}
	return 0
}

// jobs reads the URLs.
func (s settings) jobs(stdin io.Reader) ([]job, error) {
	switch s.from {
	case "":
		return plan(s.urls, "", nil)
	case "-":
		return plan(s.urls, "standard input", stdin)
	}
	f, err := os.Open(s.from)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return plan(s.urls, s.from, f)
}

// transport returns one that keeps to the budgets, and what ends it.
func (s settings) transport(t *tallies, b *bar) (*weir.Transport, func(), error) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = s.parallel
	transport, err := weir.New(counter{base, t}, weir.Config{
		Throttle: throttle.Config{
			// Hosts without a budget of their own share one number of places.
			Default: throttle.Budget{InFlight: s.parallel, Pool: "all"},
			Budgets: s.budgets,
			MaxWait: s.maxWait,
			OnWait:  b.wait,
		},
		Retry:   retry.Config{MaxDelay: s.maxWait},
		Breaker: breaker.Config{Patience: s.patience},
	})
	if err != nil {
		return nil, nil, err
	}
	return transport, func() {
		transport.Close()
		base.CloseIdleConnections()
	}, nil
}

// all downloads jobs, those of each host by up to parallel goroutines of its
// own, so that no host waits for another. It returns how many were finished,
// whether they succeeded or failed, before ctx was done.
func (d *downloader) all(ctx context.Context, jobs []job, parallel int, t *tallies, b *bar) int {
	byHost := map[string][]job{}
	for _, j := range jobs {
		byHost[j.host] = append(byHost[j.host], j)
	}
	var finished atomic.Int64
	var wg sync.WaitGroup
	for _, queue := range byHost {
		var next atomic.Int64
		var down atomic.Bool
		for range min(parallel, len(queue)) {
			wg.Go(func() {
				for i := next.Add(1); i <= int64(len(queue)) && ctx.Err() == nil; i = next.Add(1) {
					j := queue[i-1]
					bytes, skipped, err := d.get(ctx, j, &down)
					if err != nil && ctx.Err() != nil {
						return // not the job's fault
					}
					t.finished(j, bytes, skipped, err)
					b.finished(bytes, err)
					finished.Add(1)
				}
			})
		}
	}
	wg.Wait()
	return int(finished.Load())
}
