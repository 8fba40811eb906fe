package cooldown_test

import (
	"math"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	sec  = time.Second
	most = 5 * time.Minute
)

func at(d time.Duration) meter.Instant { return meter.Instant(time.Hour + d) }

func retryIn(d time.Duration) cooldown.Hint {
	return cooldown.Hint{Wait: d, Known: true, Source: "Retry-After"}
}

// refuse is a refusal now of what was sent at sent.
func refuse(c *cooldown.Cooldown, now, sent time.Duration, said cooldown.Hint) (news bool) {
	return c.Refused(at(now), cooldown.Refusal{Sent: at(sent), Hint: said, Guess: sec, Most: most, Spread: .5})
}

// asked is a Cooldown as it is when so many have asked in vain, hints were too short by
// slack, and the next one goes.
func asked(vain int, slack time.Duration) (c *cooldown.Cooldown, now meter.Instant) {
	c, now = new(cooldown.Cooldown), at(0)
	next := func() {
		c.Refused(now+1, cooldown.Refusal{Sent: now, Guess: 1, Most: most})
		now = c.Until() + 2
	}
	if slack > 0 {
		next()
		ended := c.Until()
		next()
		now = ended.Add(slack)
		c.Served(now)
		now++
	}
	for range vain {
		next()
	}
	return c, now
}

// How long a pause is for a refusal that is news.
func TestLengthOfAPause(t *testing.T) {
	for _, test := range []struct {
		name   string
		vain   int
		slack  time.Duration
		said   cooldown.Hint
		guess  time.Duration
		fresh  bool
		spread float64
		want   time.Duration
	}{
		{"a guess", 0, 0, cooldown.Hint{}, sec, true, .5, sec},
		{"a guess, spread least", 0, 0, cooldown.Hint{}, sec, false, 0, 3 * sec / 4},
		{"a guess, spread most", 0, 0, cooldown.Hint{}, sec, false, 1, 5 * sec / 4},
		{"a long guess", 0, 0, cooldown.Hint{}, 2 * time.Minute, false, .5, 2 * time.Minute},
		{"a long guess in vain", 3, 0, cooldown.Hint{}, time.Minute, false, .5, 12 * sec},
		{"said", 0, 0, retryIn(5 * sec), sec, false, .9, 5 * sec},
		{"said to one of a herd", 0, 0, retryIn(5 * sec), sec, true, .5, 6 * sec},
		{"said shortly to one of a herd", 0, 0, retryIn(sec), sec, true, 1, 2 * sec},
		{"said a bit longer", 0, 0, retryIn(3 * sec), sec, true, 1, 4500 * time.Millisecond},
		{"too short before", 0, sec, retryIn(5 * sec), sec, false, .5, 6 * sec},
		{"said in vain", 1, 0, retryIn(5 * sec), sec, false, .5, 5500 * time.Millisecond},
		{"said in vain again", 4, 0, retryIn(5 * sec), sec, false, .5, 9 * sec},
		{"said in vain for long", 7, 0, retryIn(5 * sec), sec, false, .5, 17 * sec},
		{"for longer", 50, 0, retryIn(5 * sec), sec, false, .5, 17 * sec},
		{"in vain, to one of a herd", 1, 0, retryIn(4 * sec), sec, true, 1, 8500 * time.Millisecond},
		{"in vain for long, to one of a herd", 6, 0, retryIn(0), sec, true, 1, 42 * sec},
		{"capped", 3, sec, retryIn(most + 1), sec, true, 1, most},
		{"just not", 0, sec, retryIn(most), sec, false, 1, most + sec},
		{"a year", 0, 0, retryIn(365 * 24 * time.Hour), sec, false, .9, most},
		{"the largest duration", 0, 0, retryIn(math.MaxInt64), sec, false, .9, most},
		{"a negative wait", 0, 0, retryIn(-time.Hour), sec, false, .9, 0},
		{"an hour that something supports", 0, 0, cooldown.Hint{Wait: time.Hour, Known: true, Supported: true}, sec, false, 0, time.Hour},
		{"a supported year", 0, 0, cooldown.Hint{Wait: 365 * 24 * time.Hour, Known: true, Supported: true}, sec, false, 0, 25 * time.Hour},
	} {
		c, sent := asked(test.vain, test.slack)
		now := sent + 1
		if got := c.InVain(sent); got != test.vain {
			t.Errorf("%s: %d in vain, want %d", test.name, got, test.vain)
		}
		c.Refused(now, cooldown.Refusal{Sent: sent, Hint: test.said, Guess: test.guess, Most: most, Fresh: test.fresh, Spread: test.spread})
		got := c.Until().Sub(now)
		if test.want == 0 && got < 0 { // until is when the pause before was over
			got = 0
		}
		if got.Round(time.Microsecond) != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
		if s := c.State(); s.Capped != (test.said.Known && test.said.Wait > test.want) || s.Source != test.said.Source || s.InVain != test.vain || s.Since != now {
			t.Errorf("%s: %+v", test.name, s)
		}
	}
}

func TestGuessesDouble(t *testing.T) {
	for _, test := range []struct {
		first, most time.Duration
		vain        int
		want        time.Duration
	}{
		{0, most, 0, 20 * time.Millisecond},
		{sec, most, 0, sec},
		{sec, most, 3, 8 * sec},
		{sec, most, 9, time.Minute},
		{sec, most, math.MaxInt, time.Minute},
		{sec, 10 * sec, 5, 10 * sec},
		{2 * time.Minute, most, 0, 2 * time.Minute},
	} {
		if got := cooldown.Guess(test.first, test.most, test.vain); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
	if a, b := cooldown.LongestGuess(time.Minute), cooldown.LongestGuess(5*time.Minute); a != 12*sec || b != time.Minute {
		t.Error(a, b)
	}
}

// Pauses grow, those that were said as well, as long as one asks in vain.
func TestPausesGrowWhenAskedInVain(t *testing.T) {
	for name, said := range map[string]cooldown.Hint{"without hints": {}, "hints that are too short": retryIn(sec)} {
		c, now, last := new(cooldown.Cooldown), at(0), time.Duration(0)
		for i := range 60 {
			r := cooldown.Refusal{Sent: now, Hint: said, Guess: cooldown.Guess(sec, most, c.InVain(now)), Most: most, Spread: .5}
			now++
			c.Refused(now, r)
			wait := c.Until().Sub(now)
			if i == 0 && wait > 2*sec || wait < last {
				t.Errorf("%s: pause %d is %v after %v", name, i, wait, last)
			}
			if since := now.Sub(at(1)); i > 0 && wait > sec+cooldown.LongestGuess(since) {
				t.Errorf("%s: pause %d is %v, %v after the first refusal", name, i, wait, since)
			}
			last, now = wait, c.Until()+1
		}
		if last < 20*sec || last > cooldown.MostGuess+sec {
			t.Errorf("%s: the last pause is %v", name, last)
		}
	}
}

func TestABurstIsOneRefusal(t *testing.T) {
	var c cooldown.Cooldown
	if !refuse(&c, 0, -20*time.Millisecond, cooldown.Hint{}) {
		t.Fatal("the first is no news")
	}
	was := c.State()
	for i := range 50 * time.Millisecond / 1e6 {
		if refuse(&c, i*1e6, 0, cooldown.Hint{}) {
			t.Fatal("what was sent before the first was heard is news")
		}
	}
	if c.State() != was {
		t.Errorf("%+v, then %+v", was, c.State())
	}
	refuse(&c, 0, 0, retryIn(9*sec))
	refuse(&c, 0, 0, retryIn(3*sec))
	if c.Until() != at(9*sec) || c.Sure() != at(9*sec) || c.State().Source != "Retry-After" || c.State().Since != at(0) {
		t.Errorf("%+v, want the longest hint of the burst, 9s", c.State())
	}
	if refuse(&c, sec, 0, retryIn(time.Hour)); c.Until() != at(sec+most) || !c.State().Capped {
		t.Errorf("a far one: %+v", c.State())
	}
}

// Where one request at a time is served, and slowly, another one is sent after a second and is
// refused, until the first is answered: pauses do not grow. Hints were long enough then.
func TestARowEndsWithAnAnswerThatComesLate(t *testing.T) {
	var c cooldown.Cooldown
	refuse(&c, 0, -1, retryIn(sec))
	for i := range 20 {
		asks := c.Until()
		c.Refused(asks.Add(2*sec), cooldown.Refusal{Sent: asks.Add(sec), Hint: retryIn(sec), Most: most})
		if got := c.Until().Sub(asks); got > 3500*time.Millisecond || c.State().InVain != 1 {
			t.Fatalf("pause %d ends %v after one asked: %+v", i, got, c.State())
		}
		if c.Served(asks - 1); c.State().InVain != 1 {
			t.Fatal("what was sent before the pause was over ended the row")
		}
		if c.Served(asks); c.State().InVain != 0 || c.Over() || c.State().Slack != 0 {
			t.Fatalf("after the answer: %+v", c.State())
		}
	}
}

// A late answer of the same burst begins the pause anew, as the first of a row.
func TestALateHintPausesAgain(t *testing.T) {
	c, now := asked(2, 0)
	c.Served(now)
	refuse(c, now.Sub(at(0)), -sec, retryIn(9*sec))
	if s := c.State(); s.Until != now.Add(9*sec) || s.InVain != 0 || c.Over() || c.Opens() == 0 {
		t.Errorf("%+v", s)
	}
}

// Only what is refused later and names the same instant corroborates a long hint.
func TestOneAnswerDoesNotCorroborateItself(t *testing.T) {
	for _, test := range []struct {
		name string
		gap  time.Duration
		said time.Duration
		want time.Duration
	}{
		{"at once", 3 * sec, time.Hour - 3*sec, most},
		{"later, the same end", 6 * sec, time.Hour - 6*sec, time.Hour - 6*sec},
		{"later, two seconds off", 6 * sec, time.Hour - 4*sec, time.Hour - 4*sec},
		{"later, more", 6 * sec, time.Hour - 3*sec, most},
		{"later, the same wait", time.Minute, time.Hour, most},
	} {
		var c cooldown.Cooldown
		refuse(&c, 0, -1, retryIn(time.Hour))
		refuse(&c, test.gap, test.gap-1, retryIn(test.said))
		if got := c.Until().Sub(at(test.gap)); got.Truncate(sec) != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// What a good answer tells of the hints before it.
func TestSlack(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(c *cooldown.Cooldown, now meter.Instant)
		want time.Duration
	}{
		{"too short by more than is believed", func(c *cooldown.Cooldown, now meter.Instant) {
			c.Refused(now+1, cooldown.Refusal{Sent: now, Guess: 1, Most: most})
			c.Refused(c.Until()+2, cooldown.Refusal{Sent: c.Until() + 1, Guess: 1, Most: most})
			c.Served(now.Add(time.Minute))
		}, cooldown.MostSlack},
		{"too short by less than before", func(c *cooldown.Cooldown, now meter.Instant) {
			c.Refused(now+1, cooldown.Refusal{Sent: now, Guess: 1, Most: most})
			c.Refused(c.Until()+2, cooldown.Refusal{Sent: c.Until() + 1, Guess: 1, Most: most})
			c.Served(now.Add(sec / 2))
		}, sec},
		{"long enough", func(c *cooldown.Cooldown, now meter.Instant) {
			c.Refused(now+1, cooldown.Refusal{Sent: now, Hint: retryIn(sec), Most: most})
			c.Served(c.Until())
		}, 900 * time.Millisecond},
		{"sent before the end", func(c *cooldown.Cooldown, now meter.Instant) {
			c.Refused(now+1, cooldown.Refusal{Sent: now, Hint: retryIn(sec), Most: most})
			c.Served(c.Until() - 1)
		}, sec},
		{"capped, which tells nothing of the hint", func(c *cooldown.Cooldown, now meter.Instant) {
			for range 2 {
				c.Refused(now+2, cooldown.Refusal{Sent: now + 1, Hint: retryIn(time.Hour), Most: most})
				now = c.Until()
			}
			c.Served(now.Add(sec))
		}, 900 * time.Millisecond},
		{"lifted", func(c *cooldown.Cooldown, now meter.Instant) {
			c.Refused(now+1, cooldown.Refusal{Sent: now, Hint: retryIn(time.Minute), Most: most})
			if c.Lift(); c.At(now+2) != now+2 || c.Opens() != 0 {
				t.Errorf("lifted: %+v", c.State())
			}
			c.Served(now + 3)
		}, sec},
	} {
		c, now := asked(0, sec)
		if test.do(c, now); c.State().Slack.Round(time.Millisecond) != test.want {
			t.Errorf("%s: slack %v, want %v", test.name, c.State().Slack, test.want)
		}
	}
}

// TestWhoIsNotRefusedSoonWasAccepted: one after the other asks whether a pause is over. It is once the
// first of them has been under way for far longer than the slowest refusal lately took: for ten times
// as long, or for a second more than twice as long, whichever is sooner.
func TestWhoIsNotRefusedSoonWasAccepted(t *testing.T) {
	for trip, over := range map[time.Duration]time.Duration{
		40 * time.Millisecond:  asking,
		200 * time.Millisecond: 1450 * time.Millisecond,
		2 * sec:                5050 * time.Millisecond,
	} {
		var c cooldown.Cooldown
		refuse(&c, trip, 0, retryIn(sec))
		begun, asks := trip+sec, 0
		now, most := begun, int((over-1)/asking)+1
		for ; c.Start(at(now)); now = min(now+asking, begun+over) {
			if asks++; c.At(min(at(now+asking), at(begun+over))-1) != meter.Never {
				t.Errorf("refused after %v: more than one asks at a time", trip)
			}
		}
		if asks != most || !c.Over() || c.At(at(now)) != at(now) || c.Start(at(now)) {
			t.Errorf("refused after %v: %d ask, want %d; or others still wait", trip, asks, most)
		}
		if c.Done(true); c.InVain(at(now+1)) != 0 {
			t.Errorf("refused after %v: it asked in vain", trip)
		}
	}
}

func TestNoCooldownIsOver(t *testing.T) {
	var none *cooldown.Cooldown
	none.Lift()
	none.Served(at(0))
	none.Done(true)
	if none.Start(at(0)) || none.At(at(0)) != at(0) || none.Opens() != 0 || none.Sure() != 0 || none.Until() != 0 || !none.Over() {
		t.Error("a pause that nobody began")
	}
	var zero cooldown.Cooldown
	if zero.Served(at(0)); zero.Start(at(0)) || zero.At(at(0)) != at(0) || zero.InVain(at(0)) != 0 || zero.State() != (cooldown.State{}) {
		t.Errorf("%+v", zero)
	}
}

// A part of the requests gets the pause for itself; the others go on.
func TestPart(t *testing.T) {
	c, now := asked(2, 0)
	refuse(c, now.Sub(at(0))+1, now.Sub(at(0)), retryIn(5*sec))
	was := c.State()
	c.Start(now)
	part := c.Part()
	if part.State() != was || !part.Start(now) {
		t.Errorf("the part: %+v", part.State())
	}
	if c.At(now) != now || c.Opens() != 0 {
		t.Errorf("the others: %+v", c.State())
	}
	if c.Done(true); part.Opens() != 0 {
		t.Error("who asked for the others did not ask for the part")
	}
}

// What was known before the program began is believed as one answer is.
func TestRecall(t *testing.T) {
	for _, test := range []struct{ until, want time.Duration }{{time.Minute, time.Minute}, {time.Hour, most}, {0, 0}, {-sec, 0}} {
		var c cooldown.Cooldown
		c.Recall(at(0), at(test.until), most, "x")
		if got := c.At(at(0)); got != at(test.want) || (c.Opens() != 0) != (test.want > 0) || test.want > 0 && c.State().Source != "x" {
			t.Errorf("%v: %v, %+v", test.until, got, c.State())
		}
	}
}
