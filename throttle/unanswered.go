package throttle

import "slices"

// unanswered is units whose answers have not come, by when they were granted,
// oldest first. Its length is bounded by the number of requests that await
// their answers. The zero value is empty, and nil is one to which nothing is added.
type unanswered struct {
	sum  int64
	head int // of log; what is before it is forgotten
	log  []stamp
}

// units is how many there are.
func (u *unanswered) units() int64 {
	if u == nil {
		return 0
	}
	return u.sum
}

func (u *unanswered) add(granted instant, n int64) {
	u.sum += n
	if last := len(u.log) - 1; last >= u.head && u.log[last].at == granted {
		u.log[last].n += n
		return
	}
	if len(u.log) == cap(u.log) {
		// With as much room as there are units left, this is seldom.
		u.log = withoutNone(slices.Delete(u.log, 0, u.head))
		u.log, u.head = slices.Grow(u.log, len(u.log)+1), 0
	}
	u.log = append(u.log, stamp{granted, n})
}

// remove takes n of the units granted then out, or as many as there are.
func (u *unanswered) remove(granted instant, n int64) int64 {
	if u == nil {
		return 0
	}
	log := u.log[u.head:]
	i := len(log) - 1
	if i < 0 || log[i].at != granted { // most often there is one
		i = notBefore(log, granted)
	}
	if i == len(log) || log[i].at != granted {
		return 0
	}
	n = min(n, log[i].n)
	log[i].n -= n
	u.lose(n)
	return n
}

// next takes the oldest units out, if they are not younger than that.
func (u *unanswered) next(than instant) (t stamp, ok bool) {
	if u == nil {
		return stamp{}, false
	}
	for u.head < len(u.log) {
		if t = u.log[u.head]; t.n > 0 && t.at > than {
			break
		}
		u.head++
		if t.n > 0 {
			u.lose(t.n)
			return t, true
		}
	}
	return stamp{}, false
}

// lose counts n units less.
func (u *unanswered) lose(n int64) {
	if u.sum -= n; u.sum == 0 {
		u.log, u.head = u.log[:0], 0
	}
}

// forget takes out all units that are not younger than that.
func (u *unanswered) forget(than instant) {
	for ok := true; ok; {
		_, ok = u.next(than)
	}
}

// shrink gives memory back that an idle key does not need.
func (u *unanswered) shrink() {
	if u != nil && u.sum == 0 && cap(u.log) > 8 {
		u.log = nil
	}
}
