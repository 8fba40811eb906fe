package inspect

import (
	"cmp"
	"slices"

	"github.com/weirhttp/weir/throttle"
)

// keepKeys is how many keys of a limiter are shown: those that are held up, then
// those that were refused or granted most. A limiter may have a hundred thousand.
const keepKeys = 1000

type limiter struct {
	name string
	l    *throttle.Limiter
}

// rows are the keys that are shown. Keys that share an account have one row.
func (l limiter) rows() []*Host {
	s := l.l.Stats()
	slices.SortFunc(s.Keys, func(a, b throttle.HostStats) int {
		return cmp.Or(cmp.Compare(rank(string(b.State)), rank(string(a.State))), cmp.Compare(b.Queue, a.Queue),
			cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Granted, a.Granted), cmp.Compare(a.Host, b.Host))
	})
	list := make([]*Host, 0, min(len(s.Keys), keepKeys))
	for i := range s.Keys[:min(len(s.Keys), keepKeys)] {
		k := &s.Keys[i]
		h := hostOf(k)
		if h.Limiter, h.Name = l.name, l.name+": "+k.Host; k.Overflow && len(k.Budgets) > 0 {
			h.Name += " (" + k.Budgets[0].Text + ")"
		}
		list = append(list, h)
	}
	return list
}
