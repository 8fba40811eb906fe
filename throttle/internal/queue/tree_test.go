package queue

import (
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// ages is a tree of waiters by arrival, for tests.
type ages = tree[*place, byAge]

func placed(seq uint64, units int64) *place {
	return &place{waiter: &Waiter{seq: seq, id: seq}, units: units}
}

// Whatever comes and goes, a tree knows the first, what goes before any point, and
// who comes after it.
func TestTreeKnowsWhatGoesBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tr ages
		var all []*place // by arrival
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if seq := rapid.Uint64Range(1, 40).Draw(t, "seq"); rapid.Bool().Draw(t, "goes") && len(all) > 0 {
				i := int(seq) % len(all)
				tr.remove(all[i])
				if all[i].inAge != (branch[*place]{}) {
					t.Fatal("who has gone keeps others in memory")
				}
				all = slices.Delete(all, i, i+1)
			} else if !slices.ContainsFunc(all, func(k *place) bool { return k.waiter.seq == seq }) {
				k := placed(seq, rapid.Int64Range(1, 9).Draw(t, "units"))
				tr.insert(k, k.waiter.level())
				all = append(all, k)
				slices.SortFunc(all, func(x, y *place) int { return int(x.waiter.seq) - int(y.waiter.seq) })
			}
			var list []*place
			tr.walk(tr.root, func(*place) bool { return false }, func(k *place) bool { list = append(list, k); return true })
			if !slices.Equal(list, all) {
				t.Fatalf("%d elements, want %d in order", len(list), len(all))
			}
			var first *place
			if len(all) > 0 {
				first = all[0]
			}
			if tr.min != first || tr.len() != len(all) {
				t.Fatalf("the first is %v of %d, want %v of %d", tr.min, tr.len(), first, len(all))
			}
			for point := range uint64(42) {
				passed := func(k *place) bool { return k.waiter.seq < point }
				var units int64
				n := 0
				for n < len(all) && passed(all[n]) {
					units += all[n].units
					n++
				}
				if u, m := tr.before(passed); u != units || m != n {
					t.Fatalf("before %d: %d units of %d, want %d of %d", point, u, m, units, n)
				}
				var next *place
				if n < len(all) {
					next = all[n]
				}
				if got := tr.from(passed); got != next {
					t.Fatalf("from %d: %v, want %v", point, got, next)
				}
			}
		}
	})
}

// However they come, no step looks at more than a few times the logarithm of how
// many there are.
func TestTreeIsShallow(t *testing.T) {
	const n = 80000
	most := 4 * bits.Len(n)
	for name, at := range map[string]func(i uint64) uint64{
		"in order":              func(i uint64) uint64 { return i },
		"backwards":             func(i uint64) uint64 { return n - i },
		"from both ends":        func(i uint64) uint64 { return n + i*(i%2*2-1) },
		"of the middle outward": func(i uint64) uint64 { return i * 7919 % 1_000_003 },
	} {
		var tr ages
		var all []*place
		for i := range uint64(n) {
			k := placed(at(i+1), 1)
			tr.insert(k, k.waiter.level())
			all = append(all, k)
		}
		for _, k := range all[:n/2] {
			tr.remove(k)
		}
		depth := 0
		var walk func(k *place, d int)
		walk = func(k *place, d int) {
			if k != nil {
				depth = max(depth, d)
				walk(k.inAge.left, d+1)
				walk(k.inAge.right, d+1)
			}
		}
		walk(tr.root, 1)
		if depth > most || tr.len() != n/2 {
			t.Errorf("%s: %d deep with %d elements, want at most %d", name, depth, tr.len(), most)
		}
	}
}
