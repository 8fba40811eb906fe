// Program report plays cases of package population and prints their tables, or
// replays a single case.
//
//	go run ./sim/population/report -seed 1 -n 200
//	go run ./sim/population/report -seed 1 -case 17
//	go run ./sim/population/report -seed 71 -seeds 5 -only weir -kind concurrency -slowest 50
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/weirhttp/weir/bench/sim/population"
)

// job is what the user asked for.
type job struct {
	set   population.Set
	seed  uint64
	first int
	n     int
	only  string
	kind  string
	dir   string
}

func main() {
	log.SetFlags(0)
	set := flag.String("set", "train", "train or test")
	seed := flag.Uint64("seed", 1, "of the cases")
	n := flag.Int("n", 200, "how many cases")
	one := flag.Int("case", -1, "replay this case alone, and show it")
	only := flag.String("only", "", "only this caller, such as weir")
	kind := flag.String("kind", "", "only servers of this kind or dialect, or that work for so long, as the tables name them; \"works for\" is all of these")
	seeds := flag.Int("seeds", 1, "how many seeds, from seed on")
	slowest := flag.Int("slowest", 0, "list so many cases by time as well, worst first")
	flag.Parse()
	dir, err := folder()
	if err != nil {
		log.Fatal(err)
	}
	j := job{population.Set(*set), *seed, 0, *n, *only, *kind, dir}
	if *one >= 0 {
		j.first, j.n = *one, 1
		lines, err := j.play()
		if err != nil {
			log.Fatal(err)
		}
		show(j, lines)
		return
	}
	begin := time.Now()
	all, err := j.seeds(*seeds)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print("Written by ")
	for i := range *seeds {
		fmt.Printf("`make population SET=%s SEED=%d N=%d`, ", j.set, j.seed+uint64(i), j.n)
	}
	fmt.Printf("in %v with %s, at commit %s.\n\n", time.Since(begin).Round(time.Second), runtime.Version(), commit())
	fmt.Print(population.Tables(all))
	fmt.Print(population.Slowest(all, *slowest))
}

// seeds plays the cases of n seeds.
func (j job) seeds(n int) (all []population.Run, err error) {
	for range n {
		if err := j.unused(); err != nil {
			return nil, err
		}
		lines, err := j.play()
		if err != nil {
			return nil, err
		}
		all = append(all, runs(j, lines)...)
		j.seed++
	}
	return all, nil
}

// folder is that of package population.
func folder() (string, error) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/weirhttp/weir/bench/sim/population").Output()
	return strings.TrimSpace(string(out)), err
}

// commit is that of the working tree, if git knows it.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// page has the published tables.
const page = "POPULATION.md"

// unused refuses a seed of test that a published table has used: rules that
// were made since may know it.
func (j job) unused() error {
	if j.set != population.Test {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(j.dir, page))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if strings.Contains(string(text), fmt.Sprintf("SET=test SEED=%d ", j.seed)) {
		return fmt.Errorf("seed %d of test stands in %s: take another one", j.seed, page)
	}
	return err
}

// play has the package's test play the cases: virtual time needs a test.
func (j job) play() ([]population.Line, error) {
	f, err := os.CreateTemp("", "population-*.json")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	cmd := exec.Command("go", "test", "-count=1", "-timeout=3h", "-run=^TestRun$", ".")
	cmd.Dir = j.dir
	for name, value := range map[string]any{"OUT": f.Name(), "SET": j.set, "SEED": j.seed, "FIRST": j.first, "N": j.n, "ONLY": j.only, "KIND": j.kind} {
		cmd.Env = append(cmd.Env, fmt.Sprintf("WEIR_POPULATION_%s=%v", name, value))
	}
	cmd.Env = append(os.Environ(), cmd.Env...)
	cmd.Stderr = os.Stderr
	said, failed := cmd.Output()
	lines, err := read(f)
	if err != nil {
		return nil, err
	}
	if failed != nil {
		if len(lines) == 0 {
			return nil, fmt.Errorf("%w\n%s", failed, said)
		}
		last := lines[len(lines)-1]
		log.Printf("%s ended the run: %v; what was played before it follows\n%s", last.Began,
			population.Draw(j.set, j.seed, last.Index).Replay(), said[:min(len(said), 4000)])
	}
	return lines, nil
}

func read(r io.Reader) (lines []population.Line, err error) {
	for d := json.NewDecoder(r); ; {
		var l population.Line
		switch err := d.Decode(&l); {
		case err == io.EOF:
			return lines, nil
		case err != nil:
			return nil, err
		}
		lines = append(lines, l)
	}
}

func runs(j job, lines []population.Line) (all []population.Run) {
	cases := map[int]*population.Case{}
	for _, l := range lines {
		if l.Result == nil {
			continue
		}
		if cases[l.Index] == nil {
			cases[l.Index] = population.Draw(j.set, j.seed, l.Index)
		}
		all = append(all, population.Run{Case: cases[l.Index], Result: *l.Result})
	}
	return all
}

// show prints what each caller made of one case, and what the server saw.
func show(j job, lines []population.Line) {
	c := population.Draw(j.set, j.seed, j.first)
	fmt.Printf("%v\n\nAll-knowing: %v, mean of a call %v\n", c, c.Ideal().Span, c.Ideal().Mean)
	for _, l := range lines {
		if l.Result == nil {
			continue
		}
		r := l.Result
		fmt.Printf("\n%s: lost %d of %d, refused %d, time %.3f, stall %.3f s", r.Caller, r.Lost, r.Calls, r.Refused, r.Time, r.Stall)
		if r.Found >= 0 {
			fmt.Printf(", the raised quota found after %.3f s", r.Found)
		}
		if r.Panics != "" {
			fmt.Printf(", panic: %s", r.Panics)
		}
		fmt.Println()
		for why, n := range r.Why {
			fmt.Printf("  %d x %s\n", n, why)
		}
		timeline(l.Arrivals)
	}
}

// timeline prints accepted and refused requests in some forty bins.
func timeline(arrivals []population.Arrival) {
	if len(arrivals) == 0 {
		return
	}
	bin := max(100*time.Millisecond, (arrivals[len(arrivals)-1].At / 40).Round(100*time.Millisecond))
	for i := 0; i < len(arrivals); {
		at, good, bad := arrivals[i].At/bin*bin, 0, 0
		for ; i < len(arrivals) && arrivals[i].At < at+bin; i++ {
			if arrivals[i].OK {
				good++
			} else {
				bad++
			}
		}
		fmt.Printf("  %10.1f s  accepted %4d  refused %4d\n", at.Seconds(), good, bad)
	}
}
