package cooldown

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	// growth is what is added to a hint for requests that asked in vain. It doubles with each
	// of them, up to growths times. A hint in whole seconds may end up to a second early: two
	// questions in vain then make the pause long enough. growths is the first number of
	// doublings that exceeds mostSpread, which bounds what is added. LongestGuess bounds it,
	// too: by chance alone, an overload that spares every second request refuses eight
	// questions in a row within some minutes.
	growth  = 250 * time.Millisecond
	growths = 7

	// firstSpread and mostSpread bound the random part of a new client's pause: after a
	// first refusal, when people do not mind a second or two, and after later ones, when it
	// is likely that many clients are refused together. The random part doubles up to
	// spreads times: from a second, the least, that exceeds mostSpread.
	firstSpread = 2 * time.Second
	mostSpread  = 30 * time.Second
	spreads     = 5

	// slackKept tenths of the slack are kept when a hint proved long enough. So if a server
	// rounds in another way from now on, its slack is nearly gone after some twenty pauses;
	// but if some of ten hints are short, the slack stays.
	slackKept = 9
)

// A Cooldown is the pause that refusals began, and what is known of how such pauses
// end. The zero Cooldown is over.
type Cooldown struct {
	question Question // whether the pause is over

	until meter.Instant // nothing starts before
	sure  meter.Instant // nothing starts before, as the server said; the rest up to until is ours
	since meter.Instant // when the first refusal of the last burst was heard: refusals of requests sent before belong to that burst; zero: there was none
	began meter.Instant // when the first of the refusals in a row was heard
	ended meter.Instant // when the pause after that refusal was over
	asked meter.Instant // when the pause before the last one was over: what was sent since then asked whether it was
	told  meter.Instant // when the last hint ends, whether it is believed or not; zero: the last refusal had none

	inVain int           // requests in a row that asked whether the pause is over and were refused
	slack  time.Duration // by how much hints have proved too short
	trip   time.Duration // of the slowest refusal lately
	capped bool          // until is nearer than the hint
	served bool          // a request was served since the last refusal
	source string        // of the hint; "": a guess
}

// A State is what a Cooldown is, for people to read.
type State struct {
	Until  meter.Instant // nothing starts before
	Sure   meter.Instant // likewise, as the server said; zero: it did not
	Since  meter.Instant // when the first refusal of the last burst was heard
	Source string        // the header that said how long; "": it is a guess
	InVain int           // requests in a row that asked whether it is over and were refused
	Slack  time.Duration // by how much the server's hints have proved too short
	Capped bool          // the hint was longer than is believed
}

// State returns c's state.
func (c *Cooldown) State() State {
	return State{c.until, c.sure, c.since, c.source, c.inVain, c.slack, c.capped}
}

// A Refusal is what is known of one.
type Refusal struct {
	Sent   meter.Instant // when the refused request was sent
	Hint   Hint          // zero: none
	Guess  time.Duration // the pause to try without a hint
	Most   time.Duration // the longest hint that is believed without support
	Fresh  bool          // this client is new, so that many others may have been refused at the same time
	Spread float64       // random, uniform in [0,1), so that clients which were refused together do not come back together
}

// Refused learns from a refusal. news says that it is not one more answer of the same burst.
func (c *Cooldown) Refused(now meter.Instant, r Refusal) (news bool) {
	news = c.News(r.Sent)
	c.trip = Slowest(c.trip, now.Sub(r.Sent))
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
	if c.inVain == 0 {
		c.began = now
	}
	wait := c.length(now, r)
	c.since, c.asked, c.served, c.source = now, c.until, false, said.Source
	c.question.Open()
	c.until = max(c.until, now.Add(wait))
	if c.inVain == 0 {
		c.ended = c.until
	}
	return true
}

// News reports whether the refusal of a request sent at sent is not one more of a burst that
// was heard of already.
func (c *Cooldown) News(sent meter.Instant) bool {
	return c == nil || c.since == 0 || sent > c.since
}

// prolong obeys the hint of one more answer of the same burst.
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

// repeats reports whether a hint ends when the one before it did. The refusals must be some
// time apart: then two hints agree only if the server has one instant in mind.
func (c *Cooldown) repeats(now meter.Instant, said Hint) bool {
	last := c.told
	if c.told = 0; said.Known {
		c.told = now.Add(said.Wait)
	}
	return said.Known && last != 0 && now.Sub(c.since) > 2*MostSlack && c.told.Sub(last).Abs() <= MostSlack
}

// length is the pause for a refusal that is news, heard now.
func (c *Cooldown) length(now meter.Instant, r Refusal) time.Duration {
	said, longest := r.Hint, LongestGuess(now.Sub(c.began))
	if c.capped = false; !said.Known {
		wait := time.Duration(float64(r.Guess) * (0.75 + 0.5*r.Spread))
		if c.inVain > 0 {
			wait = min(wait, longest)
		}
		return wait
	}
	wait, capped := said.Believed(r.Most)
	if c.capped = capped; capped {
		return wait
	}
	wait += c.slack
	if c.inVain > 0 {
		wait += min(growth<<min(c.inVain, growths), mostSpread, longest)
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

// InVain is how many requests in a row will have asked in vain if the one sent at sent is
// refused.
func (c *Cooldown) InVain(sent meter.Instant) int {
	if c.since == 0 || c.served || sent <= c.since {
		return 0
	}
	return c.inVain + 1
}

// Served notes an answer that was no refusal to a request sent at sent. If it asked whether the
// pause before this one was over, and another request was refused while it was served, this pause
// goes on, but its refusal is the first of a row.
func (c *Cooldown) Served(sent meter.Instant) {
	if c == nil || sent < c.asked || c.since == 0 || c.served || sent < c.until && c.inVain == 0 {
		return
	}
	if c.inVain > 0 && !c.capped {
		c.slack = min(MostSlack, max(c.slack, sent.Sub(c.ended)))
	} else {
		c.slack = c.slack * slackKept / 10
	}
	if sent < c.until {
		c.inVain, c.began, c.ended = 0, c.since, c.until
		return
	}
	c.served, c.capped = true, false
	c.question.Close()
}

// Lift ends the pause at once. The slack of the server's hints is kept.
func (c *Cooldown) Lift() {
	if c != nil {
		*c = Cooldown{slack: c.slack, trip: c.trip, question: Question{asks: c.question.asks, again: c.question.again}}
	}
}

// Recall makes c pause until until, but for no longer than most: an earlier run of the program
// knew of that pause. Then one request asks whether it is over, as after any pause.
func (c *Cooldown) Recall(now, until meter.Instant, most time.Duration, source string) {
	if until = min(until, now.Add(most)); until > c.until && until > now {
		c.until, c.since, c.began, c.source = until, now, now, source
		c.question.Open()
	}
}

// Doubt makes one request ask now whether a pause that other processes keep applies here, too.
func (c *Cooldown) Doubt(now meter.Instant) {
	c.until, c.since, c.began, c.ended, c.served = now, now, now, now, false
	c.question.Open()
}

// Part ends c's pause and returns a copy of it, for a part of the requests that it was for.
// A request that asks at the moment goes on asking for c.
func (c *Cooldown) Part() *Cooldown {
	part := *c
	part.question.asks = 0
	c.Lift()
	return &part
}
