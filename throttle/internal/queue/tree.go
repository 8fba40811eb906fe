package queue

// A tree holds elements in order and knows how many units those have that go
// before a given point. Each step takes O(log n), whoever comes or goes: it is a
// treap (Seidel and Aragon, 1996), a search tree by the order of its elements that
// is a heap by random numbers.
type tree[T comparable, O branching[T]] struct {
	o    O
	root T
	min  T // the first; nil: it is empty
}

// A branching says in which order a tree's elements are, which must be total, and where each
// has its branch.
type branching[T any] interface {
	less(x, y T) bool
	at(x T) *branch[T]
	units(x T) int64
}

// branch is what an element keeps of a tree that it is in.
type branch[T any] struct {
	left, right T
	units       int64 // of the element and all below it
	n           int32 // likewise how many they are
	level       uint32
}

// len is how many elements there are.
func (t *tree[T, O]) len() int {
	_, n := t.sum(t.root)
	return n
}

// total is the units of all.
func (t *tree[T, O]) total() int64 {
	units, _ := t.sum(t.root)
	return units
}

func (t *tree[T, O]) sum(x T) (units int64, n int) {
	if none := *new(T); x == none {
		return 0, 0
	}
	b := t.o.at(x)
	return b.units, int(b.n)
}

// fix computes anew the units and the number of the elements at and below x.
func (t *tree[T, O]) fix(x T) {
	b := t.o.at(x)
	b.units, b.n = t.o.units(x), 1
	for _, y := range [...]T{b.left, b.right} {
		units, n := t.sum(y)
		b.units, b.n = b.units+units, b.n+int32(n)
	}
}

// insert adds x, which is in no other tree that keeps its branch there. level is its
// random number.
func (t *tree[T, O]) insert(x T, level uint32) {
	*t.o.at(x) = branch[T]{level: level}
	none := *new(T)
	if t.min == none || t.o.less(x, t.min) {
		t.min = x
	}
	units := t.o.units(x)
	at := &t.root // down to x's place in a loop: a call for each level would double the stacks of those that wait
	for r := *at; r != none && t.o.at(r).level >= level; r = *at {
		at = t.step(r, x, units, 1)
	}
	b := t.o.at(x)
	b.left, b.right = t.split(*at, x)
	t.fix(x)
	*at = x
}

// step adds units, and n elements, to what is counted at r, and returns where to go on from r
// towards x.
func (t *tree[T, O]) step(r, x T, units int64, n int32) *T {
	b := t.o.at(r)
	b.units, b.n = b.units+units, b.n+n
	if t.o.less(x, r) {
		return &b.left
	}
	return &b.right
}

// split parts what is below and at r into those before x and those after. It goes down
// two levels on average, whatever the size of the tree, and so does merge.
func (t *tree[T, O]) split(r, x T) (before, after T) {
	if none := *new(T); r == none {
		return none, none
	}
	b := t.o.at(r)
	if t.o.less(r, x) {
		b.right, after = t.split(b.right, x)
		before = r
	} else {
		before, b.left = t.split(b.left, x)
		after = r
	}
	t.fix(r)
	return before, after
}

// remove takes x out.
func (t *tree[T, O]) remove(x T) {
	none := *new(T)
	at, above, units := &t.root, none, t.o.units(x)
	for *at != x {
		above = *at
		at = t.step(above, x, -units, -1)
	}
	b := t.o.at(x)
	*at = t.merge(b.left, b.right)
	*b = branch[T]{} // it keeps nobody in memory
	if t.min == x {  // nothing was to its left: next is the first of what was to its right, or the one above
		t.min = above
		for y := *at; y != none; y = t.o.at(y).left {
			t.min = y
		}
	}
}

// merge joins what is before with what is after.
func (t *tree[T, O]) merge(before, after T) T {
	none := *new(T)
	switch {
	case before == none:
		return after
	case after == none:
		return before
	case t.o.at(before).level > t.o.at(after).level:
		b := t.o.at(before)
		b.right = t.merge(b.right, after)
		t.fix(before)
		return before
	}
	b := t.o.at(after)
	b.left = t.merge(before, b.left)
	t.fix(after)
	return after
}

// before is how many units the elements before a point have, and how many these elements are.
// passed is true of these and of no others.
func (t *tree[T, O]) before(passed func(T) bool) (units int64, n int) {
	for x := t.root; x != *new(T); {
		b := t.o.at(x)
		if !passed(x) {
			x = b.left
			continue
		}
		u, m := t.sum(b.left)
		units, n = units+u+t.o.units(x), n+m+1
		x = b.right
	}
	return units, n
}

// from is the first after a point, as for before; nil: there is none.
func (t *tree[T, O]) from(passed func(T) bool) (first T) {
	for x := t.root; x != *new(T); {
		if passed(x) {
			x = t.o.at(x).right
		} else {
			first, x = x, t.o.at(x).left
		}
	}
	return first
}

// walk calls f for those of x and below it that go after a point, in order, as long as
// it reports true; passed is true of those before. It reports whether f always did.
func (t *tree[T, O]) walk(x T, passed, f func(T) bool) bool {
	if none := *new(T); x == none {
		return true
	}
	b := t.o.at(x)
	left, right := b.left, b.right
	if !passed(x) && !(t.walk(left, passed, f) && f(x)) {
		return false
	}
	return t.walk(right, passed, f)
}
