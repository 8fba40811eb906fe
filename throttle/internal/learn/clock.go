package learn

import "time"

// A wall is what is known of a server's clock: its Unix time less our Instant
// lies in [lo, hi]. Each Date header says that the server's clock stood within
// one second at some instant between send and receipt; the sections of many
// such intervals narrow to some milliseconds.
type wall struct {
	lo, hi Instant
	known  bool
}

// most is how far an offset may lie: no date of the next thousand years
// overflows, and no other is believed.
const mostDate = int64(9e9)

// date takes in a Date header, in Unix seconds.
func (w *wall) date(unix int64, sent, now Instant) {
	if unix <= 0 || unix > mostDate || now < sent {
		return
	}
	d := Instant(unix) * Instant(time.Second)
	lo, hi := d-now, d+Instant(time.Second)-sent
	if w.known && lo <= w.hi && hi >= w.lo {
		w.lo, w.hi = max(w.lo, lo), min(w.hi, hi)
		return
	}
	w.lo, w.hi, w.known = lo, hi, true // the first, or the clock was set
}

// doubt is by how much a time of the server's clock may be off.
func (w *wall) doubt() Instant { return (w.hi - w.lo) / 2 }
