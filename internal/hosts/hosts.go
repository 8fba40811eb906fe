// Package hosts keeps one record for each host that requests go to, shared by
// all layers of a chain, in one bounded table with one rule of eviction.
package hosts

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/internal/table"
)

// Size is how many hosts a table keeps unless a throttle says otherwise.
const Size = 100000

// Slot says whose part of a record it is.
type Slot uint8

const (
	Throttle Slot = iota
	Retry
	Breaker
	Life // breaker: the newest sign of life
	Wire
	slots
)

// Occupant is what a layer keeps in its slot.
type Occupant interface {
	// Idle reports that nothing would be lost by forgetting it: full
	// accounts, closed circuits, nothing in flight. It is called under a
	// lock of the table and must not block.
	Idle(now time.Time) bool
}

// Host is the record of one host.
type Host struct {
	slots [slots]atomic.Pointer[Occupant]
	plain bool // its key, as the host of a URL, is this host whatever the scheme

	// The holders of an entry are counted in it. With this its size is 128 bytes,
	// so that no two hosts share a cache line.
	_ [48]byte
}

// Entry is a held record; see table.Entry.
type Entry = table.Entry[Host]

// Table is the bounded table of records.
type Table struct {
	*table.Table[Host]
	Epoch time.Time // from which the order of arrival counts; does not change
	_     [56]byte  // order is written by those that wait, what stands beside it read by all
	order atomic.Uint64
	_     [56]byte
}

// New returns a table of at most size records.
func New(size int) *Table {
	return &Table{Table: table.New(size, fresh, (*Host).idle), Epoch: time.Now()}
}

func fresh(key string) Host {
	return Host{plain: Canonical("http", key) == key && Canonical("https", key) == key}
}

// Of returns the record of the host that r goes to, held as by Acquire. Its
// name need not be worked out if a URL has it as it is kept.
func (t *Table) Of(r *http.Request) *Entry {
	if r.URL != nil {
		if e := t.Seen(r.URL.Host); e != nil {
			if e.Value.plain {
				return e
			}
			e.Release()
		}
	}
	return t.Acquire(Key(r), time.Time{})
}

// Arrive returns the place of a request that arrives now in the order of
// arrival: the time since Epoch, or one more than the last if that is later. So
// it can be compared with what others count who do so, and nothing is written by
// all calls: it is for those that wait, of whom there are few.
func (t *Table) Arrive() uint64 {
	for {
		last := t.order.Load()
		next := max(last+1, uint64(max(0, time.Since(t.Epoch))))
		if t.order.CompareAndSwap(last, next) {
			return next
		}
	}
}

// Occupant returns what stands in slot s, or nil.
func (h *Host) Occupant(s Slot) Occupant {
	if p := h.slots[s].Load(); p != nil {
		return *p
	}
	return nil
}

// Has reports whether anything stands in slot s, without a look at it.
func (h *Host) Has(s Slot) bool { return h.slots[s].Load() != nil }

// Occupy puts o into slot s if it is free and returns what stands there now.
func (h *Host) Occupy(s Slot, o Occupant) Occupant {
	if h.slots[s].CompareAndSwap(nil, &o) {
		return o
	}
	return h.Occupant(s)
}

func (h *Host) idle(now time.Time) bool {
	for s := range h.slots {
		if o := h.Occupant(Slot(s)); o != nil && !o.Idle(now) {
			return false
		}
	}
	return true
}

// Key is the canonical name of the host that r goes to: lower case, without a
// trailing dot, with the port unless it is the scheme's own. It comes from
// the URL, never from r.Host, and is "" if the URL names no host. It does not
// allocate for a URL that is canonical already.
func Key(r *http.Request) string {
	if r.URL == nil {
		return ""
	}
	return Canonical(r.URL.Scheme, r.URL.Host)
}

// Name is the canonical host of r, whose record is e. One that many hosts share
// does not know it.
func Name(e *Entry, r *http.Request) string {
	if e.Overflow {
		return Key(r)
	}
	return e.Key
}

// Canonical is Key for a scheme and a host[:port]. A scheme of "" takes no
// port for its own. What a caller put before an "@", where no URL has it, is
// no part of a name that is shown.
func Canonical(scheme, hostport string) string {
	if i := strings.LastIndexByte(hostport, '@'); i >= 0 {
		hostport = hostport[i+1:]
	}
	host, port := hostport, ""
	if i := strings.LastIndexByte(hostport, ':'); i >= 0 && !strings.Contains(hostport[i:], "]") {
		host, port = hostport[:i], hostport[i+1:]
	}
	bare := strings.TrimSuffix(host, ".")
	dotted := len(bare) != len(host)
	if bare == "" && port != "" {
		return ":" + port // this machine: it has no other name
	}
	if port == "" || port == "80" && strings.EqualFold(scheme, "http") || port == "443" && strings.EqualFold(scheme, "https") {
		return strings.ToLower(bare)
	}
	if !dotted {
		return strings.ToLower(hostport)
	}
	return strings.ToLower(bare) + ":" + port
}

// Spelled are the canonical names that a host may have which a person wrote, as
// in a URL or as one. A port that is a scheme's own is no part of the name under
// that scheme.
func Spelled(host string) []string {
	if scheme, rest, ok := strings.Cut(host, "://"); ok {
		if i := strings.IndexAny(rest, "/?#"); i >= 0 {
			rest = rest[:i]
		}
		return []string{Canonical(scheme, rest)}
	}
	name := Canonical("", host)
	for _, port := range [...]string{":80", ":443"} {
		if bare, ok := strings.CutSuffix(name, port); ok {
			return []string{bare, name}
		}
	}
	return []string{name}
}
