package attribution

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	sureRefusals = 3 // of one kind, and
	sureOthers   = 8 // accepted of others meanwhile: then it has limits of its own

	// BothWithin is how long ago another kind may have been refused, or served, for
	// that to tell of the one that is refused now.
	BothWithin = time.Minute
)

// A Blame finds out whether refusals belong to one kind of request alone, that which
// was refused last: a guess after the first, if others were served, and known when it
// was refused several times while others, sent after that, were accepted. The zero Blame
// has seen no refusal.
type Blame struct {
	sent     meter.Instant // of the last refusal but those of the same kind; zero: there was none
	refusals int
	others   int
	guessed  bool          // no refusal of it said how long to stay away, unless another kind may ask
	common   meter.Instant // when kinds were refused that one limit binds; zero: none were
}

// Another takes in that another kind is refused than the last time, by a request sent
// at sent; apart says that it is known to have limits of its own. It reports whether one
// limit binds both.
func (b *Blame) Another(sent meter.Instant, apart bool) (both bool) {
	both = b.sent != 0 && !apart && time.Duration(sent-b.sent) < BothWithin
	*b = Blame{sent: sent, guessed: true, common: b.common}
	if both {
		b.common = sent
	}
	return both
}

// Refused takes in a refusal of the kind, by a request sent at sent. guessed is whether
// the server said nothing of how long to stay away, so that it is for weir to choose
// who does, or said so long that one request of another kind is to ask; served, whether
// another kind was served within BothWithin, or one is to ask. It reports whether the kind
// has limits of its own.
func (b *Blame) Refused(sent meter.Instant, guessed, served bool) (own bool) {
	b.refusals++
	b.guessed = b.guessed && guessed
	return b.refusals == 1 && served && b.Alone(sent) || b.refusals >= sureRefusals && b.others >= sureOthers
}

// Served notes that a request of another kind was served that was sent at sent.
func (b *Blame) Served(sent meter.Instant) {
	if sent > b.sent {
		b.others++
	}
}

// Alone reports whether it is for weir to choose who stays away, and nothing tells that
// kinds have limits in common.
func (b *Blame) Alone(now meter.Instant) bool {
	return b.guessed && (b.common == 0 || time.Duration(now-b.common) > Remembered)
}
