package cooldown

// A Question is one that only an answer settles: whether a pause is over, or what a new
// window holds. While it is open one request at a time goes to ask. The zero Question is
// closed.
type Question struct{ open, asked bool }

// Open lets the next request ask.
func (q *Question) Open() { q.open = true }

// Close ends the question: it is answered. A request that is under way to ask still
// calls Done.
func (q *Question) Close() { q.open = false }

// IsOpen reports whether an answer is needed.
func (q *Question) IsOpen() bool { return q.open }

// Asked reports whether a request is under way that asks.
func (q *Question) Asked() bool { return q.asked }

// Ask notes that a request starts. It reports whether that is the one that asks.
func (q *Question) Ask() bool {
	if !q.open || q.asked {
		return false
	}
	q.asked = true
	return true
}

// Done notes the end of a request, which asks is what Ask said of.
func (q *Question) Done(asks bool) {
	if asks {
		q.asked = false
	}
}
