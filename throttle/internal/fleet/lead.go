package fleet

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// The processes of a fleet draw in turns from a limit that is short: a process that has drawn
// more than an equal part of what all drew waits for a turn, so that others go first.

const (
	// mostTurn is the longest turn, and turnPart the part of a window that a turn is at most.
	// Others may hear of a new window up to a second later, because resets are stated in
	// whole seconds, and a little more.
	mostTurn = 1250 * time.Millisecond
	turnPart = 4
	// mostTurns is how many turns a process waits that is far ahead, so that others go first
	// which are less far ahead. It waits longer, a turn for each unit that it is ahead, while
	// others that are not ahead have too little: with 2 then, too, one process of sixteen drew up
	// to 2.4 times its part of a bucket that holds 26 units per 19 s.
	mostTurns = 2
	// mostLead is how far ahead or behind a process may be, in equal parts of the
	// limit. More, such as what it drew while it was alone or did not need, is forgotten.
	// With 2, processes that always heard last of a new window never made up for that.
	mostLead = 8
	// rounded is how many units more than its share a process may take: shares are rounded
	// to the nearest unit. With 1, processes that came first left too little for the last
	// one in each window.
	rounded = 0.5
)

// A Lead is how far a process is ahead of the others, and how long it waits because of that.
// The zero Lead is that of a process which has drawn nothing. Its owner guards it.
type Lead struct {
	lead   float64       // units that the store counts of this process beyond an equal part
	own    int64         // units of this process up to which lead was computed
	count  int64         // units of all, likewise
	open   float64       // units that this process drew and the store has not counted yet
	held   meter.Instant // since when it waits for a turn; zero: it does not
	others int64         // what Wait was told of others then
	quiet  int           // turns in a row in which that stayed the same
	rest   float64       // units that it may still draw after the last wait for those that lack
	lacks  int64         // what Wait was told of them last
	heard  meter.Instant // when that last grew
	leave  float64       // by how much it may be ahead without a wait, until Lacks
	short  meter.Instant // when there was last too little; zero: never
}

// Drew notes that this process drew units that the store is about to count or, if they are
// negative, that it gave them back and the store did not count them.
func (l *Lead) Drew(units float64) {
	l.open, l.rest = max(0, l.open+units), max(0, l.rest-units)
}

// Counted notes that the store has counted all that it will of what this process drew.
func (l *Lead) Counted() { l.open = 0 }

// Forget sets the lead to zero, because it is not known what the others draw.
func (l *Lead) Forget() { l.lead, l.open = 0, 0 }

// Ahead is how many units this process is ahead of an equal part, in a fleet of k processes
// which together drew n units of a limit of that size, and this one own of these. All processes
// go by what the store counts, so their leads are zero together. If each counted by itself, and
// missed what the store counts for it, all would believe to be behind: those that came first would
// take more than their part, and the last ones nothing.
func (l *Lead) Ahead(own, n int64, k, size float64) float64 {
	most := mostLead * max(1, size/k)
	more := float64(own - l.own)
	l.lead += more - float64(n-l.count)/k
	l.lead = min(max(l.lead, -most), most)
	l.open = min(max(0, l.open-max(0, more)), most)
	l.own, l.count = own, n
	return min(l.lead+l.open, most)
}

// Wait is how long this process has to wait until others had their turn. ahead is by how many
// units it would be ahead beyond its share of what is left. The wait is longer the larger
// ahead is, and after it the process may take another share. Each time that the others neither
// drew nor waited for more meanwhile, the next wait is half as long. turn is how long a [Turn] is.
// others is how many units the other processes have drawn in all, and lacks how often those asked
// that had too little and are not ahead. They may lack because they believe in a smaller limit
// than this process, which would then draw all that they leave: so it waits for as many turns as
// it is units ahead, as long as they ask.
func (l *Lead) Wait(now meter.Instant, ahead, share float64, turn time.Duration, others, lacks int64) time.Duration {
	if lacks > l.lacks {
		l.lacks, l.heard = lacks, now
	}
	needed := l.heard != 0 && now.Sub(l.heard) <= turn
	switch {
	case ahead < rounded, needed && l.rest >= rounded, !needed && ahead-l.leave < rounded:
		return 0
	}
	others += lacks
	if l.held == 0 {
		if others > l.others {
			l.quiet = 0
		}
		l.held, l.others = now, others
	}
	turns := ahead + 1 - rounded
	if needed {
		turn = mostTurn
	} else {
		turn >>= min(l.quiet, 16)
		turns = min(turns-l.leave, mostTurns)
	}
	if d := l.held.Add(time.Duration(float64(turn) * turns)).Sub(now); d > 0 {
		return d
	}
	if l.quiet++; others > l.others {
		l.quiet = 0
	}
	l.held, l.leave, l.rest = 0, ahead+share, share
	return 0
}

// Lacks notes that the limit has too little left now. It ends the wait for a turn. How many
// turns were quiet is remembered: if the others need nothing any more, they need nothing after
// a shortage either. But if this process is alone, it does not hear what the others draw.
func (l *Lead) Lacks(now meter.Instant, alone bool) {
	if l.short, l.held, l.leave, l.rest = now, 0, 0, 0; alone {
		l.quiet = 0
	}
}

// Short is when the limit last had too little left; zero: never.
func (l *Lead) Short() meter.Instant { return l.short }

// AskPause is the time between two questions to the Store of a process that waits: so a fleet
// of that many members asks a hundred times a second at most, and each process ten times.
func AskPause(members int) time.Duration {
	return max(100*time.Millisecond, time.Duration(members)*10*time.Millisecond)
}

// Turn is how long a turn is of a limit with that window, in a fleet of that many members. It
// lasts at least until those that wait have asked: in shorter turns these seem to need nothing,
// and a process that takes the limit for a fast bucket draws all that there is.
func Turn(window time.Duration, members int) time.Duration {
	return min(max(window/turnPart, AskPause(members)), mostTurn)
}
