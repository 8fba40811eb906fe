package main

import (
	"testing"

	"github.com/weirhttp/weir/bench/scenario"
)

func TestChoose(t *testing.T) {
	all, err := choose("")
	if err != nil || len(all) != len(scenario.All()) {
		t.Errorf("all: got %d, %v", len(all), err)
	}
	two, err := choose("outage,quota")
	if err != nil || len(two) != 2 || two[0].Name != "outage" || two[1].Name != "quota" {
		t.Errorf("two: got %v, %v", two, err)
	}
	if _, err := choose("quotas"); err == nil {
		t.Error("an unknown name was taken")
	}
}

// TestWatchOthers: what this program does is seen to be its own.
func TestWatchOthers(t *testing.T) {
	others := watchOthers()
	if before := ownTime(); before > 0 { // Linux tells
		for ownTime() == before { // until it has worked for one tick more
		}
	}
	if got := others(); got != nil && *got > 100 {
		t.Errorf("others took %v %%", *got)
	}
}
