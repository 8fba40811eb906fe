// Command mutants changes weir in small ways and looks whether a test fails.
// It works on a clone of what is committed and never in the working tree.
// With "contract", or nothing, it applies the mutants of contract.txt, each of which the
// rule named beside it must notice; with packages it makes mutants at random.
//
// It lives in a folder that builds leave out: it is no part of the library.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

type options struct {
	repo, tree, work string // the checkout, its clone, and room beside it
	n, jobs          int
	seed             uint64
	timeout          time.Duration
	only, list, skip string
	same             string
	others           bool
}

func main() {
	var o options
	flag.IntVar(&o.n, "n", 60, "random mutants for each package")
	flag.IntVar(&o.jobs, "j", 2, "how many run at a time")
	flag.Uint64Var(&o.seed, "seed", 1, "of the choice of random mutants")
	flag.DurationVar(&o.timeout, "timeout", 3*time.Minute, "of one run of tests")
	flag.StringVar(&o.only, "only", "", "contract: mutants whose name matches; packages: sites whose file:line matches")
	flag.StringVar(&o.list, "list", "ci/mutants/contract.txt", "the contract mutants")
	flag.StringVar(&o.same, "same", "ci/mutants/same.txt", "packages: changes known to leave the program the same")
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
	if o.same, err = filepath.Abs(o.same); err != nil {
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

// result is how a run of tests ended.
type result struct {
	passed bool
	out    string
	cpu    time.Duration // of its process
}

// memory is what a run may take, in KiB: a mutant that never ends an append
// must not take the machine with it.
const memory = 6 << 20

// test runs a test binary. A run that hangs has failed: when its time is up,
// when it has had more than cpu of the processor (zero: no such limit), or when
// it has done nothing for a while. The last two do not depend on how busy the
// machine is.
func (o options) test(bin, dir string, cpu time.Duration, env []string, args ...string) result {
	ctx, cancel := context.WithTimeout(context.Background(), o.timeout+10*time.Second)
	defer cancel()
	limits := fmt.Sprintf("ulimit -v %d; ", memory)
	if cpu > 0 {
		limits += fmt.Sprintf("ulimit -t %d; ", int(cpu.Seconds())+1)
	}
	args = append([]string{"-c", limits + `exec "$0" "$@"`, bin, "-test.short", "-test.timeout", o.timeout.String()}, args...)
	c := exec.CommandContext(ctx, "sh", args...)
	c.Dir = filepath.Join(o.tree, dir)
	c.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		return result{out: err.Error()}
	}
	go stalls(ctx, c.Process.Pid, cancel)
	err := c.Wait()
	return result{err == nil, out.String(), c.ProcessState.UserTime() + c.ProcessState.SystemTime()}
}

// stalls calls stop when a process has done nothing for ten seconds. Where
// there is no /proc it returns.
func stalls(ctx context.Context, pid int, stop func()) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	was, still := 0, 0
	for still < 10 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return
		}
		var user, system int
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		fmt.Sscan(f[11], &user)
		fmt.Sscan(f[12], &system)
		if still++; user+system > was+1 { // ticks; the runtime itself wakes up now and then
			was, still = user+system, 0
		}
	}
	stop()
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
