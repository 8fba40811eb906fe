// Package hosts keeps one record for each host that requests go to, shared by
// all layers of a chain, in one bounded table with one rule of eviction.
package hosts

import (
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/internal/table"
)

// Size is how many hosts a table keeps, unless a throttle's MaxKeys says otherwise. It is
// more than programs call, and bounds memory where the names of hosts come from input.
const Size = 100000

// Slot names a part of a record, by the layer that keeps it.
type Slot uint8

const (
	Throttle Slot = iota
	Retry
	Breaker // the host's circuit
	Life    // breaker: when the host last showed that it is alive
	Wire    // retry: what its Wire keeps of a host
	slots   // how many there are
)

// Occupant is what a layer keeps in its slot. Its methods are called by many goroutines.
type Occupant interface {
	// Idle reports that nothing would be lost if the record were dropped: accounts are
	// full, circuits are closed, and nothing is in flight. It is called under a lock of
	// the table, so it must neither block nor call the table.
	Idle(now time.Time) bool
}

// Host is the record of one host. It is safe for concurrent use.
type Host struct {
	Table *Table // where the record is
	slots [slots]atomic.Pointer[Occupant]
	plain bool // a URL whose host is spelled as the key means this host under any scheme

	// Each call writes the count of holders in its host's Entry. This makes an Entry
	// 128 bytes large, so that no two hosts share a cache line.
	_ [40]byte
}

// Entry is a held record; see table.Entry.
type Entry = table.Entry[Host]

// Table is the bounded table of records. It is safe for concurrent use.
type Table struct {
	*table.Table[Host]
	Epoch time.Time // the instant that Arrive counts from; it does not change
	_     [56]byte  // keeps order, which waiting requests write, off the cache lines that all calls read
	order atomic.Uint64
	_     [56]byte
}

// New returns a table of at most size records.
func New(size int) *Table {
	t := &Table{Epoch: time.Now()}
	t.Table = table.New(size, t.fresh, (*Host).idle)
	return t
}

func (t *Table) fresh(key string) Host {
	return Host{Table: t, plain: Canonical("http", key) == key && Canonical("https", key) == key}
}

// Of returns the record of the host that r goes to, held as by Acquire: the caller
// releases it. If the URL spells the host as the table does, Key is not computed.
func (t *Table) Of(r *http.Request) *Entry {
	if r.URL != nil {
		e := t.Near(r.URL.Host)
		if e == nil || !e.Hold() {
			e = t.Seen(r.URL.Host)
		}
		if e != nil {
			if e.Value.plain {
				return e
			}
			e.Release()
		}
	}
	return t.Acquire(Key(r), time.Time{})
}

// Arrive returns the place of a request that arrives now in the order of arrival. It is
// the time since Epoch in nanoseconds, or one more than the last place if that is larger,
// so no two are the same. Only requests that wait call it: they are few, and it writes
// what all hosts share.
func (t *Table) Arrive() uint64 {
	for {
		last := t.order.Load()
		next := max(last+1, uint64(max(0, time.Since(t.Epoch))))
		if t.order.CompareAndSwap(last, next) {
			return next
		}
	}
}

// Occupant returns what is in slot s, or nil.
func (h *Host) Occupant(s Slot) Occupant {
	if p := h.slots[s].Load(); p != nil {
		return *p
	}
	return nil
}

// Has reports whether anything is in slot s. It does not read the occupant's memory.
func (h *Host) Has(s Slot) bool { return h.slots[s].Load() != nil }

// Occupy puts o into slot s if the slot is free, and returns what is in it then. An
// occupant stays as long as the record.
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
// trailing dot, with the port unless it is the scheme's own. Ports and IPv6 addresses have
// one spelling. It comes from the URL, never from r.Host, and is "" if the URL names no
// host. It does not allocate for a URL that is canonical already.
func Key(r *http.Request) string {
	if r.URL == nil {
		return ""
	}
	return Canonical(r.URL.Scheme, r.URL.Host)
}

// Name is the canonical host of r, whose record is e. It is the record's key, unless the
// record is the overflow, which many hosts share.
func Name(e *Entry, r *http.Request) string {
	if e.Overflow {
		return Key(r)
	}
	return e.Key
}

// Canonical is Key for a scheme and a host[:port]. For the scheme "" every port is part
// of the name. url.Parse takes user information out of the host; if a URL was made by
// hand and still has it, it is left out, because names are shown.
func Canonical(scheme, hostport string) string {
	hostport = strings.ToLower(hostport[strings.LastIndexByte(hostport, '@')+1:])
	host, port := hostport, ""
	if i := strings.LastIndexByte(hostport, ':'); i >= 0 && !strings.Contains(hostport[i:], "]") {
		host, port = hostport[:i], number(hostport[i+1:])
	}
	host = address(strings.TrimSuffix(host, "."))
	switch {
	case host == "" && port != "":
		return ":" + port // net/http dials this machine
	case port == "", port == "80" && strings.EqualFold(scheme, "http"), port == "443" && strings.EqualFold(scheme, "https"):
		return host
	case len(host)+len(":")+len(port) == len(hostport) && strings.HasPrefix(hostport, host):
		return hostport
	}
	return host + ":" + port
}

// number returns a port without the zeros that may stand before it.
func number(port string) string {
	for len(port) > 1 && port[0] == '0' {
		port = port[1:]
	}
	return port
}

// address returns host, and an IPv6 address as RFC 5952 spells it, which has many spellings.
func address(host string) string {
	inner, ok := strings.CutPrefix(host, "[")
	if !ok {
		return host
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
	var room [64]byte // so that the usual spelling costs no allocation
	if text := append(a.AppendTo(append(room[:0], '[')), ']'); err == nil && a.Is6() && string(text) != host {
		return string(text)
	}
	return host
}

// Spelled returns the canonical names that a host may have in the table, where host was
// written by a person: "example.com", "example.com:443" or "https://example.com/". Without
// a scheme, port 80 or 443 may be the scheme's own, and then it is no part of the name: so
// there are two.
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
