package main

import (
	"errors"
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

func TestFleet(t *testing.T) {
	var out strings.Builder
	err := run(t.Context(), &out, 3, 1500*time.Millisecond)
	if errors.Is(err, errNoRedis) && os.Getenv("CI") != "true" {
		t.Skip("SKIPPED:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^Redis is (.+?) +(\d+) +(\d+) +(\d+)$`).FindAllStringSubmatch(out.String(), -1)
	if len(rows) != 3 {
		t.Fatalf("want a row for each of three phases:\n%s", out.String())
	}
	for _, row := range rows {
		// How many they are depends on the machine; that there are some does not.
		if n, err := strconv.Atoi(row[2]); err != nil || n == 0 {
			t.Errorf("Redis is %s: %s requests, want some", row[1], row[2])
		}
	}
	t.Log("\n" + out.String())
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
