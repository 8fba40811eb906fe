package throttle

import (
	"testing"
	"time"
)

// How long a pause is for a refusal that is news.
func TestLengthOfAPause(t *testing.T) {
	const most = 5 * time.Minute
	for _, test := range []struct {
		name   string
		h      hold
		said   hint
		guess  time.Duration
		fresh  bool
		spread float64
		want   time.Duration
	}{
		{"a guess", hold{}, hint{}, sec, true, 0.5, sec},
		{"a guess, spread least", hold{}, hint{}, sec, false, 0, 3 * sec / 4},
		{"a guess, spread most", hold{}, hint{}, sec, false, 1, 5 * sec / 4},
		{"no guess", hold{}, hint{}, 0, false, 0.5, leastGuess},
		{"in vain", hold{strikes: 3}, hint{}, sec, false, 0.5, 8 * sec},
		{"in vain for long", hold{strikes: 9}, hint{}, sec, false, 0.5, mostGuess},
		{"a long guess", hold{}, hint{}, 2 * mostGuess, false, 0.5, 2 * mostGuess},
		{"said", hold{strikes: 0}, retryIn(5 * sec), sec, false, 0.9, 5 * sec},
		{"said to one of a herd", hold{}, retryIn(5 * sec), sec, true, 0.5, 6 * sec},
		{"said shortly to one of a herd", hold{}, retryIn(sec), sec, true, 1, 2 * sec},
		{"said a bit longer", hold{}, retryIn(3 * sec), sec, true, 1, 4500 * time.Millisecond},
		{"too short before", hold{slack: sec}, retryIn(5 * sec), sec, false, 0.5, 6 * sec},
		{"said in vain", hold{strikes: 1}, retryIn(5 * sec), sec, false, 0.5, 5500 * time.Millisecond},
		{"said in vain again", hold{strikes: 4}, retryIn(5 * sec), sec, false, 0.5, 9 * sec},
		{"said in vain for long", hold{strikes: 7}, retryIn(5 * sec), sec, false, 0.5, 35 * sec},
		{"for longer", hold{strikes: 50}, retryIn(5 * sec), sec, false, 0.5, 35 * sec},
		{"in vain, to one of a herd", hold{strikes: 1}, retryIn(4 * sec), sec, true, 1, 8500 * time.Millisecond},
		{"in vain for long, to one of a herd", hold{strikes: 6}, retryIn(0), sec, true, 1, 16*sec + mostSpread},
		{"capped", hold{strikes: 3, slack: sec}, retryIn(most + 1), sec, true, 1, most},
		{"just not", hold{slack: sec}, retryIn(most), sec, false, 1, most + sec},
		{"supported", hold{}, hint{wait: time.Hour, known: true, supported: true}, sec, false, 0, time.Hour},
	} {
		h := test.h
		h.capped = true
		if got := h.length(test.said, guessed(test.guess, most, h.strikes), most, test.fresh, test.spread); got != test.want || h.capped != (test.name == "capped") {
			t.Errorf("%s: %v, want %v; capped %t", test.name, got, test.want, h.capped)
		}
	}
	h := hold{strikes: 5}
	if got := h.length(hint{}, guessed(sec, 10*sec, h.strikes), 10*sec, false, 0.5); got != 10*sec {
		t.Errorf("a guess grows to %v, though a pause may be 10s", got)
	}
}

// Which refusals are news, what they set, and what good answers end.
func TestPausesBeginAndEnd(t *testing.T) {
	const most = 5 * time.Minute
	h := &hold{slack: sec / 2}
	if !h.refuse(at0(0), at0(-sec), retryIn(5*sec), 0, most, false, 0) || h.strikes != 0 || h.until != at0(5500*time.Millisecond) || h.ended != h.until || h.since != at0(0) || !h.asking {
		t.Errorf("%+v", h)
	}
	if h.refuse(at0(sec), at0(0), retryIn(3*sec), 0, most, false, 0) || h.until != at0(5500*time.Millisecond) || h.source != "Retry-After" {
		t.Errorf("a shorter hint of the same burst: %+v", h)
	}
	if h.refuse(at0(sec), at0(0), hint{wait: 9 * sec, known: true, source: "x"}, 0, most, false, 0) || h.until != at0(10*sec) || h.source != "x" || h.since != at0(0) {
		t.Errorf("a longer one: %+v", h)
	}
	if h.refuse(at0(sec), at0(0), hint{wait: time.Hour}, 0, most, false, 0) || h.until != at0(10*sec) {
		t.Errorf("no hint: %+v", h)
	}
	if h.refuse(at0(sec), at0(0), retryIn(time.Hour), 0, most, false, 0) || h.until != at0(sec+most) || !h.capped {
		t.Errorf("a far one: %+v", h)
	}
	if h.good(at0(sec)); !h.asking {
		t.Error("what was sent before the pause's end says nothing")
	}
	h.until = at0(10 * sec)
	for i, sent := range []time.Duration{11, 12} {
		if !h.refuse(at0(sent*sec), at0(sent*sec-1), retryIn(0), 0, most, false, 0) || h.strikes != i+1 || h.ended != at0(5500*time.Millisecond) {
			t.Errorf("asked in vain: %+v", h)
		}
	}
	if h.good(at0(14 * sec)); h.slack != mostSlack || h.asking || h.capped || !h.met {
		t.Errorf("the hint was 8.5s too short: %+v", h)
	}
	if h.good(at0(15 * sec)); h.slack != mostSlack {
		t.Errorf("the next good answer: %+v", h)
	}
	if !h.refuse(at0(20*sec), at0(19*sec), retryIn(sec), 0, most, false, 0) || h.strikes != 0 || h.ended != at0(23*sec) || h.met {
		t.Errorf("a new row: %+v", h)
	}
	if h.good(at0(23 * sec)); h.slack != 1800*time.Millisecond {
		t.Errorf("it was long enough: %+v", h)
	}
	h = &hold{since: at0(0), until: at0(sec), ended: at0(sec), strikes: 1, slack: sec / 2}
	if h.good(at0(5 * sec / 4)); h.slack != sec/2 {
		t.Errorf("less than before: %+v", h)
	}
	h = &hold{since: at0(0), until: at0(sec), ended: at0(sec), strikes: 1, slack: sec, capped: true}
	if h.good(at0(3 * sec)); h.slack != 900*time.Millisecond {
		t.Errorf("a capped one tells nothing of the hint: %+v", h)
	}
	h = &hold{slack: sec}
	if h.good(at0(0)); h.slack != sec || h.met {
		t.Errorf("nothing was refused: %+v", h)
	}
	h = &hold{since: at0(0), until: at0(sec), slack: sec, asked: true, asking: true, strikes: 4}
	if h.lift(); *h != (hold{slack: sec, asked: true}) {
		t.Errorf("lifted: %+v", h)
	}
}

// A pause ends by one request that asks.
func TestOneAsksWhetherThePauseIsOver(t *testing.T) {
	var none *hold
	none.lift()
	none.good(at0(0))
	none.over(true)
	if none.start() || none.wait(at0(0)) != 0 {
		t.Error("no pause")
	}
	h := &hold{until: at0(sec), asking: true}
	for at, want := range map[time.Duration]time.Duration{0: sec, sec - 1: 1, sec: 0} {
		if got := h.wait(at0(at)); got != want {
			t.Errorf("at %v: %v", at, got)
		}
	}
	if !h.start() || h.start() || h.wait(at0(sec)) != forever || h.wait(at0(0)) != sec {
		t.Error("more than one asks")
	}
	if h.over(false); h.wait(at0(sec)) != forever {
		t.Error("another one's end")
	}
	if h.over(true); h.wait(at0(sec)) != 0 {
		t.Error("nobody asks any more")
	}
	h = &hold{asked: true}
	if h.wait(at0(0)) != 0 || (&hold{}).start() {
		t.Error("nothing is asked for")
	}
	h = &hold{since: at0(0), strikes: 2}
	for sent, want := range map[time.Duration]int{0: 0, 1: 3} {
		if got := h.inVain(at0(sent)); got != want {
			t.Errorf("sent at %v: %d in vain", sent, got)
		}
	}
	if h.met = true; h.inVain(at0(1)) != 0 {
		t.Error("answered well since")
	}
	if new(hold).inVain(at0(1)) != 0 {
		t.Error("the first")
	}
}
