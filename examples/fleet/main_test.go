package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be a worker.
func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestFleet: there are requests in each phase. How many depends on the machine,
// and so does how long a phase must be for it.
func TestFleet(t *testing.T) {
	for phase := 1500 * time.Millisecond; ; phase *= 4 {
		var out strings.Builder
		err := run(t.Context(), &out, 3, phase)
		if errors.Is(err, errNoRedis) && os.Getenv("CI") != "true" {
			t.Skip("SKIPPED:", err)
		}
		t.Log("\n" + out.String())
		if err == nil {
			err = phases(out.String())
		}
		if err == nil {
			return
		}
		if t.Log(err); phase > 10*time.Second {
			t.FailNow()
		}
	}
}

// phases holds that out has three, with requests in each.
func phases(out string) error {
	rows := regexp.MustCompile(`(?m)^Redis is (.+?) +(\d+) +(\d+) +(\d+)$`).FindAllStringSubmatch(out, -1)
	if len(rows) != 3 {
		return fmt.Errorf("%d phases, want three", len(rows))
	}
	for _, row := range rows {
		if n, err := strconv.Atoi(row[2]); err != nil || n == 0 {
			return fmt.Errorf("Redis is %s: %s requests, want some", row[1], row[2])
		}
	}
	return nil
}

func TestAPI(t *testing.T) {
	a := newAPI(2, time.Second)
	defer a.close()
	begin := time.Unix(0, 0)
	for i, tc := range []struct {
		at   time.Duration
		want bool
	}{{0, true}, {400 * time.Millisecond, true}, {900 * time.Millisecond, false}, {time.Second, true}, {1300 * time.Millisecond, false}} {
		if got := a.take(begin.Add(tc.at)); got != tc.want {
			t.Errorf("request %d: granted %t, want %t", i, got, tc.want)
		}
	}
	if p, want := a.next(), (phase{requests: 5, refused: 2, most: 4}); p != want {
		t.Errorf("got %+v, want %+v", p, want)
	}
}
