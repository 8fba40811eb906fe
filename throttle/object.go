package throttle

import (
	"hash/maphash"
	"net/http"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/kind"
)

// mostObjects bounds the URLs of one credential at one host that are remembered because they
// were refused. They take some 20 KB. Those beyond are as if they were called for the first
// time.
const mostObjects = 64

// mostOthers is how many other URLs may be refused in a row when they ask whether a long wait is
// theirs, too, before all of their kind wait: there may be thousands. If half of many are
// locked, the first so many are of these once in eight times. With 0, a quarter of what URLs
// without a limit asked for came late or never, where the hints of others were too short; with
// 3 or 7, one in 170.
const mostOthers = 3

// objects are the URLs of which requests were refused. Requests to one URL are mostly for
// one object, which may be locked, or gone for as long as the server said; who calls it
// again is refused again, whatever the rate. The zero objects are none.
type objects struct {
	by      map[uint64]*solo // by keyed hash of method and URL; nil: none was refused
	several bool             // others were called since
}

// object is what is known of requests to the URL of r, nil if none was refused lately.
func (k *endpoint) object(now instant, r *http.Request) *solo {
	b := k.learner.blame
	if b == nil || b.objects.by == nil || r == nil {
		return nil
	}
	key := k.see(now, r)
	o := b.objects.by[key]
	switch {
	case o == nil:
		b.objects.several = true
	case now-max(o.Heard(), o.cooldown.Until()) > instant(attribution.Remembered):
		if delete(b.objects.by, key); len(b.objects.by) == 0 {
			b.objects.by = nil // nobody has to look any more
		}
		return nil
	}
	return o
}

// newObject is object, made if need be; nil where nothing is learned but pauses.
func (k *endpoint) newObject(now instant, r *http.Request) *solo {
	l := k.learner
	if o := k.object(now, r); o != nil || r == nil || l.terms.pausesOnly {
		return o
	}
	x := &made(&l.blame).objects
	if x.by == nil {
		x.by = make(map[uint64]*solo, 1)
	}
	if len(x.by) >= mostObjects {
		x.drop()
	}
	o := newSolo(k, l.terms.words.object)
	x.by[k.see(now, r)] = o
	return o
}

// see returns what the URL of r is known by, and notes whether k has several.
func (k *endpoint) see(now instant, r *http.Request) uint64 {
	p, key := made(&k.paths), k.learner.keyOf(r)
	if p.url == 0 {
		p.url = key
	}
	if !p.several && p.url != key {
		p.several = true
		k.meets(now)
	}
	return key
}

// meets takes in that another URL of k is called for the first time since one was refused: if
// that is to wait for long, it is not known that this one is, too.
func (k *endpoint) meets(now instant) {
	l, p := k.learner, k.paths
	o, c := l.blame.objects.by[p.url], k.paused()
	if o == nil || c == l.cooldown && (l.blame.endpoint != k || !l.blame.asks) || c.Over() || c.Until() <= now || c.State().Source != "Retry-After" {
		return
	}
	p.blamed = o
	since := c.State().Since
	p.reach.Refused(since, since, c.Until().Sub(since), false, 0)
	o.cooldown, o.alone = c.Part(), true
	o.pause(now)
	c.Doubt(now)
	if e := l.evidenceOf(k); !e.blank() {
		e.vague = true
	}
	l.blame.parted = true
}

// blames takes in a refusal. It reports whether it is taken for one of its URL alone, because
// that is to wait for long, and whether one request to another URL of its kind asks whether
// they are to wait, too.
func (p *endpointPaths) blames(now instant, g *ticket, s *headers.Signal, said cooldown.Hint) (alone, asks bool) {
	k := g.endpoint
	o := g.object
	if o != nil && o.isRest(said, o.alone, &p.reach) {
		return true, false
	}
	if o == nil || !p.several || !isLong(said) || s.Kind == headers.Ban || k.paused().Until() > now {
		return false, false
	}
	wait, _ := said.Believed(k.learner.terms.MaxPause)
	other := o != p.blamed && o.cooldown.News(g.sent) && !(o.alone && !o.cooldown.Over())
	p.blamed = o
	return p.reach.Refused(g.sent, now, wait, other, mostOthers)
}

// paused is the pause that k is in, or that its next refusal begins.
func (k *endpoint) paused() *cooldown.Cooldown {
	c := made(&k.learner.cooldown)
	if k.group != nil {
		c = k.group.cooldown
	}
	if c.Until() >= k.cooldown.Until() {
		return c
	}
	return k.cooldown
}

// drop forgets the one that was refused the longest time ago.
func (b *objects) drop() {
	var oldest uint64
	var heard instant = never
	for key, o := range b.by {
		if o.Heard() < heard {
			oldest, heard = key, o.Heard()
		}
	}
	delete(b.by, oldest)
}

// keyOf tells the URL of r.
func (l *learner) keyOf(r *http.Request) uint64 {
	var h maphash.Hash
	h.SetSeed(l.terms.seed)
	h.WriteString(kind.Method(r))
	h.WriteByte(' ')
	h.WriteString(r.URL.Path)
	h.WriteByte('?')
	h.WriteString(r.URL.RawQuery)
	return h.Sum64()
}

// served learns from a good answer to a request to o's URL that was sent at sent.
func (o *solo) served(sent instant) {
	if o != nil {
		o.Request.Served(sent)
		o.cooldown.Served(sent)
		o.alone = o.alone && o.Refusals() > 0
	}
}
