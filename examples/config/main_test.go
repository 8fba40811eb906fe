package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const fromFile = `default: 10/s, 20 in flight
*.example.com: 2/s bucket 40
GET api.github.com/search/: 30/m
api.github.com: 5000/h, 20 in flight
maps.example.org: 1000/d align America/Los_Angeles
`

func TestBudgetsFromEverywhere(t *testing.T) {
	null := write(t, "null.json", `{"budgets": null}`)
	for _, test := range []struct {
		name string
		args []string
		env  map[string]string
		want string
	}{
		{"nothing", nil, nil, "default: unlimited\n"},
		{"yaml", []string{"-file", "budgets.yaml"}, nil, fromFile},
		{"json", []string{"-file", "budgets.json"}, nil, fromFile},
		{"environment", nil, map[string]string{"WEIR_DEFAULT": "1/s", "WEIR_BUDGETS": "a.example=2/s; *.b.example = 3/m, 4 in flight;"},
			"default: 1/s\n*.b.example: 3/m, 4 in flight\na.example: 2/s\n"},
		{"flags", []string{"-default", "1/s", "-budget", "a.example=2/s", "-budget", "b.example=5/d"}, nil,
			"default: 1/s\na.example: 2/s\nb.example: 5/d\n"},
		{"a path with =", []string{"-budget", "GET a.example/x=1/=5/s"}, map[string]string{"WEIR_BUDGETS": "a.example/y=2 = 6/s"},
			"default: unlimited\nGET a.example/x=1/: 5/s\na.example/y=2: 6/s\n"},
		{"flag before environment before file", []string{"-file", "budgets.json", "-budget", "*.example.com=9/s"},
			map[string]string{"WEIR_DEFAULT": "8/s", "WEIR_BUDGETS": "*.example.com=7/s"},
			strings.NewReplacer("10/s, 20 in flight", "8/s", "2/s bucket 40", "9/s").Replace(fromFile)},
		{"file without budgets", []string{"-file", null, "-budget", "a.example=2/s"}, map[string]string{"WEIR_BUDGETS": "b.example=1/s"},
			"default: unlimited\na.example: 2/s\nb.example: 1/s\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b strings.Builder
			if err := run(test.args, func(name string) string { return test.env[name] }, &b); err != nil {
				t.Fatal(err)
			}
			if got := b.String(); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	var b strings.Builder
	if err := run([]string{"-h"}, func(string) string { return "" }, &b); err != nil || !strings.Contains(b.String(), "PATTERN=BUDGET") {
		t.Errorf("%v, %q", err, b.String())
	}
}

func TestBadSettings(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		env  string
		want []string
	}{
		{"no file", []string{"-file", "none.json"}, "", []string{"none.json", "no such file"}},
		{"json budget", []string{"-file", write(t, "a.json", `{"default": "10 per second"}`)}, "", []string{"a.json", "10 per second"}},
		{"yaml budget", []string{"-file", write(t, "a.yaml", "default: 10/fortnight\n")}, "", []string{"a.yaml", "fortnight"}},
		{"json name", []string{"-file", write(t, "b.json", `{"budget": {}}`)}, "", []string{"b.json", `"budget"`}},
		{"yaml name", []string{"-file", write(t, "b.yaml", "budget:\n")}, "", []string{"b.yaml", "budget"}},
		{"environment", nil, "a.example", []string{"WEIR_BUDGETS", "want PATTERN=BUDGET"}},
		{"environment budget", nil, "a.example=fast", []string{"WEIR_BUDGETS", "fast"}},
		{"flag", []string{"-budget", "a.example=0/s"}, "", []string{"-budget", "0"}},
		{"pattern", []string{"-budget", "http://a.example=1/s"}, "", []string{"http://a.example"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b strings.Builder
			err := run(test.args, func(name string) string {
				if name == "WEIR_BUDGETS" {
					return test.env
				}
				return ""
			}, &b)
			if err == nil || b.String() != "" {
				t.Fatalf("error %v, output %q, want an error and nothing", err, b.String())
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %q", want, err)
				}
			}
		})
	}
}

// write makes a file of text and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}
