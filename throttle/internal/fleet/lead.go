package fleet

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A limit that is short is drawn from in turns: who has drawn more than an equal part
// of what all drew lets the others go first, for a while.

const (
	// mostTurn is how long at most, and turnPart the part of a window. The others may
	// hear of a new one up to a second later, as resets are told in whole seconds,
	// and a little.
	mostTurn = 1250 * time.Millisecond
	turnPart = 4
	// mostTurns is how many turns a process waits at most that is further ahead, so that
	// those go first that are less so.
	mostTurns = 2
	// mostLead is how far ahead or behind a process may be, in equal parts of the
	// limit. What it drew alone, or did not need, is forgotten beyond. With 2, processes
	// that always heard of a new window last never got what they had lacked.
	mostLead = 8
	// rounded is the part of a unit beyond its share that a process takes: as many round up
	// as down. With 1, those that came first left the last too little in each window.
	rounded = 0.5
)

// A Lead is how far a process is ahead of the others, and whose turn it is. The zero
// Lead is that of a process which has drawn nothing. Its owner guards it.
type Lead struct {
	lead   float64       // units that this process drew beyond an equal part
	count  int64         // when that was reckoned
	held   meter.Instant // since when others go first; zero: they do not
	others int64         // units that these had drawn then
	quiet  int           // times in a row that they drew none meanwhile
	leave  float64       // by how much it may be ahead until there is too little again
	short  meter.Instant // when there was last too little
}

// Drew takes in that this process drew units, or gave them back if they are negative.
func (l *Lead) Drew(units float64) { l.lead += units }

// Forget takes in that nobody knows what the others draw.
func (l *Lead) Forget() { l.lead = 0 }

// Ahead is how many units this process is ahead of the others of k, of a limit of that
// size that t counts.
func (l *Lead) Ahead(t *Tally, k, size float64) float64 {
	n, _ := t.Count()
	l.lead -= float64(n-l.count) / k
	l.count = n
	most := mostLead * max(1, size/k)
	l.lead = min(max(l.lead, -most), most)
	return l.lead
}

// Wait is how long one who is ahead, by more than half a unit beyond its share of what is
// left, has to wait until others had their turn, of a window that lasts span: longer if it
// is further ahead. Then it may have another share. Each time that nobody else took
// anything meanwhile it waits half as long. others is what these have drawn in all.
func (l *Lead) Wait(now meter.Instant, ahead, share float64, span time.Duration, others int64) time.Duration {
	if ahead-l.leave < rounded {
		return 0
	}
	if l.held == 0 {
		l.held, l.others = now, others
	}
	turn := min(span/turnPart, mostTurn) >> min(l.quiet, 16)
	turn = time.Duration(float64(turn) * min(ahead-l.leave+1-rounded, mostTurns))
	if d := l.held.Add(turn).Sub(now); d > 0 {
		return d
	}
	if l.quiet++; others > l.others {
		l.quiet = 0
	}
	l.held, l.leave = 0, ahead+share
	return 0
}

// Lacks notes that there is too little now.
func (l *Lead) Lacks(now meter.Instant) { l.short, l.held, l.leave, l.quiet = now, 0, 0, 0 }

// Short is when there was last too little; zero: never.
func (l *Lead) Short() meter.Instant { return l.short }

// AskPause is for how long a process that waits does not ask the Store: a fleet of so many
// asks a hundred times a second in all, and each process ten times at most.
func AskPause(members int) time.Duration {
	return max(100*time.Millisecond, time.Duration(members)*10*time.Millisecond)
}
