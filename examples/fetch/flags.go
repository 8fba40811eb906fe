package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weirhttp/weir/throttle"
)

// settings are what the command line says.
type settings struct {
	into     string
	from     string
	budgets  budgets
	parallel int
	maxWait  time.Duration
	patience time.Duration
	again    bool
	urls     []string
}

// budgets is a flag that may be given more than once: pattern=budget.
type budgets map[string]throttle.Budget

func (b budgets) String() string { return "" }

// Set reads one pattern=budget. A budget holds no "=", a path may.
func (b budgets) Set(text string) error {
	i := strings.LastIndexByte(text, '=')
	if i <= 0 {
		return errors.New("want PATTERN=BUDGET, as 'api.github.com=5000/h, 20 in flight'")
	}
	pattern := strings.TrimSpace(text[:i])
	if _, ok := b[pattern]; ok {
		return fmt.Errorf("%s has a budget already", pattern)
	}
	budget, err := throttle.ParseBudget(strings.TrimSpace(text[i+1:]))
	if err != nil {
		return err
	}
	b[pattern] = budget
	return nil
}

const usage = `usage: fetch [flags] [URL...]

Downloads each URL to DIR/host/path. Keeps to the budgets given, and to what
each host says about its own limits. A file that exists is complete and is not
fetched again, so a run that was interrupted goes on where it stopped.

`

// read reads the command line. Errors have been shown when it returns.
func read(args []string, stderr io.Writer) (settings, error) {
	s := settings{budgets: budgets{}}
	f := flag.NewFlagSet("fetch", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&s.into, "into", ".", "download into `DIR`")
	f.StringVar(&s.from, "from", "", "read URLs from `FILE`, one a line; - is the standard input")
	f.Var(s.budgets, "budget", "`PATTERN=BUDGET`, may be given more than once:\n'api.github.com=5000/h, 20 in flight', '*.example.com=2/s'")
	f.IntVar(&s.parallel, "parallel", 16, "downloads at a time from `N` places; a budget's \"in flight\" goes before it")
	f.DurationVar(&s.maxWait, "max-wait", time.Hour, "give a download up that would wait longer than `D` for its budget or its host")
	f.DurationVar(&s.patience, "patience", time.Minute, "wait up to `D` for a host that is down to come back")
	f.BoolVar(&s.again, "again", false, "fetch files again that exist already")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stderr, usage)
		f.SetOutput(stderr)
		f.PrintDefaults()
		return s, err
	}
	s.urls = f.Args()
	switch {
	case err != nil:
		err = fmt.Errorf("%w\nfetch -h shows what there is", err)
	case len(s.urls) == 0 && s.from == "":
		err = errors.New("no URLs: give them as arguments, or with -from FILE (-from - for the standard input)")
	case s.parallel < 1:
		err = fmt.Errorf("-parallel: %d is less than 1", s.parallel)
	case s.maxWait <= 0:
		err = fmt.Errorf("-max-wait: %v is not positive", s.maxWait)
	case s.patience < 0:
		err = fmt.Errorf("-patience: %v is negative", s.patience)
	}
	if err != nil {
		fmt.Fprintln(stderr, "fetch:", err)
	}
	return s, err
}
