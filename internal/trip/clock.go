package trip

import "time"

// Clock notes what time it is, so that layers further down need not read the clock. Times are
// counted from Table.Epoch, as each sum or difference of two time.Time takes 50 instructions.
// A layer that waits or calls a user's code afterwards calls Unread.
func (t *Trip) Clock(since time.Duration) { t.clock, t.departed, t.astray = since+1, false, false }

// Unread notes that nobody knows what time it is.
func (t *Trip) Unread() { t.clock, t.departed = 0, false }

// Since is the time since Table.Epoch: what Clock was given, or else the clock's, which is then
// kept for later calls and for Depart.
func (t *Trip) Since() time.Duration {
	if t.clock == 0 {
		t.read()
	}
	return t.clock - 1
}

func (t *Trip) read() {
	now, epoch := time.Now(), t.Table().Epoch
	t.clock, t.astray = now.Sub(epoch)+1, Monotonic(now) != Monotonic(epoch)
}

// Reading is Since as a time.
func (t *Trip) Reading() time.Time { return t.Table().Epoch.Add(t.Since()) }

// Steady reports that the time that Since returned last is of the same clock as Table.Epoch:
// not if only one of them is of a testing/synctest bubble.
func (t *Trip) Steady() bool { return !t.astray }

// Monotonic reports whether a time was read from the monotonic clock. Those of a testing/synctest
// bubble were not.
func Monotonic(now time.Time) bool { return now != now.Round(0) }

// Depart is called by Wire when it hands an attempt to the base. It returns
// the time, as Since does; Departed and OnWire return it later.
func (t *Trip) Depart() time.Duration {
	t.departed = true
	return t.Since()
}

// Departed is when this attempt was handed to the base, since Table.Epoch; ok is false if it
// was not.
func (t *Trip) Departed() (since time.Duration, ok bool) { return t.clock - 1, t.departed }

// OnWire is Departed as a time; zero if the attempt was not handed to the base.
func (t *Trip) OnWire() time.Time {
	if !t.departed {
		return time.Time{}
	}
	return t.Table().Epoch.Add(t.clock - 1)
}

// Queued is called by Wire when an attempt that was handed to the base had to wait there
// for a free connection, for d. OnWire is then that much later. If the attempt ended
// without one, began is false, and OnWire is zero.
func (t *Trip) Queued(d time.Duration, began bool) {
	t.clock += d
	t.departed = t.departed && began
}
