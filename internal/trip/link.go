package trip

import (
	"net/http"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
)

// Link is what a layer tells the one above it about the chain from itself
// down.
type Link struct {
	Hosts *hosts.Table
	Has   [Wire + 1]bool    // which layers stand there
	Wired bool              // a Wire stands there, or in another chain further down
	New   func() *Box       // makes the memory of a trip; nil: nobody needs more than that
	top   Layer             // the first of them
	at    http.RoundTripper // that one, if it is a room; nil: it is none
	room  Room              // how it is entered
}

// Linked is implemented by every layer of ours.
type Linked interface{ Link() Link }

// Chain makes what embeds it Linked, without a method of its own that users of
// an exported layer would see.
type Chain struct{ link Link }

// NewChain returns the Chain of a layer whose link is k.
func NewChain(k Link) Chain { return Chain{k} }

// Link tells the layer above about the chain.
func (c Chain) Link() Link { return c.link }

// Outlooker is the optional method that retry asks before a delay: how long
// r, sent now, would wait below, and whether that would be refused.
type Outlooker interface {
	Outlook(r *http.Request) (wait time.Duration, err error)
}

// Below returns the link of base, with a table of its own if base is not one
// of our layers.
func Below(base http.RoundTripper) Link {
	if l, ok := base.(Linked); ok {
		return l.Link()
	}
	return Link{Hosts: hosts.New(hosts.Size)}
}

// Under is Below for layer l, which is to stand above base. Layers that stand
// against the order in which a request walks are a chain of their own, with its
// own trips and hosts: for l they are a base that is not ours.
func Under(base http.RoundTripper, l Layer) Link {
	k := Below(base)
	if k.top > l {
		return k
	}
	return Link{Hosts: hosts.New(hosts.Size), Wired: k.Wired}
}

// With returns the link with layer l added.
func (k Link) With(l Layer) Link {
	k.Has[l], k.top, k.at, k.room = true, l, nil, nil
	k.Wired = k.Wired || l == Wire
	return k
}

// At returns the link with its first layer named, and how that takes requests
// together with their trips.
func (k Link) At(layer http.RoundTripper, r Room) Link {
	k.at, k.room = layer, r
	return k
}

// Innermost reports that no layer of ours stands there: a layer whose base
// has such a link is the one that marks requests as sent.
func (k Link) Innermost() bool {
	for _, has := range k.Has {
		if has {
			return false
		}
	}
	return true
}

// Outlook asks base if it can be asked.
func Outlook(base http.RoundTripper, r *http.Request) (time.Duration, error) {
	if o, ok := base.(Outlooker); ok {
		return o.Outlook(r)
	}
	return 0, nil
}

// CloseIdle forwards CloseIdleConnections, which http.Client finds by type
// assertion only.
func CloseIdle(base http.RoundTripper) {
	if c, ok := base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// CloseBody closes the body of a request that is not handed on. A
// RoundTripper owes that on every path.
func CloseBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close()
	}
}
