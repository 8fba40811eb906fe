package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// random makes mutants of the package in dir, compiles all of them into its
// test binary and those of the folders in it, where a variable of the
// environment chooses one, and runs for each those of the tests that reach it.
func random(o options, dir string) error {
	dir = filepath.Clean(dir)
	sites, err := o.sites(dir)
	if err != nil {
		return err
	}
	same, err := readSame(o.same, dir)
	if err != nil {
		return err
	}
	if o.only == "" {
		for _, entry := range same.stale(sites) {
			fmt.Printf("stale     %s %s\n", dir, entry)
		}
	}
	chosen := choose(sites, o.n, rand.New(rand.NewPCG(o.seed, 0)))
	overlay, chosen, err := o.instrument(dir, chosen)
	if err != nil {
		return err
	}
	suites, err := o.suites(dir, overlay)
	if err != nil {
		return err
	}
	tests, err := o.reach(suites, chosen)
	if err != nil {
		return err
	}
	count := make(map[string]int)
	var mu sync.Mutex
	o.each(len(chosen), func(i int) {
		verdict, s := "same", chosen[i]
		if !same.has(s) {
			verdict = o.kill(s.id, tests)
		}
		mu.Lock()
		defer mu.Unlock()
		count[verdict]++
		if verdict != "killed" && verdict != "same" {
			fmt.Printf("%-9s %s/%s:%d %s | %s\n", verdict, dir, s.file, s.line, s.in, s.what)
		}
	})
	others := len(chosen) - count["same"]
	fmt.Printf("%s: %d places, %d mutants, %d listed as the same program, %d of the other %d killed (%.1f %%)\n",
		dir, len(sites), len(chosen), count["same"], count["killed"], others, 100*float64(count["killed"])/float64(max(1, others)))
	return nil
}

// sites finds all places of the package that can be changed.
func (o options) sites(dir string) ([]site, error) {
	files, err := filepath.Glob(filepath.Join(o.tree, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var only *regexp.Regexp
	if o.only != "" {
		if only, err = regexp.Compile(o.only); err != nil {
			return nil, err
		}
	}
	var all []site
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		s, err := sitesOf(filepath.Base(file), text)
		if err != nil {
			return nil, err
		}
		all = append(all, s...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: nothing to change there", dir)
	}
	if only != nil {
		all = slices.DeleteFunc(all, func(s site) bool { return !only.MatchString(fmt.Sprintf("%s:%d", s.file, s.line)) })
	}
	return all, nil
}

// choose takes up to n sites that do not stand in one another's way.
func choose(all []site, n int, random *rand.Rand) []site {
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var chosen []site
	for _, s := range all {
		if len(chosen) == n {
			break
		}
		if !slices.ContainsFunc(chosen, s.clashes) {
			s.id = len(chosen) + 1
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// variable chooses a mutant in an instrumented binary.
const variable = "WEIR_MUTANT"

// reached names a file that a run marks the mutants in that it comes past.
const reached = "WEIR_MUTANT_REACHED"

const chooser = `package %s

import (
	"os"
	"strconv"
	"syscall"
)

var mutantChosen = func() int { n, _ := strconv.Atoi(os.Getenv("` + variable + `")); return n }()

var mutantReached = func() []byte {
	f, err := os.OpenFile(os.Getenv("` + reached + `"), os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	b, _ := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	return b
}()

func mutantIs(n int) bool {
	if mutantReached != nil {
		mutantReached[n] = 1
	}
	return n == mutantChosen
}

func mutantPick[T any](n int, changed, was T) T {
	if mutantIs(n) {
		return changed
	}
	return was
}
`

var compilerSaid = regexp.MustCompile(`(?m)^(?:\./)?(\S+?\.go):(\d+):\d+: `)

// instrument writes an overlay with the chosen mutants in it. Those that do not
// compile, such as a difference of strings, are left out.
func (o options) instrument(dir string, chosen []site) (overlay string, _ []site, _ error) {
	name := "random-" + strings.ReplaceAll(dir, "/", "-")
	pkg := filepath.Base(dir)
	for range 10 {
		files := map[string][]byte{filepath.Join(dir, "mutant_chosen.go"): fmt.Appendf(nil, chooser, pkg)}
		for _, s := range chosen {
			path := filepath.Join(dir, s.file)
			if files[path] == nil {
				text, err := os.ReadFile(filepath.Join(o.tree, path))
				if err != nil {
					return "", nil, err
				}
				files[path] = edit(text, s.file, chosen)
			}
		}
		overlay, err := o.overlay(name, files)
		if err != nil {
			return "", nil, err
		}
		_, said, err := o.build(name, dir, overlay)
		if err == nil {
			return overlay, chosen, nil
		}
		bad := make(map[string]bool)
		for _, m := range compilerSaid.FindAllStringSubmatch(said, -1) {
			bad[strings.TrimPrefix(filepath.Base(m[1]), name+"-")+":"+m[2]] = true
		}
		before := len(chosen)
		chosen = slices.DeleteFunc(chosen, func(s site) bool { return bad[fmt.Sprintf("%s:%d", s.file, s.line)] })
		if len(chosen) == before {
			return "", nil, fmt.Errorf("%s: %w\n%s", dir, err, said)
		}
	}
	return "", nil, fmt.Errorf("%s: the mutants do not compile", dir)
}
