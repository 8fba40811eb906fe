package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// random makes mutants of the package in dir, compiles all of them into one
// test binary, where a variable of the environment chooses one, and runs the
// package's tests once for each.
func random(o options, dir string) error {
	dir = filepath.Clean(dir)
	sites, err := o.sites(dir)
	if err != nil {
		return err
	}
	found := len(sites)
	chosen := choose(sites, o.n, rand.New(rand.NewPCG(o.seed, 0)))
	bin, chosen, err := o.instrument(dir, chosen)
	if err != nil {
		return err
	}
	args := []string{"-test.failfast"}
	if o.skip != "" {
		args = append(args, "-test.skip", o.skip)
	}
	if passed, out := o.test(bin, dir, nil, args...); !passed {
		return fmt.Errorf("%s: %w:\n%s", dir, errBaseline, out)
	}
	survived := make([]bool, len(chosen))
	var done atomic.Int64
	o.each(len(chosen), func(i int) {
		survived[i], _ = o.test(bin, dir, []string{variable + "=" + strconv.Itoa(chosen[i].id)}, args...)
		if n := done.Add(1); n%20 == 0 {
			fmt.Fprintf(os.Stderr, "%s: %d of %d\n", dir, n, len(chosen))
		}
	})
	killed := 0
	for i, s := range chosen {
		if !survived[i] {
			killed++
			continue
		}
		fmt.Printf("survived  %s/%s:%d: %s\n", dir, s.file, s.line, s.what)
	}
	fmt.Printf("%s: %d places, %d mutants, %d killed (%.0f %%)\n",
		dir, found, len(chosen), killed, 100*float64(killed)/float64(max(1, len(chosen))))
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

const chooser = `package %s

import (
	"os"
	"strconv"
)

var mutantChosen = func() int { n, _ := strconv.Atoi(os.Getenv("` + variable + `")); return n }()

func mutantPick[T any](n int, changed, was T) T {
	if n == mutantChosen {
		return changed
	}
	return was
}
`

var compilerSaid = regexp.MustCompile(`(?m)^(?:\./)?(\S+?\.go):(\d+):\d+: `)

// instrument compiles the chosen mutants in. Those that do not compile, such
// as a difference of strings, are left out.
func (o options) instrument(dir string, chosen []site) (string, []site, error) {
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
		bin, said, err := o.build(name, dir, overlay)
		if err == nil {
			return bin, chosen, nil
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
