package refill

import "time"

const (
	// fillsAfter is how many answers in a row have to agree on a rate, and fillsFrom from which
	// time on, which has to be fillsGrow times the shortest of theirs. A window's reset comes
	// nearer while units are spent, and a log's stays as far off, so hardly three of their answers
	// agree.
	fillsAfter = 6
	fillsFrom  = 8 * time.Second
	fillsGrow  = 4

	// mostUnlike is after how many answers that do not agree nobody looks any more.
	mostUnlike = 8
)

// A Filling finds out whether the resets that a server states are when a bucket is full, if it
// does not say what they mean: then each is as far off as units are missing, at one rate. The
// zero Filling has heard nothing.
type Filling struct {
	slowest, fastest float64       // the bounds of that rate, in units per second, by the answers in a row that agree
	least, most      time.Duration // until the nearest and the farthest of their resets
	row, unlike      uint8
}

// Heard learns from an answer by which lack units are missing, and which says that the reset comes
// after so long. Both are whole numbers, cut or rounded up. It reports by how many units the answer
// contradicts the one before, if the reset is when a bucket is full.
func (f *Filling) Heard(lack float64, reset time.Duration) (off float64) {
	if reset <= time.Second || lack < 1 || f.unlike >= mostUnlike {
		return 0
	}
	stated := reset.Seconds()
	soonest, latest := stated-1, stated+1
	slowest, fastest := (lack-1)/latest, lack/soonest
	if f.row > 0 && (slowest > f.fastest || fastest < f.slowest) {
		off = max(lack-1-f.fastest*latest, f.slowest*soonest-lack)
		f.unlike++
		f.row = 0
	}
	if f.row == 0 {
		*f = Filling{slowest, fastest, reset, reset, 1, f.unlike}
		return off
	}
	f.slowest, f.fastest = max(f.slowest, slowest), min(f.fastest, fastest)
	f.least, f.most, f.row = min(f.least, reset), max(f.most, reset), min(f.row+1, fillsAfter)
	return 0
}

// Rate is at which rate units come back at least, per second; zero: the resets are not known to be
// when it is full.
func (f *Filling) Rate() float64 {
	if f.row < fillsAfter || f.most < fillsFrom || f.most < fillsGrow*f.least {
		return 0
	}
	return f.slowest
}
