// Command bench measures weir beside what else there is, in one run: the
// rivals of folder rival in the scenarios of folder scenario.
//
//	go run ./bench                        # all, at most ten minutes
//	go run ./bench -quick                 # all, at most 90 s
//	go run ./bench -only quota,outage     # some, and no page is rewritten
//	go run ./bench -render                # pages and plots anew, from results.json
//
// It prints tables and writes results.json, results.md and the plots into
// bench/results. When every scenario has run it also rewrites the text between
// the markers in README.md and docs/performance.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirhttp/weir/bench/result"
	"github.com/weirhttp/weir/bench/scenario"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "measure less, in 90 s")
	only := flags.String("only", "", "names of scenarios, separated by commas")
	out := flags.String("out", "", "folder for results (default: bench/results)")
	render := flags.Bool("render", false, "measure nothing: write plots and pages from results.json")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := findRoot()
	if err != nil {
		return err
	}
	if *out == "" {
		*out = filepath.Join(root, "bench", "results")
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	if *render {
		r, err := result.ReadJSON(filepath.Join(*out, "results.json"))
		if err != nil {
			return err
		}
		return errors.Join(write(r, *out), pages(r, root))
	}
	list, err := choose(*only)
	if err != nil {
		return err
	}
	size, command := scenario.Full, "go run ./bench"
	if *quick {
		size, command = scenario.Quick, "go run ./bench -quick"
	}
	r := result.Run{Command: command, Commit: commit(root), Versions: versions(), Machine: machine()}
	others := watchOthers()
	if err := measure(ctx, &r, list, size); err != nil {
		return err
	}
	r.Machine.After, r.Machine.Others = loadAverage(), others()
	if err := write(r, *out); err != nil || *only != "" {
		return err
	}
	return pages(r, root)
}

// choose returns the scenarios of that list; all for an empty one.
func choose(only string) ([]scenario.Scenario, error) {
	all := scenario.All()
	if only == "" {
		return all, nil
	}
	var list []scenario.Scenario
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(s scenario.Scenario) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no scenario is called %q", name)
		}
		list = append(list, all[i])
	}
	return list, nil
}

func measure(ctx context.Context, r *result.Run, list []scenario.Scenario, size scenario.Size) error {
	for _, s := range list {
		fmt.Printf("== %s: %s\n\n", s.Name, s.About)
		begin := time.Now()
		tables, plots, err := s.Run(ctx, size)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		took := time.Since(begin).Seconds()
		for _, t := range tables {
			fmt.Println(t.Text())
		}
		fmt.Printf("(%.0f s)\n\n", took)
		r.Sections = append(r.Sections, result.Section{Name: s.Name, About: s.About, Seconds: took, Tables: tables, Plots: plots})
	}
	return nil
}

// write puts the results into folder out.
func write(r result.Run, out string) error {
	errs := []error{
		r.WriteJSON(filepath.Join(out, "results.json")),
		os.WriteFile(filepath.Join(out, "results.md"), []byte("# Results\n\n"+r.Full("")), 0o644),
	}
	for _, s := range r.Sections {
		for _, p := range s.Plots {
			errs = append(errs, p.WriteSVG(filepath.Join(out, p.ID+".svg")))
		}
	}
	return errors.Join(errs...)
}

// pages rewrites what stands between the markers. A page without markers is
// left alone.
func pages(r result.Run, root string) error {
	return errors.Join(
		result.Replace(filepath.Join(root, "README.md"), r.Brief("bench/results/")),
		result.Replace(filepath.Join(root, "docs", "performance.md"), r.Full("../bench/results/")),
	)
}
