package outbox

// Stats is what an outbox holds and what became of the requests its patterns
// named, since New.
type Stats struct {
	Pending int   // entries that Drain will send
	Dead    int   // entries set aside
	Bytes   int64 // of both; what MaxBytes bounds

	Kept      uint64 // requests answered with 202 and an id
	Delivered uint64 // entries that Drain sent and removed
	SetAside  uint64 // entries that died
	Full      uint64 // failed requests not kept because MaxEntries or MaxBytes was reached
	Unfit     uint64 // ... because they could not be sent again as they were: mostly, a body longer than MaxBody
	Errors    uint64 // ... because the file could not be written
}

// Stats returns a copy of the counters.
func (t *Transport) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stats
}

func (t *Transport) full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stats.Pending+t.stats.Dead >= t.s.MaxEntries || t.stats.Bytes >= t.s.MaxBytes
}

// reserve takes room for one more entry of n bytes.
func (t *Transport) reserve(n int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stats.Pending+t.stats.Dead >= t.s.MaxEntries || t.stats.Bytes+n > t.s.MaxBytes {
		return false
	}
	t.stats.Pending++
	t.stats.Bytes += n
	return true
}

func (t *Transport) unreserve(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Pending--
	t.stats.Bytes -= n
}

func (t *Transport) missed(counter *uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	*counter++
	return false
}
