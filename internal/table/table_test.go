package table

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// account is idle when nothing is spent.
type account struct{ spent int }

func accounts(size int) *Table[*account] {
	return New(size, func(string) *account { return new(account) },
		func(a **account, _ time.Time) bool { return (*a).spent == 0 })
}

func TestAcquireFindsTheSameEntry(t *testing.T) {
	tab := accounts(10)
	a := tab.Acquire("a", time.Now())
	if b := tab.Acquire("a", time.Now()); a != b {
		t.Error("two entries of one key")
	}
	if tab.Find("a") != a || tab.Find("b") != nil {
		t.Error("Find does not tell what is there")
	}
	if tab.Len() != 1 {
		t.Errorf("Len = %d, want 1", tab.Len())
	}
}

func TestSpentEntriesAreNeverDropped(t *testing.T) {
	tab := accounts(100)
	for i := range 100 {
		e := tab.Acquire(fmt.Sprint("spent", i), time.Now())
		e.Value.spent = i + 1
		e.Release()
	}
	for i := range 1000 {
		e := tab.Acquire(fmt.Sprint("new", i), time.Now())
		if !e.Overflow {
			t.Fatalf("newcomer %d took the place of something spent", i)
		}
		e.Release()
	}
	for i := range 100 {
		e := tab.Find(fmt.Sprint("spent", i))
		if e == nil || e.Value.spent != i+1 {
			t.Fatalf("entry %d was forgotten", i)
		}
		e.Release()
	}
}

func TestHeldEntriesAreNeverDropped(t *testing.T) {
	tab := accounts(4)
	var held []*Entry[*account]
	for i := range 4 {
		held = append(held, tab.Acquire(fmt.Sprint(i), time.Now()))
	}
	if e := tab.Acquire("x", time.Now()); !e.Overflow {
		t.Error("a held entry was dropped")
	}
	held[2].Release()
	e := tab.Acquire("y", time.Now())
	if e.Overflow || tab.Find("2") != nil {
		t.Error("an idle, free entry did not make room")
	}
}

func TestIdleEntriesMakeRoom(t *testing.T) {
	tab := accounts(1000)
	for i := range 1_000_000 {
		e := tab.Acquire(fmt.Sprint(i), time.Now())
		if e.Overflow {
			t.Fatalf("key %d found no room among idle entries", i)
		}
		e.Release()
	}
	if n := tab.Len(); n > 1000 {
		t.Errorf("Len = %d, want at most 1000", n)
	}
}

// An idle entry makes room however many come once and no more.
func TestOldEntriesMakeRoomForNewcomers(t *testing.T) {
	const size = 10
	tab := accounts(size)
	for i := range 3 * size {
		tab.Acquire(fmt.Sprint(i), time.Now()).Release()
	}
	for i := range size {
		if tab.Find(fmt.Sprint(i)) != nil {
			t.Errorf("entry %d is still there after %d others", i, 3*size-i)
		}
	}
}

// TestARowOfBusyEntriesTurnsNobodyAway: a newcomer finds the idle entries behind
// it, if few had to look for any before.
func TestARowOfBusyEntriesTurnsNobodyAway(t *testing.T) {
	tab := accounts(200)
	for i := range 200 {
		e := tab.Acquire(fmt.Sprint(i), time.Now())
		if i < 150 {
			e.Value.spent = 1
		}
		e.Release()
	}
	for i := range 1000 {
		e := tab.Acquire(fmt.Sprint("new", i), time.Now())
		if e.Overflow {
			t.Fatalf("newcomer %d found no room among 50 idle entries of 200", i)
		}
		e.Release()
	}
}

// TestLooksAreBounded: where all are busy, newcomers do not look at all of them.
func TestLooksAreBounded(t *testing.T) {
	looks := 0
	tab := New(4000, func(string) bool { return false }, func(busy *bool, _ time.Time) bool { looks++; return !*busy })
	for i := range 4000 {
		e := tab.Acquire(fmt.Sprint(i), time.Now())
		e.Value = true
		e.Release()
	}
	for i := range 10000 {
		was := looks
		tab.Acquire(fmt.Sprint("new", i), time.Now()).Release()
		if most := looks - was; most > mostLooks+1 { // one at the overflow
			t.Fatalf("newcomer %d looked at %d entries, want at most %d", i, most, mostLooks)
		}
	}
	if most := mostLooks + 10000*(lookAt+1); looks > most {
		t.Errorf("%d entries were looked at for 10000 newcomers, want at most %d", looks, most)
	}
}

func TestShardedBound(t *testing.T) {
	tab := accounts(shardFrom)
	for i := range 100_000 {
		e := tab.Acquire(fmt.Sprint(i), time.Now())
		e.Value.spent = 1
		e.Release()
	}
	if n := tab.Len(); n > shardFrom {
		t.Errorf("Len = %d, want at most %d", n, shardFrom)
	}
}

// TestAFullTableKeepsAll: as many keys as are kept stay, however they are spread,
// and each is made once.
func TestAFullTableKeepsAll(t *testing.T) {
	const size = 4 * shardFrom
	made := 0
	tab := New(size, func(string) int { made++; return 0 }, func(*int, time.Time) bool { return true })
	for range 3 {
		for i := range size {
			tab.Acquire(fmt.Sprint(i), time.Now()).Release()
		}
	}
	if made != size+1 { // the overflow
		t.Errorf("%d values were made for %d keys and the overflow", made, size)
	}
}

// TestIdleEntriesOfOtherShardsMakeRoom: where a newcomer's own shard is busy,
// what is idle elsewhere goes.
func TestIdleEntriesOfOtherShardsMakeRoom(t *testing.T) {
	tab := accounts(shardFrom)
	busy := &tab.shards[0]
	for i := range shardFrom {
		key := fmt.Sprint(i)
		e := tab.Acquire(key, time.Now())
		if tab.shardOf(tab.hash(key)) == busy {
			e.Value.spent = 1
		}
		e.Release()
	}
	for i, came := 0, 0; came < 100; i++ {
		key := fmt.Sprint("new", i)
		if tab.shardOf(tab.hash(key)) != busy {
			continue
		}
		came++
		e := tab.Acquire(key, time.Now())
		if e.Overflow {
			t.Fatalf("newcomer %d found no room among %d entries, nearly all idle", came, tab.Len())
		}
		e.Value.spent = 1
		e.Release()
	}
	if n := tab.Len(); n > shardFrom {
		t.Errorf("Len = %d, want at most %d", n, shardFrom)
	}
}

func TestOverflowIsNotSpentTwice(t *testing.T) {
	tab := accounts(1)
	first := tab.Acquire("first", time.Now())
	first.Value.spent = 1
	o := tab.Acquire("second", time.Now())
	if !o.Overflow {
		t.Fatal("no room, yet an entry of its own")
	}
	o.Value.spent = 1
	o.Release()
	first.Value.spent = 0
	first.Release()
	if e := tab.Acquire("second", time.Now()); !e.Overflow {
		t.Error("second spends anew what it spent from the overflow")
	} else {
		e.Value.spent = 0
		e.Release()
	}
	if e := tab.Acquire("second", time.Now()); e.Overflow {
		t.Error("second stays in the overflow after that was idle")
	}
}

func TestResize(t *testing.T) {
	tab := accounts(2)
	for i := range 3 {
		e := tab.Acquire(fmt.Sprint(i), time.Now())
		e.Value.spent = 1
	}
	tab.Resize(3)
	if e := tab.Acquire("new", time.Now()); e.Overflow {
		t.Error("a larger table has no room")
	}
}

func TestResizeOfAnEmptyTableIsExact(t *testing.T) {
	tab := accounts(shardFrom)
	tab.Resize(1)
	tab.Acquire("a", time.Now()).Value.spent = 1
	for i := range 50 {
		if e := tab.Acquire(fmt.Sprint(i), time.Now()); !e.Overflow {
			t.Fatalf("key %d has a place beside the only one", i)
		}
	}
}

func TestAllHoldsWhatItShows(t *testing.T) {
	tab := accounts(8)
	for i := range 8 {
		tab.Acquire(fmt.Sprint(i), time.Now()).Release()
	}
	seen := 0
	tab.All(func(e *Entry[*account]) {
		seen++
		if e.Overflow {
			return
		}
		for i := range 20 { // insertions during the visit must not drop it
			tab.Acquire(fmt.Sprint(e.Key, i), time.Now()).Release()
		}
		if f := tab.Find(e.Key); f != e {
			t.Errorf("%s was dropped while shown", e.Key)
		} else {
			f.Release()
		}
	})
	if seen < 9 {
		t.Errorf("All showed %d entries, want 8 and the overflow", seen)
	}
}

func TestEachShowsAllThatStaysAndHoldsNone(t *testing.T) {
	tab := accounts(8)
	for i := range 8 {
		tab.Acquire(fmt.Sprint(i), time.Now()).Release()
	}
	seen := map[string]bool{}
	tab.Each(func(e *Entry[*account]) {
		seen[e.Key] = true
		if n := e.refs.Load(); n != 0 && !e.Overflow {
			t.Errorf("%s has %d holders while shown, want none", e.Key, n)
		}
	})
	for i := range 8 {
		if !seen[fmt.Sprint(i)] {
			t.Errorf("Each did not show entry %d", i)
		}
	}
	if len(seen) != 9 {
		t.Errorf("Each showed %d entries, want 8 and the overflow", len(seen))
	}
}

func TestConcurrentUse(t *testing.T) {
	tab := New(64, func(string) int { return 0 }, func(*int, time.Time) bool { return true })
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Go(func() {
			for i := range 2000 {
				e := tab.Acquire(fmt.Sprint((g*7+i)%200), time.Now())
				e.Release()
			}
		})
	}
	wg.Wait()
	if n := tab.Len(); n > 64 {
		t.Errorf("Len = %d, want at most 64", n)
	}
}

// An entry that is held is the one in the table, also if it was found without
// the lock while others were pushing it out.
func TestHeldIsInTheTable(t *testing.T) {
	tab := New(2, func(string) int { return 0 }, func(*int, time.Time) bool { return true })
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 5000 {
				e := tab.Acquire(fmt.Sprint((g+i/5)%3), time.Time{})
				if !e.Overflow {
					f := tab.Find(e.Key)
					if f != e {
						t.Errorf("%q is held and not in the table", e.Key)
						return
					}
					f.Release()
				}
				e.Release()
			}
		})
	}
	wg.Wait()
	for _, key := range []string{"x", "y", "z"} {
		e := tab.Acquire(key, time.Time{})
		if e.Overflow {
			t.Errorf("%q has no room although nobody holds anything", key)
		}
		e.Release()
	}
}

// Entries that stay are found without the lock at any time, while others come, go, take
// one another's slots, and make the index grow.
func TestEntriesThatStayAreFound(t *testing.T) {
	const stay, size, comers = 64, 512, 5000
	tab := New(size, func(string) int { return 0 }, func(*int, time.Time) bool { return true })
	var held [stay]*Entry[int]
	missed := func() (n int) {
		for i, e := range held {
			if e != nil && tab.Glance(fmt.Sprint("stays", i)) != e {
				n++
			}
		}
		return n
	}
	for i := range comers {
		if i%8 == 0 && i/8 < stay {
			held[i/8] = tab.Acquire(fmt.Sprint("stays", i/8), time.Time{})
		}
		tab.Acquire(fmt.Sprint("comes", i), time.Time{}).Release()
		if n := missed(); n > 0 {
			t.Fatalf("%d are not found after %d have come", n, i+1)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range comers {
			tab.Acquire(fmt.Sprint("later", i), time.Time{}).Release()
		}
	}()
	for beside := true; beside; {
		select {
		case <-done:
			beside = false
		default:
		}
		if n := missed(); n > 0 {
			t.Fatalf("%d are not found beside one who adds", n)
		}
	}
}

func BenchmarkAcquire(b *testing.B) {
	tab := accounts(100000)
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		tab.Acquire("api.example.com", now).Release()
	}
}

// What was dropped is not kept, however many come and go, and is found no more.
func TestDroppedEntriesAreNotKept(t *testing.T) {
	tab := New(100, func(string) int { return 0 }, func(*int, time.Time) bool { return true })
	for i := range 10000 {
		tab.Acquire(fmt.Sprint(i), time.Time{}).Release()
	}
	there, x := 0, tab.shards[0].index.Load()
	for i := range x.places {
		if x.places[i].Load() != nil {
			there++
		}
	}
	if there != 100 || len(x.slots) > 512 {
		t.Errorf("%d entries in %d slots, want 100", there, len(x.slots))
	}
	found := 0
	for i := range 10000 {
		if e := tab.Seen(fmt.Sprint(i)); e != nil {
			found++
			e.Release()
		}
	}
	if found != 100 || tab.Seen("x") != nil {
		t.Errorf("%d of 10000 are found, want 100", found)
	}
}

// An entry that is used between the question whether it is idle and its end stays:
// held and released, or visited by one who does not hold it.
func TestEntriesUsedMeanwhileAreNotDropped(t *testing.T) {
	for name, use := range map[string]func(e *Entry[int]) bool{
		"held":    func(e *Entry[int]) bool { ok := e.Hold(); e.Release(); return ok },
		"visited": (*Entry[int]).Visit,
	} {
		var e *Entry[int]
		asked := 0
		tab := New(1, func(string) int { return 0 }, func(*int, time.Time) bool {
			if asked++; asked == 1 && !use(e) {
				t.Errorf("%s: it was gone already", name)
			}
			return asked == 1
		})
		e = tab.Acquire("a", time.Time{})
		e.Release()
		for asked == 0 {
			tab.Acquire("b", time.Time{}).Release()
		}
		if tab.Glance("a") != e || !e.Visit() {
			t.Errorf("%s: dropped", name)
		}
	}
}

// Whoever looks again and again sees which entries were used meanwhile, however many
// look: to look, and to find, is not to use.
func TestUsesTellWhatWasUsed(t *testing.T) {
	tab := accounts(10)
	e := tab.Acquire("a", time.Now())
	last, held := e.Uses()
	if !held {
		t.Error("nobody is said to hold it")
	}
	e.Release()
	for _, test := range []struct {
		name string
		do   func()
		want bool
	}{
		{"nothing", func() {}, false},
		{"found", func() { tab.Find("a").Release() }, false},
		{"one of all", func() { tab.All(func(*Entry[*account]) {}) }, false},
		{"looked at", func() { tab.Each(func(e *Entry[*account]) { e.Uses() }) }, false},
		{"acquired", func() { tab.Acquire("a", time.Now()).Release() }, true},
		{"acquired, and looked at by another", func() { tab.Seen("a").Release(); e.Uses() }, true},
		{"visited", func() { tab.Glance("a").Visit() }, true},
		{"nothing more", func() {}, false},
	} {
		test.do()
		n, held := e.Uses()
		if got := n != last; got != test.want || held {
			t.Errorf("%s: used: %t, held: %t", test.name, got, held)
		}
		last = n
	}
}

// An entry that was dropped and made anew is not taken for one that was not used
// meanwhile, however often it was looked at before.
func TestUsesTellWhatWasMadeAnew(t *testing.T) {
	tab := New(1, func(string) int { return 0 }, func(*int, time.Time) bool { return true })
	for looks := range 100 {
		e := tab.Acquire("a", time.Time{})
		last, _ := e.Uses()
		for range looks {
			tab.Glance("a").Visit()
			last, _ = e.Uses()
		}
		e.Release()
		for tab.Glance("a") != nil {
			tab.Acquire("b", time.Time{}).Release()
		}
		e = tab.Acquire("a", time.Time{})
		if n, _ := e.Uses(); n == last {
			t.Errorf("after %d looks it has the number that it had before it was dropped", looks)
		}
		e.Release()
	}
}
