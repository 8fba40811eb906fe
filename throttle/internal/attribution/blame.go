package attribution

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// BothWithin is how long ago another kind may have been refused or served to be evidence about
// the kind that is refused now: most limits are per minute or shorter.
const BothWithin = time.Minute

// A Blame guesses whether refusals are for one kind of request alone, the kind that was refused
// last: after the first refusal they are, if other kinds were served, until another kind is
// refused, too. What is more than a guess is said by the Answers of each kind. The zero Blame has
// seen no refusal.
type Blame struct {
	sent    meter.Instant // when the first request of the kind was sent that was refused; zero: none was
	refused bool          // the kind was
	guessed bool          // each refusal of it was guessed, in the sense of Refused
	common  meter.Instant // when kinds that share a limit were refused last; zero: none were
}

// Another notes that a request of another kind than the last time is refused, which was sent
// at sent. apart says that this kind is known to have limits of its own. Another reports
// whether one limit applies to both kinds.
func (b *Blame) Another(sent meter.Instant, apart bool) (both bool) {
	both = b.sent != 0 && !apart && time.Duration(sent-b.sent) < BothWithin
	*b = Blame{sent: sent, guessed: true, common: b.common}
	if both {
		b.common = sent
	}
	return both
}

// Refused notes a refusal of the kind, for a request sent at sent. guessed says that weir may
// choose which kinds wait: the server did not say how long to stay away, or it said so long a
// time that a request of another kind is sent to ask. served says that another kind was served
// within BothWithin, or is sent to ask. Refused reports whether the kind has limits of its
// own, for a guess.
func (b *Blame) Refused(sent meter.Instant, guessed, served bool) (own bool) {
	again := b.refused
	b.refused, b.guessed = true, b.guessed && guessed
	return !again && served && b.Alone(sent)
}

// Alone reports whether weir may choose which kinds wait, and no evidence says that kinds
// share limits.
func (b *Blame) Alone(now meter.Instant) bool {
	return b.guessed && (b.common == 0 || time.Duration(now-b.common) > Remembered)
}
