package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// suite is the tests of one folder, compiled with the mutants.
type suite struct{ bin, dir string }

// suites builds the tests of dir and of the folders in it.
func (o options) suites(dir, overlay string) ([]suite, error) {
	var all []suite
	err := filepath.WalkDir(filepath.Join(o.tree, dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if files, _ := filepath.Glob(filepath.Join(path, "*_test.go")); len(files) == 0 {
			return nil
		}
		folder, _ := filepath.Rel(o.tree, path)
		bin, said, err := o.build("random-"+strings.ReplaceAll(folder, "/", "-"), folder, overlay)
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", folder, err, said)
		}
		all = append(all, suite{bin, folder})
		return nil
	})
	return all, err
}

// oneTest is a test, run alone without a mutant.
type oneTest struct {
	suite
	name    string
	cpu     time.Duration
	reaches []byte // 1 at the ids of mutants it comes past
}

var testName = regexp.MustCompile(`(?m)^(?:Test|Example|Fuzz)\S*$`)

// reach runs each test alone and returns them, the quickest first.
func (o options) reach(suites []suite, mutants []site) ([]oneTest, error) {
	most := 0
	for _, s := range mutants {
		most = max(most, s.id)
	}
	var skip *regexp.Regexp // go test -list lists also what -skip names
	if o.skip != "" {
		var err error
		if skip, err = regexp.Compile(o.skip); err != nil {
			return nil, err
		}
	}
	var tests []oneTest
	for _, s := range suites {
		list := o.test(s.bin, s.dir, 0, nil, "-test.list", ".")
		if !list.passed {
			return nil, fmt.Errorf("%s: %w:\n%s", s.dir, errBaseline, list.out)
		}
		for _, name := range testName.FindAllString(list.out, -1) {
			if skip != nil && skip.MatchString(name) {
				continue
			}
			tests = append(tests, oneTest{suite: s, name: name})
		}
	}
	failures := make([]error, len(tests))
	o.each(len(tests), func(i int) { failures[i] = tests[i].alone(o, most) })
	slices.SortFunc(tests, func(a, b oneTest) int { return int(a.cpu - b.cpu) })
	return tests, errors.Join(failures...)
}

// alone runs t and sees what it reaches.
func (t *oneTest) alone(o options, most int) error {
	marks := filepath.Join(o.work, filepath.Base(t.bin)+"-"+t.name+".reached")
	defer os.Remove(marks)
	if err := os.WriteFile(marks, make([]byte, most+1), 0o644); err != nil {
		return err
	}
	r := o.test(t.bin, t.dir, 0, []string{reached + "=" + marks}, "-test.run", "^"+t.name+"$")
	if !r.passed {
		return fmt.Errorf("%s: %s: %w:\n%s", t.dir, t.name, errBaseline, r.out)
	}
	b, err := os.ReadFile(marks)
	t.cpu, t.reaches = r.cpu, b
	return err
}

// quick is how much of the processor the tests take that are run first, each
// mutant's together; the others follow if those pass.
const quick = 500 * time.Millisecond

// kill runs the tests that reach a mutant, the quick ones first, until one
// fails.
func (o options) kill(id int, tests []oneTest) string {
	var reach []oneTest
	for _, t := range tests {
		if t.reaches[id] != 0 {
			reach = append(reach, t)
		}
	}
	if len(reach) == 0 {
		return "unreached"
	}
	var cpu time.Duration
	n := 0
	for n < len(reach) && (n == 0 || cpu < quick) {
		cpu += reach[n].cpu
		n++
	}
	if o.fails(id, reach[:n]) || o.fails(id, reach[n:]) {
		return "killed"
	}
	return "survived"
}

// fails runs tests with a mutant.
func (o options) fails(id int, tests []oneTest) bool {
	names, cpu := make(map[suite][]string), make(map[suite]time.Duration)
	for _, t := range tests {
		names[t.suite] = append(names[t.suite], t.name)
		cpu[t.suite] += t.cpu
	}
	for s := range names {
		if r := o.test(s.bin, s.dir, 10*time.Second+10*cpu[s], []string{variable + "=" + strconv.Itoa(id)},
			"-test.failfast", "-test.run", "^("+strings.Join(names[s], "|")+")$"); !r.passed {
			return true
		}
	}
	return false
}
