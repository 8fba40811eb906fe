package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// same is the changes known to leave the program the same, of one package.
type same map[string]bool

// readSame parses lines of three fields between " | ": package folder and function,
// change as it is printed of a survivor, and why nothing can tell. # begins a comment.
func readSame(list, dir string) (same, error) {
	b, err := os.ReadFile(list)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := make(same)
	for i, line := range strings.Split(string(b), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, " | ")
		if len(f) != 3 || f[2] == "" {
			return nil, fmt.Errorf("%s:%d: %d fields, want function, change and reason", list, i+1, len(f))
		}
		if in, ok := strings.CutPrefix(f[0], dir+" "); ok {
			s[in+" | "+f[1]] = true
		}
	}
	return s, nil
}

func (s same) has(c site) bool { return s[c.in+" | "+c.what] }

// stale lists the entries that are no change of any site.
func (s same) stale(all []site) (list []string) {
	left := maps.Clone(s)
	for _, c := range all {
		delete(left, c.in+" | "+c.what)
	}
	return slices.Sorted(maps.Keys(left))
}
