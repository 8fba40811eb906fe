package population

import (
	"errors"
	"testing"
	"time"
)

const s = time.Second

// TestSilence holds what a stall is: callers wait, the server has room, nothing
// that it said holds, and nothing is sent.
func TestSilence(t *testing.T) {
	for _, x := range []struct {
		name string
		do   func(q *silence)
		want time.Duration
	}{
		{"nobody waits", func(q *silence) { q.wait(0); q.send(0); q.wait(9 * s); q.send(9 * s) }, 0},
		{"one waits", func(q *silence) { q.wait(2 * s); q.send(9 * s) }, 7 * s},
		{"others send meanwhile", func(q *silence) { q.wait(0); q.wait(0); q.send(4 * s); q.send(9 * s) }, 5 * s},
		{"there is no room", func(q *silence) { q.wait(0); q.free = 8 * s; q.send(9 * s) }, s},
		{"the server has said so", func(q *silence) { q.wait(0); q.heard(0, 6*s); q.send(9 * s) }, 3 * s},
		{"one gives up", func(q *silence) { q.wait(0); q.leave(5 * s) }, 5 * s},
	} {
		var q silence
		x.do(&q)
		if q.longest != x.want {
			t.Errorf("%s: a silence of %v, want %v", x.name, q.longest, x.want)
		}
	}
}

// TestFound holds that a raised quota is found when the new rate is first
// kept, and not by a burst.
func TestFound(t *testing.T) {
	c := &Case{limiter: limiter{step: 10 * s, risen: 10, span: 2 * s}} // 16 in 2 s
	var log []Arrival
	at := func(from, to, every time.Duration) {
		for t := from; t < to; t += every {
			log = append(log, Arrival{t, true})
		}
	}
	at(0, 15*s, s/2)
	for range 10 {
		log = append(log, Arrival{15 * s, true}) // a burst, then the old rate
	}
	at(15*s, 20*s, s/2)
	if got := found(log, c, 40*s, 10); got != 30*s {
		t.Errorf("never found: got %v, want the 30s until the end", got)
	}
	at(20*s, 30*s, s/10)
	if got := found(log, c, 40*s, 10); got != 9500*time.Millisecond { // with one of the old rate and 15 of the new
		t.Errorf("found after %v, want 9.5s", got)
	}
	if got := found(log[:10], c, 40*s, 2.5); got != 30*s { // nothing since the rise
		t.Errorf("nothing was sent: got %v, want the 30s until the end", got)
	}
	if got := found(log[:40], c, 40*s, 2.5); got != 0 { // by the old rate, which is four fifths of what the workers ask for
		t.Errorf("few workers: found after %v, want at once", got)
	}
}

// TestLostCallsAreCounted holds that refusals handed to the caller are lost
// calls, whoever hands them out: here a loop of ten attempts, where a hundred
// goroutines ask a window of one per minute.
func TestLostCallsAreCounted(t *testing.T) {
	c := Draw(Train, 1, 0)
	c.limiter, _ = fixed(newDice(Train, 1, 1), windowed{1, time.Minute}, true)
	c.work = func(int) time.Duration { return 0 }
	c.Dialect, c.RTT = plain()[4], s/10 // Retry-After constant 1
	c.Demand = Demand{Kind: "batch", Calls: 100, Workers: 100, Routes: make([]int, 100)}
	r, log := playAlone(t, c, Callers()[3])
	if r.Lost != 99 || r.Refused != 990 || r.Why["429 Too Many Requests"] != 99 || len(log) != 991 {
		t.Errorf("lost %d, refused %d, %v, arrivals %d; want 99, 990, all by 429, 991", r.Lost, r.Refused, r.Why, len(log))
	}
}

func TestReasonsAreGrouped(t *testing.T) {
	for text, want := range map[string]string{
		"throttle: a: wait of 1m15.5s exceeds the 75s limit": "throttle: a: wait of # exceeds the # limit",
		"breaker: a.b1: circuit is open, for another 103ms":  "breaker: a.b1: circuit is open, for another #",
	} {
		if got := reason(errors.New(text)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
