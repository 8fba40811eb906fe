package fleet

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/store"
)

// What processes sent while the store was gone is known to it afterwards: as what
// has not drained of a bucket, and as what counts in a window, of the clock too.
func TestFleetRepaysEveryKind(t *testing.T) {
	const members = 8
	for budget, most := range map[string]int{
		"20/s bucket 100":      100 + 60*20 + members,
		"300/m align UTC":      300,
		"600/m burst 600":      600 + members,
		"60/m":                 60 + members,
		"60/m, 5000/d burst 1": 60 + members,
	} {
		t.Run(budget, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := farstore.New(time.Millisecond)
				var out farstore.Sends
				var wgs []*sync.WaitGroup
				var count atomic.Int64
				for range members {
					f := testFleet(t, s, Config{Members: members})
					wgs = append(wgs, load(f, on("k", rates(budget)...), 4, 59*time.Second, &out, &count))
				}
				for range 3 {
					time.Sleep(5 * time.Second)
					s.Fail(errors.New("connection refused"), false)
					time.Sleep(10 * time.Second)
					s.Fail(nil, false)
				}
				for _, wg := range wgs {
					wg.Wait()
				}
				if n := len(out.At); n > most {
					t.Errorf("%d requests in a minute with three outages, want at most %d", n, most)
				}
			})
		})
	}
}

// What is owed is dated by when it went, in as many parts as a booking has room for.
func TestFleetDatesWhatItOwes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		us := func(ago time.Duration) int64 { return now.Add(-ago).UnixMicro() }
		log := store.Limit{ID: "l", Kind: store.LogLimit, Size: 64, Per: time.Minute}
		day := store.Limit{ID: "d", Kind: store.CalendarLimit, Size: 100, Per: time.Hour, Ends: now.Add(time.Second)}
		l := store.Ledger{Gen: 1, At: now.UnixMicro(), Expires: us(-time.Hour), Accounts: []store.Account{
			{Kind: store.CalendarLimit, ID: "d", Level: 50, Ends: us(-time.Second)}, {Kind: store.LogLimit, ID: "l"}}}
		for i := range 40 {
			l.Accounts[1].Entries = append(l.Accounts[1].Entries, store.Entry{At: us(time.Duration(39-i) * time.Second), Units: 1})
		}
		d := store.Draw{Key: "k", Limits: []store.Limit{log, day}, Units: []store.UnitCost{{Unit: "requests"}}}
		if !owe(&d, l, now, 5*time.Minute, 4) || d.Units[0].First != 0 {
			t.Fatalf("owes %+v", d)
		}
		var units int64
		for i, m := range d.Moved {
			units += m.Units[0]
			if i > 0 && m.Age >= d.Moved[i-1].Age && m.Age < time.Minute {
				t.Errorf("part %d is %v old, the one before %v", i, m.Age, d.Moved[i-1].Age)
			}
		}
		if last := d.Moved[len(d.Moved)-1]; units != 50 || last.Units[0] != 10 || last.Age != 5*time.Minute {
			t.Errorf("owes %s, want 50 in all, 10 of them from before the log's window", fmt.Sprint(d.Moved))
		}
		if err := d.Validate(); err != nil {
			t.Error(err)
		}
	})
}
