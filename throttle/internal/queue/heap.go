package queue

// A heaped is a heap whose elements know their indexes in it. It implements heap.Interface.
type heaped[T any, O order[T]] struct {
	o O
	a []T // a[0] comes first
}

// An order says which of two elements comes first, and where an element has its index.
type order[T any] interface {
	less(x, y T) bool
	at(x T) *int
}

func (h *heaped[T, O]) Len() int           { return len(h.a) }
func (h *heaped[T, O]) Less(i, j int) bool { return h.o.less(h.a[i], h.a[j]) }

func (h *heaped[T, O]) Swap(i, j int) {
	h.a[i], h.a[j] = h.a[j], h.a[i]
	*h.o.at(h.a[i]), *h.o.at(h.a[j]) = i, j
}

func (h *heaped[T, O]) Push(x any) {
	*h.o.at(x.(T)) = len(h.a)
	h.a = append(h.a, x.(T))
}

func (h *heaped[T, O]) Pop() any {
	last := len(h.a) - 1
	x := h.a[last]
	*h.o.at(x) = -1 // it is in no heap
	clear(h.a[last:])
	h.a = h.a[:last]
	return x
}

// byRank orders places as they would be granted if there were no lanes, and byAge
// and inLane by arrival.
type (
	byRank struct{}
	byAge  struct{}
	inLane struct{}
)

func (byRank) less(x, y *place) bool       { return x.waiter.before(y.waiter) }
func (byRank) at(k *place) *branch[*place] { return &k.inRank }
func (byRank) units(k *place) int64        { return k.units }
func (byAge) less(x, y *place) bool        { return x.waiter.older(y.waiter) }
func (byAge) at(k *place) *branch[*place]  { return &k.inAge }
func (byAge) units(k *place) int64         { return k.units }
func (inLane) less(x, y *place) bool       { return x.waiter.older(y.waiter) }
func (inLane) at(k *place) *branch[*place] { return &k.inLane }
func (inLane) units(k *place) int64        { return k.units }

// byOldest orders classes by the arrival of their oldest.
type byOldest struct{}

func (byOldest) less(x, y *class) bool { return x.oldest.waiter.older(y.oldest.waiter) }
func (byOldest) at(c *class) *int      { return &c.inOld }

// inGroup orders waiters by rank.
type inGroup struct{}

func (inGroup) less(x, y *Waiter) bool        { return x.before(y) }
func (inGroup) at(w *Waiter) *branch[*Waiter] { return &w.inGroup }
func (inGroup) units(*Waiter) int64           { return 0 }
