package fleet

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
)

// What was booked between two times at which a process heard the count is taken to be
// booked at the later one, however many there were.
func TestPastIsNeverAheadOfWhatWasBooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(farstore.New(0), Config{Members: 1})
		defer f.Close()
		keys, tally := tallied(Unbounded)
		if _, _, known := tally.Past(time.Second); known {
			t.Error("known before it was asked for")
		}
		const every, units = 10 * time.Millisecond, 1000
		for i := range units {
			if _, r := book(f, keys); r != nil {
				t.Fatal(r)
			}
			if n, was := tally.Before(time.Second), int64(i+1)-int64(time.Second/every); n > max(0, was) || n < was-8 {
				t.Fatalf("after %d: %d a second before, there were %d", i+1, n, was)
			}
			ago := 2 * time.Second
			n, next, known := tally.Past(ago)
			was := int64(i+1) - int64(ago/every) // some microseconds ago
			if known && was <= 0 || !known && was > 3 || known && (n > was || n < was-8 || next <= 0 || next > 8*every) {
				t.Fatalf("after %d: %d, next in %v, %v; there were %d", i+1, n, next, known, was)
			}
			time.Sleep(every)
		}
		time.Sleep(time.Minute)
		if n, next, known := tally.Past(2 * time.Second); n != units || next != 0 || !known {
			t.Errorf("at the end: %d, next in %v, %v", n, next, known)
		}
	})
}
