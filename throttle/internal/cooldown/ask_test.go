package cooldown_test

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// asking is for how long one request asks before another does.
const asking = 1100 * time.Millisecond

// A pause ends by one request that asks.
func TestOneAsksWhetherThePauseIsOver(t *testing.T) {
	var c cooldown.Cooldown
	refuse(&c, 0, -1, retryIn(sec))
	for now, want := range map[time.Duration]time.Duration{0: sec, sec - 1: sec, sec: sec, 2 * sec: 2 * sec} {
		if got := c.At(at(now)); got != at(want) {
			t.Errorf("at %v: %v", now, got)
		}
	}
	if c.Opens() != at(sec) || !c.Start(at(sec)) || c.Start(at(sec)) || c.At(at(sec)) != meter.Never || c.Again() != at(sec+asking) || c.At(at(0)) != at(sec) || c.Opens() != 0 {
		t.Error("more than one asks")
	}
	if c.Done(false); c.At(at(sec)) != meter.Never {
		t.Error("another one's end")
	}
	if c.Done(true); c.At(at(sec)) != at(sec) || c.Over() {
		t.Error("nobody asks any more")
	}
	if c.Served(at(sec)); c.Start(at(sec)) || !c.Over() || c.Opens() != 0 {
		t.Error("it was answered")
	}
}

// TestWhoAskedBeforeSaysNothingOfALaterPause: a late answer prolonged the pause while one was under
// way that had asked. After it one asks again.
func TestWhoAskedBeforeSaysNothingOfALaterPause(t *testing.T) {
	var c cooldown.Cooldown
	refuse(&c, 40*time.Millisecond, 0, retryIn(sec))
	asks := c.Start(at(1100 * time.Millisecond))
	refuse(&c, 2*sec, 0, retryIn(10*sec))
	if !asks || !c.Start(at(40*sec)) || c.Over() || c.At(at(40*sec)) != meter.Never {
		t.Error("nobody asks whether the longer pause is over")
	}
}

func TestAQuestionIsAskedByOneAtATime(t *testing.T) {
	var q cooldown.Question
	if q.IsOpen() || q.Ask(at(0), sec) || q.Asked(at(0)) != 0 {
		t.Error("a closed one")
	}
	q.Open()
	if !q.IsOpen() || !q.Ask(at(0), sec) || q.Ask(at(0), sec) || q.Asked(at(0)) != at(sec) {
		t.Error("an open one")
	}
	if q.Done(false); q.Ask(at(0), sec) {
		t.Error("another one's end")
	}
	if q.Close(); q.IsOpen() || q.Asked(at(0)) == 0 {
		t.Error("it is answered, by one that is under way")
	}
	if q.Done(true); q.Asked(at(0)) != 0 || q.Ask(at(0), sec) {
		t.Error("an answered one is asked")
	}
	if q.Open(); !q.Ask(at(0), sec) {
		t.Error("asked anew")
	}
}

// Who asks and gets no answer does not keep others from asking.
func TestWhoHangsDoesNotAskForAll(t *testing.T) {
	var q cooldown.Question
	q.Open()
	q.Ask(at(0), sec)
	if q.Ask(at(sec-1), sec) || !q.Ask(at(sec), sec) || q.Ask(at(sec), sec) || q.Asked(at(sec)) != at(2*sec) {
		t.Error("not one a second")
	}
	if q.Done(true); q.Asked(at(sec)) != at(2*sec) {
		t.Error("the end of one is the end of both")
	}
	q.Done(true)
	if q.Done(true); q.Asked(at(sec)) != 0 || !q.Ask(at(sec), sec) {
		t.Error("nobody asks, and nobody may")
	}
}
