package throttle

import (
	"slices"

	"github.com/weirhttp/weir/throttle/internal/caller"
	"github.com/weirhttp/weir/throttle/internal/concurrency"
	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/store"
)

// How many requests at a time a host bears is learned by all processes of a fleet
// together, once one of them was refused for that: then requests of the kind take places
// in the Store, and what one process learns of their number counts for all of them. A host
// that serves all costs nothing.

// callForWindow is counted with the refusals to tell all processes that the host bears few
// requests at a time. It is more than are refused in the hour that a count lasts; that it is
// no count of its own spares hosts which never refuse.
const callForWindow = 1 << 24

// sharedWindow is what the processes know of an endpoint together. Its owner guards it.
type sharedWindow struct {
	*fleet.Window
	concurrency.Joint
	key  fleet.Key
	word int64 // of the Window, that was taken over last
	heed int64 // calls of others that were heeded
}

// windowKey is what p draws on in the Store because the requests at a time of its endpoint are
// limited. Beside budgets it draws on nothing, because with two keys nothing can be booked
// ahead. The lock is held.
func (p *attempt) windowKey(a *ask, ds []fleet.Key) (fleet.Key, bool) {
	k := p.endpoint
	budgeted := func(d fleet.Key) bool { return d.InFlight > 0 || len(d.Rates) > 0 }
	if !k.slow.Crowds() && !k.shares() && !k.called() || k.learner.terms.pausesOnly || len(ds) == store.MaxParts || slices.ContainsFunc(ds, budgeted) {
		return fleet.Key{}, false
	}
	if k.window() == nil {
		id := caller.Digest(a.fleetName(k.learner) + " " + k.key.String())
		w := fleet.NewWindow(id)
		made(&k.paths).shared = &sharedWindow{Window: w, key: fleet.Key{
			ID: storeKey(p.record.host, "~"+id, p.record.part), Name: p.record.key, Window: w, Tallies: w.Tallies(), AtOnce: true,
		}}
	}
	return k.window().key, true
}

// window is what the processes know of k together; nil: nothing.
func (k *endpoint) window() *sharedWindow {
	if k.paths == nil {
		return nil
	}
	return k.paths.shared
}

// shares reports whether k's limit on requests at a time is that of all processes.
func (k *endpoint) shares() bool {
	w := k.window()
	return w != nil && w.Shares()
}

// called reports whether others found that the host bears few requests at a time, of which k
// has not heard.
func (k *endpoint) called() bool {
	e := k.evidenceNow()
	if e == nil || e.peers == nil || e.peers.calls == 0 {
		return false
	}
	w := k.window()
	return w == nil || w.heed != e.peers.calls
}

// call lets the other processes know that there is a window.
func (p *attempt) call() {
	if e := p.endpoint.evidenceNow(); e != nil && e.peers != nil {
		o := e.peers
		p.record.t.fleet.Add(p.record.shared().ID, []*fleet.Tally{o.vain, o.waiting}, []int64{callForWindow, 0})
	}
}

// windowHeard takes in what the Store said of the window when it was asked for a place, and
// g was granted; nil: nothing was. The lock is held.
func (p *attempt) windowHeard(now instant, g *fleet.Grant) {
	k := p.endpoint
	w := k.window()
	switch {
	case w == nil || !w.Heard():
		return
	case g.Alone():
		w.Alone(now.Add(fleet.Returns))
		return
	}
	w.Lasts(k.slow.Trip())
	news := k.takeWindow(now)
	if w.word != 0 && k.called() {
		w.heed = k.evidenceNow().peers.calls
	}
	x, _ := w.Width()
	switch most, _ := w.Most(); {
	case news:
	case most > x.Most: // it grew, and nobody has learned anything else meanwhile
		p.widen(now)
	case most == 0 && k.slow.Crowds():
		w.Take(now, k.slow.Allowed()*max(1, k.learner.terms.Members), false) // the others have about as many each
		p.widen(now)
		p.call()
	}
}

// takeWindow takes over what was heard of the window, and reports whether it was news.
func (k *endpoint) takeWindow(now instant) (news bool) {
	if k == nil || k.window() == nil {
		return false
	}
	w := k.window()
	x, word := w.Width()
	if word == w.word {
		return false
	}
	w.word = word
	w.Take(now, x.Most, x.Shown)
	k.slow.Agree(now, x.Most)
	return true
}

// crowded learns from a request that was refused because others were under way.
func (k *endpoint) crowded(now instant, g *ticket) {
	if n := g.booked.Among(); n > 0 && k.shares() {
		level, _ := k.window().Level()
		k.window().Crowded(now, g.sent, max(n, level))
		return
	}
	k.slow.Crowded(now, g.sent)
}

// windowLearned lets the other processes know what the answer to p taught. The lock is held.
func (p *attempt) windowLearned(now instant, good bool) {
	if p.endpoint == nil || !p.endpoint.shares() || p.shared().Among() == 0 {
		return
	}
	w, f := p.endpoint.window(), p.record.t.fleet
	if good {
		all, full := w.Level()
		w.Answered(now, p.permit.Granted, p.endpoint.slow.Usual(), int(f.Flies(w.key)), all, full)
	}
	x, _ := w.Width()
	most, shown := w.Most()
	switch {
	case most > x.Most && shown: // one more is tried once the Store was asked what the others learned
	case most != x.Most || shown && !x.Shown:
		p.widen(now)
	default:
		f.Keep(w.key.ID, w.Window)
	}
}

// widen tells the other processes what the window has come to.
func (p *attempt) widen(now instant) {
	k := p.endpoint
	w := k.window()
	most, shown := w.Most()
	k.slow.Agree(now, most)
	p.record.t.fleet.Widen(w.key.ID, w.Window, fleet.Width{Most: most, Shown: shown, Patience: k.slow.Patience()})
	_, w.word = w.Width()
}

// leaveWindow gives back p's place in the window that the processes share, if it has one: it
// counts until the headers of the answer.
func (p *attempt) leaveWindow() {
	if g := p.shared(); g.Windowed() {
		g.Done()
	}
}
