package queue

// A heaped is a heap of what knows where it stands in it, for container/heap.
type heaped[T any, O order[T]] struct {
	o O
	a []T // the first on top
}

// An order says which comes first, and where an element keeps its index.
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

// inClass and inLane order places by arrival.
type (
	inClass struct{}
	inLane  struct{}
)

func (inClass) less(x, y *place) bool { return x.waiter.Seq < y.waiter.Seq }
func (inClass) at(k *place) *int      { return &k.inClass }
func (inLane) less(x, y *place) bool  { return x.waiter.Seq < y.waiter.Seq }
func (inLane) at(k *place) *int       { return &k.inLane }

// byPriority orders classes, the highest first, and byAge by the arrival of their
// oldest.
type (
	byPriority struct{}
	byAge      struct{}
)

func (byPriority) less(x, y *class) bool { return x.priority > y.priority }
func (byPriority) at(c *class) *int      { return &c.inHigh }
func (byAge) less(x, y *class) bool      { return x.all.a[0].waiter.Seq < y.all.a[0].waiter.Seq }
func (byAge) at(c *class) *int           { return &c.inOld }

// byEnd orders waiters by when they are refused.
type byEnd struct{}

func (byEnd) less(x, y *Waiter) bool { return x.expires < y.expires }
func (byEnd) at(w *Waiter) *int      { return &w.inExpiry }
