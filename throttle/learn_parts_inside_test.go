package throttle

import (
	"slices"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/kind"
)

// These look inside: which parts share a limit is seldom found out, and only Stats' words show it.

// parted is a kind of request of a new learner, and n parts of it that each have limits of their own.
func parted(n int) (k *endpoint, parts []*endpoint) {
	c := Config{}
	l := newLearner(newLearnTerms(&c, time.Now()), &scope{}, newHostStart(newLearnWords()))
	k = l.endpointOf(kind.Key{Method: "GET", Rest: "v0"}, 1)
	made(&k.paths).parts = new(attribution.Parts)
	for i := range n {
		parts = append(parts, k.newPart(uint64(i+1), 1))
	}
	return k, parts
}

// Parts that share a limit are told as such, once, as the only kind that it binds.
func TestWordsOfPartsThatShareALimit(t *testing.T) {
	k, parts := parted(5)
	c := cause{what: causeRate, found: parts[0].found()}
	if got, want := c.only(), ", for a part of GET /v0 only"; got != want {
		t.Errorf("of one part: %q, want %q", got, want)
	}
	for _, x := range parts {
		x.enterGroup(parts[0].group)
	}
	if got, want := c.only(), ", for some parts of GET /v0 only"; got != want {
		t.Errorf("of several: %q, want %q", got, want)
	}
	if got, want := c.alone(), "GET /v0"; got != want {
		t.Errorf("it is for %q, want %q", got, want)
	}
	k.learner.endpointOf(kind.Key{Method: "GET", Rest: "b"}, 1).enterGroup(parts[0].group)
	if got, want := c.only(), ", for some parts of GET /v0, GET /b only"; got != want {
		t.Errorf("and another kind: %q, want %q", got, want)
	}
	if got := c.alone(); got != "" {
		t.Errorf("and another kind: it is for %q alone, want none", got)
	}
}

// A rate of several kinds that is known from another run is none of a part of one of them.
func TestAKnownRateOfKindsIsNotThatOfAPart(t *testing.T) {
	k, parts := parted(1)
	if g := k.learner.grouped([]string{"GET /b", "GET /v0"}); g == parts[0].group {
		t.Error("another kind shares what is found for a part")
	}
}

// Limits of one size are told as one, in the words that all have, or in figures; what is of another size
// or another kind of request stands for itself.
func TestWordsOfPartsThatBearTheSame(t *testing.T) {
	k, _ := parted(1)
	other := k.learner.endpointOf(kind.Key{Method: "GET", Rest: "b"}, 1)
	rate := func(limit float64) LearnedLimit {
		return LearnedLimit{Kind: LearnedRate, Limit: limit, Per: time.Second, Why: "alone"}
	}
	var all []partLimits
	all = addPart(all, k, rate(5), "bucket")
	all = addPart(all, k, rate(5), "sliding")
	all = addPart(all, k, rate(6), "six")
	all = addPart(all, other, rate(5), "bucket")
	var got []string
	for i := range all {
		got = append(got, all[i].limit().Why)
	}
	if want := []string{"looks like 5 per 1s, found by its refusals, for each of 2 parts of GET /v0", "alone", "alone"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
