package attribution

import "hash/maphash"

// A Where is the method and the path of a request, as keyed hashes. It tells requests of one
// kind apart. The stem of a path is the path without segments that may be the id of an object.
// The zero Where is not known.
type Where struct {
	stem uint64 // of method and stem; odd
	full uint64 // of method and path; odd
}

// A Depth is how finely requests of one kind are told apart.
type Depth uint8

const (
	ByKind Depth = iota // not at all
	ByStem              // by method and stem
	ByPath              // by method and path
)

// at is the hash by which limits are told apart at that depth.
func (w Where) at(d Depth) uint64 {
	if d == ByStem {
		return w.stem
	}
	return w.full
}

// WhereOf is the Where of a request with that method and path. seed must always be the same.
func WhereOf(seed maphash.Seed, method, path string) Where {
	var space [160]byte // what is longer costs an allocation
	text := append(space[:0], method...)
	text = append(text, ' ')
	from := len(text)
	text = append(text, path...)
	full := maphash.Bytes(seed, text)

	text[from-1] = '\n' // so that the hash of a stem is none of a path
	n, id := from, false
	for _, c := range text[from:] { // the stem takes the place of the path, as it is no longer
		if c == '/' {
			if id || n-from > longestWord {
				n = from
			}
			text[n] = c
			n++
			from, id = n, false
			continue
		}
		id = id || ofID(c)
		text[n] = c
		n++
	}
	if id || n-from > longestWord {
		n = from
	}
	return Where{maphash.Bytes(seed, text[:n]) | 1, full | 1}
}

// longestWord is how long a segment of a path may be that is not taken for the id of an object.
const longestWord = 32

// ofID reports whether c shows that a segment is the id of an object.
func ofID(c byte) bool { return c >= '0' && c <= ':' || c == '@' || c == '%' || c == '=' }
