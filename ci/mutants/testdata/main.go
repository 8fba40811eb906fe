// Command mutants changes weir in small ways and looks whether a test fails.
// It works on a clone of what is committed and never in the working tree.
// With "contract", or nothing, it applies the mutants of contract.txt, each of which the
// rule named beside it must notice; with packages it makes mutants at random.
//
// It lives in a folder that builds leave out: it is no part of the library.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

type options struct {
	repo, tree, work string // the checkout, its clone, and room beside it
	n, jobs          int
	seed             uint64
	timeout          time.Duration
	only, list, skip string
	others           bool
}

func main() {
	var o options
	flag.IntVar(&o.n, "n", 60, "random mutants for each package")
	flag.IntVar(&o.jobs, "j", 2, "how many run at a time")
	flag.Uint64Var(&o.seed, "seed", 1, "of the choice of random mutants")
	flag.DurationVar(&o.timeout, "timeout", time.Minute, "of one run of tests")
	flag.StringVar(&o.only, "only", "", "contract: mutants whose name matches; packages: sites whose file:line matches")
	flag.StringVar(&o.list, "list", "ci/mutants/contract.txt", "the contract mutants")
	flag.StringVar(&o.skip, "skip", "", "packages: tests to leave out, as go test -skip")
	flag.BoolVar(&o.others, "others", false, "contract: also name the other rules that fail")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: ci/mutants/run [flags] [contract | package-folder...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	args := flag.Args()
	if len(args) == 0 {
		args = []string{"contract"}
	}
	clean, err := run(o, args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
	if !clean {
		os.Exit(1)
	}
}

// run reports whether every contract mutant was killed; survivors among
// random ones are no failure.
func run(o options, args []string) (clean bool, err error) {
	if o.repo, err = os.Getwd(); err != nil {
		return false, err
	}
	if o.list, err = filepath.Abs(o.list); err != nil {
		return false, err
	}
	if o.work, err = os.MkdirTemp("", "weir-mutants-"); err != nil {
		return false, err
	}
	defer os.RemoveAll(o.work)
	o.tree = filepath.Join(o.work, "tree")
	if out, err := exec.Command("git", "clone", "-q", "--shared", o.repo, o.tree).CombinedOutput(); err != nil {
		return false, fmt.Errorf("clone: %w\n%s", err, out)
	}
	clean = true
	for _, arg := range args {
		if arg == "contract" {
			ok, err := contract(o)
			if err != nil {
				return false, err
			}
			clean = clean && ok
		} else if err := random(o, arg); err != nil {
			return false, err
		}
	}
	return clean, nil
}

// overlay writes the files that stand in for those of the tree, and returns
// the list that go build takes.
func (o options) overlay(name string, files map[string][]byte) (string, error) {
	replace := make(map[string]string)
	for file, text := range files {
		to := filepath.Join(o.work, name+"-"+filepath.Base(file))
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(o.tree, file)] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(o.work, name+".json")
	return list, os.WriteFile(list, b, 0o644)
}

// build compiles the tests of a folder and returns the binary, or what the
// compiler said.
func (o options) build(name, dir, overlay string) (bin, said string, err error) {
	bin = filepath.Join(o.work, name+".test")
	c := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", bin, ".")
	c.Dir = filepath.Join(o.tree, dir)
	c.Env = append(os.Environ(), "GOWORK=off")
	out, err := c.CombinedOutput()
	return bin, string(out), err
}

// test runs a test binary and reports whether it passed. A run that hangs has
// failed.
func (o options) test(bin, dir string, env []string, args ...string) (passed bool, out string) {
	ctx, cancel := context.WithTimeout(context.Background(), o.timeout+10*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, bin, append([]string{"-test.short", "-test.timeout", o.timeout.String()}, args...)...)
	c.Dir = filepath.Join(o.tree, dir)
	c.Env = append(os.Environ(), env...)
	b, err := c.CombinedOutput()
	return err == nil, string(b)
}

var errBaseline = errors.New("the tests fail without any mutant")

// each calls f for 0 to n-1, a few at a time.
func (o options) each(n int, f func(i int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range max(1, o.jobs) {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}
