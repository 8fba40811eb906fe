package fleet

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/store"
)

// A mark is as high as the highest that any process raised it to, also where several do
// at once, and all hear of it.
func TestMarksAreOnlyRaised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		type process struct {
			f           *Fleet
			keys        []Key
			count, mark *Tally
		}
		var ps [3]process
		for i := range ps {
			keys, count := tallied(Unbounded)
			mark := count.Mark("m")
			keys[0].Tallies = append(keys[0].Tallies, mark)
			ps[i] = process{New(s, Config{Members: len(ps)}), keys, count, mark}
			defer ps[i].f.Close()
		}
		for _, step := range []struct {
			to   [3]int64 // zero: it does not raise it
			want int64
		}{{[3]int64{10}, 10}, {[3]int64{0, 7}, 10}, {[3]int64{20, 25, 22}, 25}, {[3]int64{30, 0, 30}, 30}} {
			for i, p := range ps {
				if step.to[i] > 0 {
					p.f.Raise("k", p.count, p.mark, step.to[i])
				}
			}
			time.Sleep(10 * time.Millisecond)
			for i, p := range ps {
				if _, r := book(p.f, p.keys); r != nil {
					t.Fatal(r)
				}
				if n, known := p.count.Raised(p.mark); !known || n != step.want {
					t.Errorf("%v: process %d knows of %d, %v", step, i, n, known)
				}
			}
		}
	})
}

// A mark under a key that is paused stays where it is, and is not asked for again and again.
func TestMarksArePausedWithTheirKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		f := New(s, Config{Members: 1})
		defer f.Close()
		keys, count := tallied(Unbounded)
		if _, r := book(f, keys); r != nil {
			t.Fatal(r)
		}
		f.Tell("k", store.News{Pause: time.Minute})
		time.Sleep(10 * time.Millisecond)
		before := s.Books()
		f.Raise("k", count, count.Mark("m"), 10)
		time.Sleep(10 * time.Second)
		if n := s.Books() - before; n > 2 {
			t.Errorf("asked %d times", n)
		}
	})
}

// A number that one process tells through a mark is known to those that ask, and only rises.
func TestANumberThatOneProcessTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		f, other := testFleet(t, s, Config{}), testFleet(t, s, Config{})
		numbers := [2]*Tally{}
		for i := range numbers {
			_, count := tallied(Unbounded)
			numbers[i] = count.Mark("p")
		}
		for _, n := range []int64{7000, 20000, 13000} {
			f.Raise("k", nil, numbers[0], n)
			time.Sleep(time.Second)
		}
		if n, known := numbers[1].Number(); known {
			t.Errorf("%d is known before the store was asked", n)
		}
		other.Ask(Key{ID: "k", Tallies: numbers[1:]}, nil, func() {})
		time.Sleep(time.Second)
		if n, known := numbers[1].Number(); n != 20000 || !known {
			t.Errorf("another process knows %d, %v; want 20000", n, known)
		}
	})
}
