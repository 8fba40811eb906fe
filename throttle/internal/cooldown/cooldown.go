package cooldown

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	// growth is what a hint is prolonged by when one asked in vain; it doubles each time,
	// growths times at most. A hint that ends less than a second early, as one in whole
	// seconds may, is then long enough after two questions; the last doubling is the first
	// that mostSpread cuts.
	growth  = 250 * time.Millisecond
	growths = 7

	// firstSpread and mostSpread are how far newcomers are spread at most: after a first
	// refusal, when a second or two is what people bear, and after others, when a herd is
	// likely. They double spreads times at most on the way: from one second, the least, to
	// mostSpread.
	firstSpread = 2 * time.Second
	mostSpread  = 30 * time.Second
	spreads     = 5

	// slackKept of ten parts of the slack is kept when a hint proved long enough: a server
	// that changed its rounding is believed again after some twenty pauses, and one whose
	// hints are short in a few of ten pauses is not.
	slackKept = 9
)

// A Cooldown is the pause that refusals began, and what is known of how such pauses
// end. The zero Cooldown is over.
type Cooldown struct {
	question Question // whether the pause is over

	until meter.Instant // nothing starts before
	sure  meter.Instant // nothing starts before by the server's word; what until is later is a guess
	since meter.Instant // when the last burst was first heard of: a refusal of what was sent before tells nothing new; zero: there was none
	began meter.Instant // when the first of the refusals in a row was heard
	ended meter.Instant // when the pause after that one was over
	told  meter.Instant // when the last hint ends, however far that is; zero: the last refusal had none

	inVain int           // requests in a row that asked whether the pause is over and were refused
	slack  time.Duration // by how much hints have proved too short
	capped bool          // until is nearer than the hint
	served bool          // since the last refusal
	source string        // of the hint; "": a guess
}

// A State is what a Cooldown says about itself, for people.
type State struct {
	Until  meter.Instant // nothing starts before
	Sure   meter.Instant // likewise by the server's word; zero: it gave none
	Since  meter.Instant // when the refusal was heard that tells most lately
	Source string        // the header that said how long; "": it is a guess
	InVain int           // requests in a row that asked whether it is over and were refused
	Slack  time.Duration // by how much the server's hints have proved too short
	Capped bool          // the hint was longer than is believed
}

// State is what c is for.
func (c *Cooldown) State() State {
	return State{c.until, c.sure, c.since, c.source, c.inVain, c.slack, c.capped}
}

// A Refusal is what is known of one.
type Refusal struct {
	Sent   meter.Instant // when the refused request was sent
	Hint   Hint
	Guess  time.Duration // the pause to try without a hint
	Most   time.Duration // the longest pause that is believed without support
	Fresh  bool          // the client is too new to be part of a steady flow: it may be one of a herd
	Spread float64       // random, uniform in [0,1), so that strangers do not meet again
}

// Refused learns from a refusal. It reports whether that was news rather than one more
// answer of the same burst.
func (c *Cooldown) Refused(now meter.Instant, r Refusal) (news bool) {
	news = c.since == 0 || r.Sent > c.since
	said := r.Hint
	if news {
		said.Supported = c.repeats(now, said) || said.Supported
	}
	if said.Known {
		wait, _ := said.Believed(r.Most)
		c.sure = max(c.sure, now.Add(wait))
	}
	if !news {
		if said.Known {
			c.prolong(now, said, r.Most)
		}
		return false
	}
	c.inVain = c.InVain(r.Sent)
	r.Hint = said
	wait := c.length(r)
	if c.inVain == 0 {
		c.began = now
	} else if !said.Known {
		wait = min(wait, LongestGuess(now.Sub(c.began)))
	}
	c.since, c.served, c.source = now, false, said.Source
	c.question.Open()
	c.until = max(c.until, now.Add(wait))
	if c.inVain == 0 {
		c.ended = c.until
	}
	return true
}

// prolong heeds the hint of one more answer of the same burst.
func (c *Cooldown) prolong(now meter.Instant, said Hint, most time.Duration) {
	wait, capped := said.Believed(most)
	if now.Add(wait) <= c.until {
		return
	}
	c.until, c.capped, c.source = now.Add(wait), capped, said.Source
	c.question.Open()
	if c.served { // the pause was over, and begins again
		c.served, c.inVain, c.ended = false, 0, c.until
	}
}

// repeats reports whether a hint ends when the one before it did. Refusals that are
// some time apart agree only if they speak of an instant.
func (c *Cooldown) repeats(now meter.Instant, said Hint) bool {
	last := c.told
	if c.told = 0; said.Known {
		c.told = now.Add(said.Wait)
	}
	return said.Known && last != 0 && now.Sub(c.since) > 2*MostSlack && c.told.Sub(last).Abs() <= MostSlack
}

// length is the pause for a refusal that is news.
func (c *Cooldown) length(r Refusal) time.Duration {
	said := r.Hint
	if c.capped = false; !said.Known {
		return time.Duration(float64(r.Guess) * (0.75 + 0.5*r.Spread))
	}
	wait, capped := said.Believed(r.Most)
	if c.capped = capped; capped {
		return wait
	}
	wait += c.slack
	if c.inVain > 0 {
		wait += min(growth<<min(c.inVain, growths), mostSpread)
	}
	if r.Fresh { // perhaps one of a thousand processes that were all refused at once
		room := min(max(time.Second, said.Wait/2), mostSpread) << min(c.inVain, spreads)
		if c.inVain == 0 {
			room = min(room, firstSpread)
		}
		wait += time.Duration(r.Spread * float64(min(room, mostSpread)))
	}
	return wait
}

// InVain is how many requests in a row have asked whether the pause is over and were
// refused, if the one sent at sent is.
func (c *Cooldown) InVain(sent meter.Instant) int {
	if c.since == 0 || c.served || sent <= c.since {
		return 0
	}
	return c.inVain + 1
}

// Served notes an answer that was no refusal to a request sent at sent.
func (c *Cooldown) Served(sent meter.Instant) {
	if c == nil || sent < c.until || c.since == 0 || c.served {
		return
	}
	if c.inVain > 0 && !c.capped {
		c.slack = min(MostSlack, max(c.slack, sent.Sub(c.ended)))
	} else {
		c.slack = c.slack * slackKept / 10
	}
	c.served, c.capped = true, false
	c.question.Close()
}

// Lift ends the pause at once. What is known of the server's hints stays.
func (c *Cooldown) Lift() {
	if c != nil {
		*c = Cooldown{slack: c.slack, question: Question{asks: c.question.asks, again: c.question.again}}
	}
}

// Recall lets c rest until then, as was known before this program began, but for no
// longer than most. One request asks then whether the pause is over, as after any.
func (c *Cooldown) Recall(now, until meter.Instant, most time.Duration, source string) {
	if until = min(until, now.Add(most)); until > c.until && until > now {
		c.until, c.since, c.began, c.source = until, now, now, source
		c.question.Open()
	}
}

// Doubt has one request ask whether a pause that others keep is to be kept here, too.
func (c *Cooldown) Doubt(now meter.Instant) {
	c.until, c.since, c.began, c.ended, c.served = now, now, now, now, false
	c.question.Open()
}

// Part ends c's pause and returns it as one of its own, for a part of the requests that
// it was for. Who asks at the moment asks for c.
func (c *Cooldown) Part() *Cooldown {
	part := *c
	part.question.asks = 0
	c.Lift()
	return &part
}
