package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mutant is a line of contract.txt.
type mutant struct {
	name, file, old, new, test string
}

// verdict is what became of one.
type verdict struct {
	word   string // killed, survived, stale, broken
	detail string
}

// ruleFolder is where the tests that hold rules are, and everyRule selects them.
const (
	ruleFolder = "internal/chaintest"
	everyRule  = "^Test(Transport|Patience|NoWindow)"
)

func contract(o options) (bool, error) {
	mutants, err := readMutants(o.list)
	if err != nil {
		return false, err
	}
	if o.only != "" {
		re, err := regexp.Compile(o.only)
		if err != nil {
			return false, err
		}
		mutants = slices.DeleteFunc(mutants, func(m mutant) bool { return !re.MatchString(m.name) })
	}
	verdicts := make([]verdict, len(mutants))
	o.each(len(mutants), func(i int) {
		verdicts[i] = o.try(i, mutants[i])
		fmt.Printf("%-9s %s %s\n", verdicts[i].word, mutants[i].name, verdicts[i].detail)
	})
	count := make(map[string]int)
	for _, v := range verdicts {
		count[v.word]++
	}
	fmt.Printf("contract: %d mutants, %d killed, %d survived, %d stale, %d do not compile\n",
		len(mutants), count["killed"], count["survived"], count["stale"], count["broken"])
	return count["killed"] == len(mutants), nil
}

// readMutants parses lines of five fields between " | ", in which \n and \t
// stand for a line's end and a tab. # begins a comment.
func readMutants(list string) ([]mutant, error) {
	b, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	plain := strings.NewReplacer(`\n`, "\n", `\t`, "\t")
	var all []mutant
	for i, line := range strings.Split(string(b), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, " | ")
		if len(f) != 5 {
			return nil, fmt.Errorf("%s:%d: %d fields, want 5", list, i+1, len(f))
		}
		all = append(all, mutant{f[0], f[1], plain.Replace(f[2]), plain.Replace(f[3]), f[4]})
	}
	return all, nil
}

// try applies m and runs its rule's test.
func (o options) try(i int, m mutant) verdict {
	text, err := os.ReadFile(filepath.Join(o.tree, m.file))
	if err != nil {
		return verdict{"stale", err.Error()}
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return verdict{"stale", fmt.Sprintf("the old text occurs %d times", n)}
	}
	name := fmt.Sprintf("contract%d", i)
	overlay, err := o.overlay(name, map[string][]byte{m.file: []byte(strings.Replace(string(text), m.old, m.new, 1))})
	if err != nil {
		return verdict{"broken", err.Error()}
	}
	bin, said, err := o.build(name, ruleFolder, overlay)
	if err != nil {
		return verdict{"broken", said}
	}
	defer os.Remove(bin)
	r := o.test(bin, ruleFolder, 0, nil, "-test.run", m.test, "-test.v")
	switch {
	case !strings.Contains(r.out, "=== RUN"):
		return verdict{"stale", "no test matches " + m.test}
	case r.passed:
		return verdict{"survived", ""}
	case !o.others:
		return verdict{"killed", ""}
	}
	return verdict{"killed", failed(o.test(bin, ruleFolder, 0, nil, "-test.run", everyRule).out)}
}

var ruleFailed = regexp.MustCompile(`(?m)^ {4,8}--- FAIL: (Test\w+/(?:HTTP\d/)?[^/ ]+) `)

// failed names the rules that a run broke; a panic hides those after it.
func failed(out string) string {
	var rules []string
	for _, f := range ruleFailed.FindAllStringSubmatch(out, -1) {
		if !slices.Contains(rules, f[1]) && !strings.HasSuffix(f[1], "/HTTP1") && !strings.HasSuffix(f[1], "/HTTP2") {
			rules = append(rules, f[1])
		}
	}
	if strings.Contains(out, "panic: ") {
		rules = append(rules, "(ended by a panic)")
	}
	return strings.Join(rules, ", ")
}
