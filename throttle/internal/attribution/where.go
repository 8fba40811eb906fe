package attribution

import (
	"hash/maphash"
	"strings"
)

// A Where tells requests apart more finely than kinds do, by keyed hashes of
// method and path. The zero Where tells nothing.
type Where struct {
	stem uint64 // without what may be the id of an object
	full uint64
}

// A Depth is how finely requests of one kind are told apart.
type Depth uint8

const (
	ByKind Depth = iota // not at all
	ByStem              // by path, but for what may be the id of an object
	ByPath
)

// at is the hash by which limits are told apart at that depth.
func (w Where) at(d Depth) uint64 {
	if d == ByStem {
		return w.stem
	}
	return w.full
}

// WhereOf is where a request with that method and path goes.
func WhereOf(seed maphash.Seed, method, path string) Where {
	var stem, full maphash.Hash
	stem.SetSeed(seed)
	full.SetSeed(seed)
	full.WriteString(method)
	full.WriteByte(' ')
	full.WriteString(path)
	stem.WriteString(method)
	for more := true; more; {
		var segment string
		segment, path, more = strings.Cut(path, "/")
		stem.WriteByte('/')
		if !strings.ContainsAny(segment, "0123456789@%:=") && len(segment) <= 32 {
			stem.WriteString(segment)
		}
	}
	return Where{stem.Sum64() | 1, full.Sum64() | 1}
}
