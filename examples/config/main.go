// Config reads budgets from a file (JSON or YAML), from the environment and from
// flags, and makes a client with them. The environment overrides the file, and
// flags override both.
//
//	go run ./examples/config -file examples/config/budgets.yaml -budget 'api.example.com=10/s'
//	WEIR_BUDGETS='api.example.com=10/s; *.example.org=2/s' go run ./examples/config
//
// A budget is written the same way in all three, because throttle.Budget has the
// methods MarshalText and UnmarshalText.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/throttle"
	"go.yaml.in/yaml/v3"
)

// settings are the part of a program's settings that is about budgets.
type settings struct {
	Default throttle.Budget            `json:"default" yaml:"default"` // of hosts that no pattern names
	Budgets map[string]throttle.Budget `json:"budgets" yaml:"budgets"` // by pattern
}

func main() {
	if err := run(os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "config:", err)
		os.Exit(1)
	}
}

func run(args []string, getenv func(string) string, w io.Writer) error {
	var file string
	given := settings{Budgets: map[string]throttle.Budget{}}
	f := flag.NewFlagSet("config", flag.ContinueOnError)
	f.SetOutput(io.Discard) // main shows the error
	f.StringVar(&file, "file", "", "settings, in JSON or YAML")
	f.TextVar(&given.Default, "default", throttle.Budget{}, "budget of each host that has none of its own")
	f.Func("budget", "PATTERN=BUDGET, may be given more than once", given.add)
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		f.SetOutput(w)
		f.PrintDefaults()
		return nil
	case err != nil:
		return err
	}

	s := settings{Budgets: map[string]throttle.Budget{}}
	if file != "" {
		if err := s.load(file); err != nil {
			return err
		}
	}
	if err := s.env(getenv); err != nil {
		return err
	}
	maps.Copy(s.Budgets, given.Budgets)
	f.Visit(func(f *flag.Flag) {
		if f.Name == "default" {
			s.Default = given.Default
		}
	})
	return s.use(w)
}

// add reads PATTERN=BUDGET. A path may hold a "=", a budget does not.
func (s settings) add(text string) error {
	i := strings.LastIndexByte(text, '=')
	if i < 0 {
		return fmt.Errorf("%q: want PATTERN=BUDGET", text)
	}
	b, err := throttle.ParseBudget(strings.TrimSpace(text[i+1:]))
	if err == nil {
		s.Budgets[strings.TrimSpace(text[:i])] = b
	}
	return err
}

// load reads a file; what it does not know is an error, so that a misspelt
// name is not a budget that is missing.
func (s *settings) load(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if filepath.Ext(file) == ".json" {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		err = d.Decode(s)
	} else {
		d := yaml.NewDecoder(bytes.NewReader(data))
		d.KnownFields(true)
		err = d.Decode(s)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if s.Budgets == nil { // the file said null
		s.Budgets = map[string]throttle.Budget{}
	}
	return nil
}

// env reads WEIR_DEFAULT, a budget, and WEIR_BUDGETS, PATTERN=BUDGET separated
// by semicolons.
func (s *settings) env(getenv func(string) string) error {
	if text := getenv("WEIR_DEFAULT"); text != "" {
		if err := s.Default.UnmarshalText([]byte(text)); err != nil {
			return fmt.Errorf("WEIR_DEFAULT: %w", err)
		}
	}
	for text := range strings.SplitSeq(getenv("WEIR_BUDGETS"), ";") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		if err := s.add(text); err != nil {
			return fmt.Errorf("WEIR_BUDGETS: %w", err)
		}
	}
	return nil
}

// use makes a client, which checks the patterns, and shows what it keeps to.
func (s settings) use(w io.Writer) error {
	client, err := weir.NewClient(weir.Config{Throttle: throttle.Config{Default: s.Default, Budgets: s.Budgets}})
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections() // here the program would use it

	fmt.Fprintf(w, "default: %v\n", s.Default)
	for _, pattern := range slices.Sorted(maps.Keys(s.Budgets)) {
		fmt.Fprintf(w, "%s: %v\n", pattern, s.Budgets[pattern])
	}
	return nil
}
