package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestMain is also the sender that the program starts and kills.
func TestMain(m *testing.M) {
	if os.Getenv(senderEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

// Killed three times, the sender loses nothing: each endpoint gets each event, in
// order, also those that hang and are down until all others are done.
func TestEveryEventArrives(t *testing.T) {
	var b strings.Builder
	if err := run(t.Context(), &b, 30, 3); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	t.Log("\n" + got)
	if n := len(regexp.MustCompile(`(?m)^(fine|slow|hangs at first|down at first) +30 of 30 +yes `).FindAllString(got, -1)); n != 12 {
		t.Errorf("%d of 12 endpoints got all, in order", n)
	}
	if n := strings.Count(got, "sender killed"); n != 3 {
		t.Errorf("killed %d times", n)
	}
}

// Events are counted as they come.
func TestOrdered(t *testing.T) {
	for want, events := range map[string][]int{"yes": {0, 1, 2}, "NO": {0, 2, 1}} {
		if got := ordered(events); got != want {
			t.Errorf("%v: %s, want %s", events, got, want)
		}
	}
	if got := ordered([]int{0, 2}); got != "NO" {
		t.Errorf("one is missing: %s", got)
	}
}
