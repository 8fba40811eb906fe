package attribution_test

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// newStrangers has seen so many first answers, of which one in ten was refused.
func newStrangers(answers int) *attribution.Strangers {
	j := new(attribution.Strangers)
	j.Begin(zero)
	for i := range answers {
		j.Count(i%10 == 0)
	}
	return j
}

// One that asks while others wait is refused if they share one limit, and served if
// it has its own: two or three such answers are beyond doubt.
func TestOneThatAsksTells(t *testing.T) {
	for _, refused := range []bool{true, false} {
		j := newStrangers(40)
		if j.Sure() || j.Apart() {
			t.Fatal("at first nothing is known")
		}
		n := 0
		for ; !j.Sure() && !j.Apart() && n < 10; n++ {
			j.Answered(zero+1, zero, zero.Add(5*time.Second), refused)
		}
		if n == 0 || n > 3 || j.Sure() != refused {
			t.Errorf("refused %t: sure %t, apart %t after %d", refused, j.Sure(), j.Apart(), n)
		}
	}
	j := newStrangers(40)
	for range 10 { // sent when the others had to wait no more
		j.Answered(zero+1, zero, zero, false)
	}
	if j.Apart() {
		t.Error("one that was served as anybody would have been tells of a limit of its own")
	}
}

// What follows the first that is refused is refused, too, if the limit is one; a single
// one that is served takes that back. What was sent at the same instant tells nothing.
func TestWhatFollowsARefusalTells(t *testing.T) {
	for _, test := range []struct {
		name   string
		served int // the one of ten that follow which is served; negative: none
		apart  time.Duration
		sure   bool
	}{
		{"all are refused", -1, time.Millisecond, true},
		{"the last is served", 9, time.Millisecond, false},
		{"the third is served", 2, time.Millisecond, true},
		{"all were sent at once", -1, 0, false},
	} {
		j := newStrangers(40)
		sent, heard := zero, zero.Add(time.Second)
		j.Follows(heard.Add(-sec/2), sent.Add(-time.Millisecond), false) // served before
		if test.apart == 0 {
			j.Follows(heard.Add(-sec/2), sent, false) // one of those at once
		}
		j.Follows(heard, sent, true)
		for i := range 10 {
			sent = sent.Add(test.apart)
			j.Follows(heard.Add(time.Duration(i)), sent, i != test.served)
		}
		if j.Sure() != test.sure {
			t.Errorf("%s: sure %t", test.name, j.Sure())
		}
	}
}

// What is left of one limit goes on where it was, one by one; what is left of limits of
// their own begins anew. A window that may have begun meanwhile tells nothing.
func TestWhatIsLeftTells(t *testing.T) {
	for _, test := range []struct {
		name        string
		left        func(i int) float64
		fresh       bool
		sure, apart bool
	}{
		{"it falls by one", func(i int) float64 { return 60 - float64(i) - 1 }, true, true, false},
		{"it is nearly full", func(i int) float64 { return 99 }, true, false, true},
		{"it is nearly full, perhaps after a reset", func(i int) float64 { return 99 }, false, false, false},
		{"it is what it was", func(i int) float64 { return 60 - float64(i) }, true, false, false},
	} {
		j := newStrangers(40)
		for i := range 5 {
			j.Compare(zero, attribution.Level{Left: test.left(i), Size: 100, Was: 60 - float64(i), UnderWay: 1, New: test.fresh})
		}
		if j.Sure() != test.sure || j.Apart() != test.apart {
			t.Errorf("%s: sure %t, apart %t", test.name, j.Sure(), j.Apart())
		}
	}
}

// Evidence is forgotten, and no more of it is kept than a few answers outweigh.
func TestEvidenceOfStrangersIsBounded(t *testing.T) {
	j := newStrangers(10)
	for range 1000 {
		j.Answered(zero, zero, zero.Add(time.Minute), true)
	}
	for age, want := range map[time.Duration]bool{attribution.Remembered: false, attribution.Remembered + 1: true} {
		if j.Stale(zero.Add(age)) != want {
			t.Errorf("%v later: stale %t", age, !want)
		}
	}
	n := 0
	for ; !j.Apart(); n++ {
		j.Answered(zero, zero, zero.Add(5*time.Second), false)
	}
	if n > 3 {
		t.Errorf("%d answers against what a thousand said", n)
	}
	j.Begin(meter.Instant(1))
	if j.Apart() || j.Sure() {
		t.Error("it begins with an opinion")
	}
}
