package attribution_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	sec  = time.Second
	zero = meter.Instant(time.Hour)
)

// proveNone lets o's host prove at that instant to fail at random, and so to be no limiter.
func proveNone(t *testing.T, o *attribution.Overload, at meter.Instant) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 1))
	for range 1000 {
		if o.Heard(at, at, attribution.Reply{Busy: r.IntN(2) == 0}) == attribution.NoLimiter {
			return
		}
	}
	t.Fatal("nothing is proved")
}

// A 503 that says no more may be a limiter's if the host has just served somebody,
// and few bursts were answered so in vain since.
func TestWhoIsSparedAsALimiter(t *testing.T) {
	bare := attribution.Reply{Busy: true, Bare: true}
	for _, test := range []struct {
		name  string
		do    func(o *attribution.Overload)
		after time.Duration
		want  bool
	}{
		{"it has just served", func(o *attribution.Overload) { o.Served(zero, zero) }, sec - 1, true},
		{"a second ago", func(o *attribution.Overload) { o.Served(zero, zero) }, sec, false},
		{"it never served", func(o *attribution.Overload) {}, 0, false},
		{"one asked in vain", func(o *attribution.Overload) { o.Served(zero, zero); o.Heard(zero, zero, bare) }, 0, true},
		{"two did", func(o *attribution.Overload) {
			o.Served(zero, zero)
			o.Heard(zero, zero, bare)
			o.Heard(zero+2, zero+1, bare)
		}, 2, false},
		{"two of one burst", func(o *attribution.Overload) {
			o.Served(zero, zero)
			o.Heard(zero+1, zero, bare)
			o.Heard(zero+2, zero+1, bare)
		}, 2, true},
		{"two did, before it served", func(o *attribution.Overload) {
			o.Heard(zero, zero, bare)
			o.Heard(zero+2, zero+1, bare)
			o.Served(zero+2, zero+2)
		}, 2, true},
		{"it is known to be none", func(o *attribution.Overload) {
			proveNone(t, o, zero)
			o.Served(zero.Add(attribution.Remembered-1), zero.Add(attribution.Remembered-1))
		}, attribution.Remembered - 1, false},
		{"it was", func(o *attribution.Overload) {
			proveNone(t, o, zero)
			o.Served(zero.Add(attribution.Remembered), zero.Add(attribution.Remembered))
		}, attribution.Remembered, true},
	} {
		var o attribution.Overload
		if test.do(&o); o.Spares(zero.Add(test.after)) != test.want {
			t.Errorf("%s: spared %t", test.name, !test.want)
		}
	}
}

// A host that fails at random is found out, unless it is asked by a circuit. Then its
// overloads tell nothing, until that is forgotten.
func TestChanceIsAVerdict(t *testing.T) {
	for _, test := range []struct {
		name string
		r    attribution.Reply
		want bool
	}{
		{"one at a time", attribution.Reply{}, true},
		{"probes", attribution.Reply{Probe: true}, false},
	} {
		r := rand.New(rand.NewPCG(7, 1))
		var o attribution.Overload
		found, now := false, zero
		for range 1000 {
			now = now.Add(10 * time.Millisecond)
			reply := test.r
			reply.Busy = r.Float64() < .7
			if found = o.Heard(now, now, reply) == attribution.Chance; found {
				break
			}
			if reply.Busy {
				o.Overloaded(now, true)
			} else {
				o.Served(now, now)
			}
		}
		if found != test.want {
			t.Errorf("%s: found %t", test.name, found)
			continue
		}
		until := now.Add(attribution.Remembered)
		if o.Overloaded(until-1, true) != test.want || o.Overloaded(until-1, false) || o.Overloaded(until, true) {
			t.Errorf("%s: what is chance is not for ten minutes, or more than that", test.name)
		}
	}
}

// What a host says now and then costs the others nothing: one that never said that it is
// overloaded is quiet.
func TestWhoIsQuiet(t *testing.T) {
	var o attribution.Overload
	o.Heard(zero, zero, attribution.Reply{})
	o.Served(zero, zero)
	if !o.Quiet() {
		t.Error("it was never overloaded")
	}
	if o.Heard(zero, zero, attribution.Reply{Busy: true}); o.Quiet() {
		t.Error("it was")
	}
}

// A host that fails at random has no limit either, once that is sure: its 503s in a row are
// put down to none. When it begins to limit, that is seen.
func TestSureChanceHasNoLimit(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 1))
	var o attribution.Overload
	now, found := zero, []attribution.Verdict{}
	past := attribution.Past{Since: zero.Add(-time.Second), Served: 1, Waits: time.Hour}
	hear := func(bad bool) {
		now = now.Add(10 * time.Millisecond)
		if v := o.Heard(now, now-1, attribution.Reply{Busy: bad, Bare: bad}); v != attribution.Open {
			found = append(found, v)
		}
		if bad {
			o.Overloaded(now, true)
		} else {
			o.Served(now, now-1)
		}
	}
	for range 400 {
		hear(r.IntN(2) == 0)
	}
	if len(found) > 0 && found[0] == attribution.NoLimiter {
		found = found[1:] // its first answers happened to look like a limiter's
	}
	if len(found) != 2 || found[0] != attribution.Chance || found[1] != attribution.NoLimiter {
		t.Fatalf("verdicts %v, want chance, and then no limiter, once each", found)
	}
	past.Since = now.Add(-time.Second)
	for range 4 { // which half of the others have in a row, too
		if o.Limited(now, past) {
			t.Fatal("a limiter, though it is sure to be none")
		}
		hear(true)
	}
	take := windowOf(20, time.Second)
	for n := 0; o.Overloaded(now, true); n++ {
		if hear(!take(time.Duration(now))); n > 2000 {
			t.Fatal("what it refuses is chance for ever")
		}
	}
}

// Refusals that say why are no evidence of chance: a limiter that says no more than 503 stays
// suspected, however many another one refuses in between.
func TestRefusalsThatSayWhyAreNoChance(t *testing.T) {
	var o attribution.Overload
	now, take := zero, windowOf(1, time.Second)
	hear := func(r attribution.Reply) attribution.Verdict {
		v := o.Heard(now, now-1, r)
		if r.Busy {
			o.Overloaded(now, true)
		} else if !r.Told {
			o.Served(now, now-1)
		}
		return v
	}
	for range 400 {
		now = now.Add(130 * time.Millisecond)
		busy := !take(time.Duration(now))
		hear(attribution.Reply{Busy: busy, Bare: busy})
	}
	if !o.Suspected() {
		t.Fatal("it is not suspected")
	}
	for i := range 200 {
		now = now.Add(130 * time.Millisecond)
		busy := !take(time.Duration(now))
		for _, r := range []attribution.Reply{{Busy: busy, Bare: busy}, {Told: true}} {
			if v := hear(r); v != attribution.Open || !o.Suspected() {
				t.Fatalf("after %d such refusals: verdict %v, suspected %t", i, v, o.Suspected())
			}
		}
	}
}
