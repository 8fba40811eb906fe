package throttle

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/stated"
)

// Knowledge is what a [Transport] has learned about servers, for the next run of
// the program: Transport.Learned returns it, Config.Learned takes it. It is plain
// data and goes through encoding/json and the like unharmed. Keep it where only
// the program can read it. It names hosts, and whoever guesses a credential can
// find out from Whose and the salt, with some probability, that the guess is
// wrong.
//
// It counts as much as one answer of the server: it is used until answers say
// otherwise. If it is stale, forged or broken, requests wait for nothing, but
// never longer than MaxPause. The zero Knowledge is none.
type Knowledge struct {
	Version int         `json:"version"` // of this form: 1. Of another nothing is used
	Salt    []byte      `json:"salt,omitempty"`
	Hosts   []KnownHost `json:"hosts"` // in no order
}

// KnownHost is what was learned of a host for one of those who call it.
type KnownHost struct {
	Host   string       `json:"host"`
	Whose  string       `json:"whose,omitempty"` // four hex digits that tell apart the credentials, and the partitions, of a host; "": the first who calls
	At     time.Time    `json:"at"`              // when it was true. After a week nothing of it is used
	Limits []KnownLimit `json:"limits"`
}

// KnownLimit is a limit that a host stated or showed.
type KnownLimit struct {
	Kind   LearnedKind   `json:"kind"`
	Routes []string      `json:"routes,omitempty"` // the kinds of request that it is known to bind: "GET /search"; none: all
	Parts  string        `json:"parts,omitempty"`  // of the one of Routes that a rate binds, each on its own or together: "each object", "some URLs", "some path forms together"; "": it binds all of Routes
	Name   string        `json:"name,omitempty"`   // what the host calls it
	Part   string        `json:"part,omitempty"`   // of several of one name, as the host tells them apart
	Unit   string        `json:"unit,omitempty"`
	Source string        `json:"source,omitempty"` // the header that said it; "": it was found or guessed
	Limit  float64       `json:"limit,omitempty"`  // units at once, or per Per
	Per    time.Duration `json:"per,omitempty"`
	Left   float64       `json:"left,omitempty"` // of a quota, until Until
	Until  time.Time     `json:"until,omitzero"` // when a pause ends, or all of a quota is back
}

const (
	knowledgeForm = 1                  // the first
	knownFor      = 7 * 24 * time.Hour // a limit is seldom changed more often, and a rate that is wrong is found anew in seconds
	knownAhead    = time.Hour          // by which At may be in the future: clocks are set
	knownLimits   = 256                // of one host and caller: maxQuotas quotas, and of maxEndpoints kinds of request a pause, a rate and a number at a time
)

// knowledge is what was handed to a Transport and nobody has used yet.
type knowledge struct {
	salt   []byte
	mu     sync.Mutex
	byHost map[string][]KnownHost
}

// newKnowledge takes what can be true of k.
func newKnowledge(k Knowledge, most int, now time.Time) (*knowledge, error) {
	n := &knowledge{salt: slices.Clone(k.Salt), byHost: make(map[string][]KnownHost)}
	if k.Version != knowledgeForm || len(k.Salt) != 16 {
		n.salt = make([]byte, 16)
		_, err := rand.Read(n.salt)
		return n, err
	}
	total := 0
	for _, h := range k.Hosts {
		if total == most || !presentable(h.Host) || !presentable(h.Whose) || len(h.Limits) > knownLimits || len(n.byHost[h.Host]) == maxCredentials ||
			h.At.Before(now.Add(-knownFor)) || h.At.After(now.Add(knownAhead)) {
			continue
		}
		h.Limits = slices.DeleteFunc(slices.Clone(h.Limits), func(l KnownLimit) bool { return !l.credible(now) })
		for i := range h.Limits {
			h.Limits[i].Routes = slices.Clone(h.Limits[i].Routes)
		}
		if len(h.Limits) > 0 {
			n.byHost[h.Host] = append(n.byHost[h.Host], h)
			total++
		}
	}
	return n, nil
}

// presentable reports whether s may be the name of something.
func presentable(s string) bool {
	return len(s) <= 256 && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) })
}

// credible reports whether l is well formed, and not over.
func (l *KnownLimit) credible(now time.Time) bool {
	finite := func(x float64) bool { return x >= 0 && x <= math.MaxInt32 } // not NaN either
	if !finite(l.Limit) || !finite(l.Left) || l.Per < 0 || l.Per > stated.MostWindow || len(l.Routes) > maxEndpoints ||
		!presentable(l.Name) || !presentable(l.Part) || !presentable(l.Unit) || !presentable(l.Source) || slices.ContainsFunc(l.Routes, func(r string) bool { return !presentable(r) }) {
		return false
	}
	if l.Parts != "" && (l.Kind != LearnedRate || len(l.Routes) != 1 || attribution.DivisionOf(l.Parts).Split == attribution.All) {
		return false
	}
	switch l.Kind {
	case LearnedPause:
		return l.Until.After(now) && l.Until.Before(now.Add(stated.MostWindow))
	case LearnedQuota:
		return l.Until.After(now) && l.Until.Before(now.Add(stated.MostWindow)) && l.Limit > 0 && l.Left <= l.Limit && len(l.Routes) > 0
	case LearnedRate:
		return l.Limit > 0 && l.Per > 0
	case LearnedConcurrency:
		return l.Limit >= 1
	}
	return false
}

// whose is what tells apart those who call a host: so few bits of a keyed hash
// that a weak credential cannot be guessed by them.
func (n *knowledge) whose(part, credential string) uint16 {
	h := hmac.New(sha256.New, n.salt)
	h.Write([]byte(part))
	h.Write([]byte{0})
	h.Write([]byte(credential))
	return binary.BigEndian.Uint16(h.Sum(nil))
}

// callerOf is whose as Knowledge says it.
func callerOf(whose uint16) string {
	if whose == 0 {
		return ""
	}
	return fmt.Sprintf("%04x", whose)
}

// claim names one who calls the host of r, and returns what is known of that host
// for him, once. A nil knowledge knows nobody.
func (n *knowledge) claim(r *record, credential string) (whose uint16, of *before) {
	if n == nil {
		return 0, nil
	}
	whose = n.whose(r.part, credential)
	name := callerOf(whose)
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.byHost[r.host]
	i := slices.IndexFunc(list, func(h KnownHost) bool { return h.Whose == name })
	if i < 0 {
		i = slices.IndexFunc(list, func(h KnownHost) bool { return h.Whose == "" })
	}
	if i < 0 {
		return whose, nil
	}
	of = &before{limits: list[i].Limits}
	if n.byHost[r.host] = slices.Delete(list, i, i+1); len(list) == 1 {
		delete(n.byHost, r.host)
	}
	return whose, of
}

// Learned returns what has been learned until now, and of what Config.Learned
// brought that which nobody has used yet. Of hosts beyond MaxKeys nothing is
// kept. It looks at one host at a time and holds nobody up for longer.
func (t *Transport) Learned() Knowledge {
	k := Knowledge{Version: knowledgeForm, Salt: slices.Clone(t.known.salt), Hosts: []KnownHost{}}
	now := time.Now()
	add := func(r *record) {
		e := r.lock()
		defer e.Unlock()
		at := e.Now()
		r.learned.all(func(l *learner) {
			if limits := l.keep(at); len(limits) > 0 {
				k.Hosts = append(k.Hosts, KnownHost{Host: r.host, Whose: callerOf(l.whose), At: now, Limits: limits})
			}
		})
	}
	t.hosts.All(func(entry *hosts.Entry) {
		if o := entry.Value.Occupant(hosts.Throttle); o != nil && !entry.Overflow {
			add(o.(*record))
		}
	})
	t.parts.All(func(entry *table.Entry[record]) {
		if entry.Value.made() && !entry.Overflow {
			add(&entry.Value)
		}
	})
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	for _, list := range t.known.byHost {
		for _, h := range list {
			h.Limits = slices.Clone(h.Limits)
			k.Hosts = append(k.Hosts, h)
		}
	}
	return k
}
