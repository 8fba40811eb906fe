package trip

import (
	"net/http"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
)

// Link is what a layer tells the one above it about the chain that begins with itself.
// The zero value is that of no layers.
type Link struct {
	Hosts *hosts.Table      // the chain's
	Has   [Wire + 1]bool    // which layers it has
	Wired bool              // it has a Wire, or another chain below it has
	New   func() *Box       // allocates a trip, with what a layer of the chain needs besides; nil: none needs more
	top   Layer             // its first layer
	at    http.RoundTripper // that layer, if it is a Room; nil: it is none
	room  Room              // the same layer
}

// Linked is implemented by every layer of ours.
type Linked interface {
	Link() Link // the same for each call
}

// Chain implements Linked for the layers that embed it. The method is promoted, so the
// documentation of an exported layer does not list it.
type Chain struct{ link Link }

// NewChain returns the Chain of a layer whose link is k.
func NewChain(k Link) Chain { return Chain{k} }

// Link tells the layer above about the chain.
func (c Chain) Link() Link { return c.link }

// Outlooker is an optional method of a base, which retry calls before a delay.
type Outlooker interface {
	// Outlook returns how long r would wait below if it were sent now, and the error
	// if it would be refused. It sends nothing and does not wait.
	Outlook(r *http.Request) (wait time.Duration, err error)
}

// Below returns the link of base. If base is not one of our layers, that has a new table
// of hosts and no layers.
func Below(base http.RoundTripper) Link {
	if l, ok := base.(Linked); ok {
		return l.Link()
	}
	return Link{Hosts: hosts.New(hosts.Size)}
}

// Under is Below for layer l, which is to be put above base. If base begins with a layer
// that is not below l in the order of Layer, it is a chain of its own, with its own trips
// and hosts, and l treats it like a base that is not ours.
func Under(base http.RoundTripper, l Layer) Link {
	k := Below(base)
	if k.top > l {
		return k
	}
	return Link{Hosts: hosts.New(hosts.Size), Wired: k.Wired}
}

// With returns the link with layer l added on top.
func (k Link) With(l Layer) Link {
	k.Has[l], k.top, k.at, k.room = true, l, nil, nil
	k.Wired = k.Wired || l == Wire
	return k
}

// At returns the link, with layer as its first layer and r as the Room of that.
func (k Link) At(layer http.RoundTripper, r Room) Link {
	k.at, k.room = layer, r
	return k
}

// Innermost reports that the chain has no layers. A layer whose base has such a link is
// the innermost of its own chain, and marks requests as sent.
func (k Link) Innermost() bool {
	for _, has := range k.Has {
		if has {
			return false
		}
	}
	return true
}

// Outlook is base's Outlook if it is an Outlooker, and else no wait.
func Outlook(base http.RoundTripper, r *http.Request) (time.Duration, error) {
	if o, ok := base.(Outlooker); ok {
		return o.Outlook(r)
	}
	return 0, nil
}

// CloseIdle calls base's CloseIdleConnections if it has that method. http.Client finds it
// only on the outermost layer, so each layer forwards it.
func CloseIdle(base http.RoundTripper) {
	if c, ok := base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// CloseBody closes the body of a request that is not sent: a RoundTripper must close it
// in any case.
func CloseBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close()
	}
}
