package throttle

import (
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/caller"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/learn"
)

// Limits that nobody configured or stated are found by what is sent and refused. In a
// fleet all processes find them together: the Store counts what all send and what all
// were refused, and each process learns from both as though all of that were its own.
// So they believe in much the same limits, know how much of them is used, and draw on
// them as on one account: who takes something for free that another one took meanwhile
// is refused by the Store, hears of it, and thinks again.

// Units of what is counted beside requests. No request costs any.
const (
	refusals = "refusals"
	askedFor = "asked ms" // milliseconds that refusals asked to wait, together
)

// fewUnits may all have been sent lately. Of more that were counted before a process
// came nobody knows when they were sent. A slow start lets a process have as many under way,
// so that processes which begin together hear of one another.
const fewUnits = 64

// peers is what evidence knows of other processes. Its owner guards it. A nil peers
// is that of evidence which shares nothing.
type peers struct {
	of                  *evidence
	sent, vain, waiting *fleet.Tally // units, refusals, milliseconds
	members             int
	maxPause            time.Duration
	cooldown            **cooldown.Cooldown      // of who draws on the evidence
	waits               *fleet.Tally             // how often processes asked that had no room, and no more than their part
	ask                 func(waits *fleet.Tally) // asks the Store what others did, and counts that if waits is not nil
	heard               func()                   // takes in what the Store said that lets a request wait; the lock is not held
	follower

	open  int64   // own units that were granted here, and are on their way to the Store
	met   bool    // the Store has said how many there were before
	units int64   // that others have sent, as far as the evidence was told
	lost  int64   // refusals of others, likewise
	wait  int64   // milliseconds that these asked for
	tell  int64   // own refusals that the Store was not told of
	told  int64   // milliseconds that these asked for
	calls int64   // of others, to learn together how many requests at a time the host bears
	asked instant // when the Store was asked last
	lead  fleet.Lead
	bad   int64 // own refusals that the others were told of

	alone  bool           // the last request went without the Store
	owed   float64        // units that the others may send before this process may again, then
	jitter func() float64 // uniform in [0,1)
}

// peersOf is what e, from which p learns, knows of other processes; nil: it shares nothing,
// as another limit is known, or l has too many counts.
func (p *attempt) peersOf(e *evidence, whose string) *peers {
	k, l := p.endpoint, p.endpoint.learner
	plan := p.record.t.budgets.Load().whole(p.record.routes)
	if e == nil || l.terms.pausesOnly || len(k.quotas) > 0 || len(plan.specs) > 0 {
		return nil
	}
	if e.peers == nil && l.tallies < mostTallies {
		l.tallies++
		e.peers = p.newPeers(e, whose)
	}
	return e.peers
}

func (p *attempt) newPeers(e *evidence, whose string) *peers {
	f := p.endpoint.found()
	o := &peers{of: e, members: f.terms.Members, maxPause: f.terms.MaxPause, cooldown: &f.cooldown, jitter: f.terms.jitter}
	if f.only != nil {
		whose += " " + f.only.kinds[0].key.String()
	}
	id := caller.Digest(whose)
	o.sent, o.vain, o.waiting = fleet.NewTally("s"+id, requests), fleet.NewTally("r"+id, refusals), fleet.NewTally("w"+id, askedFor)
	o.waits = o.sent.Questions()
	key := p.record.shared(append(o.tallies(), o.waits)...)
	o.ask = p.asks(key, &f.account, o.hear)
	o.follows(p.record.t.fleet, key, p.locked(&f.account))
	return o
}

func (o *peers) tallies() []*fleet.Tally { return []*fleet.Tally{o.sent, o.vain, o.waiting} }

// foundTallies are those of what p draws on that is found. The lock is held.
func (p *attempt) foundTallies(now instant, a *ask) []*fleet.Tally {
	e := p.endpoint.evidenceNow()
	o := p.peersOf(e, a.fleetName(p.endpoint.learner))
	if o == nil {
		return nil
	}
	most := int64(fleet.Unbounded)
	if n, known := o.sent.Count(); known {
		if room := e.Room(now); room < learn.Unlimited {
			most = n + max(1, o.open) + int64(room)
		}
	}
	o.sent.BoundWhile(most, o.vain)
	return o.tallies()
}

// booking notes that a unit of p's is on its way to the Store.
func (p *attempt) booking() *peers {
	e := p.endpoint.evidenceNow()
	if e == nil || e.peers == nil {
		return nil
	}
	e.peers.open++
	return e.peers
}

// booked takes in what was granted; nil: nothing was.
func (o *peers) booked(now instant, g *fleet.Grant) {
	if o == nil {
		return
	}
	o.open--
	o.hear(now)
	switch {
	case g == nil:
		o.lead.Drew(-1)
	case o.open == 0 && !g.Alone():
		o.lead.Counted()
	}
	switch alone := g.Alone(); {
	case alone && !o.alone && o.members > 0:
		o.alone, o.owed = true, math.Floor(o.jitter()*float64(o.members)) // so that not all go first
	case g != nil && !alone:
		o.alone, o.stirs = false, false
	}
}

// lone lets the others go first while the Store is gone: what this process sends they
// are taken to send, too, each of them, as soon as there is room for it. So it goes on with
// its part of what it believes in. It reports whether their turn is over.
func (o *peers) lone(now instant) bool {
	if o == nil || !o.alone || !o.of.Believes() {
		return true
	}
	room := o.of.Hope(now)
	n := min(int(o.owed), room)
	o.of.Supposed(now, n)
	o.owed -= float64(n)
	return n < room
}

// hear lets the evidence learn what other processes have sent and were refused.
func (o *peers) hear(now instant) {
	units, known := o.sent.Others()
	if !known {
		return
	}
	lost, _ := o.vain.Others()
	o.calls, lost = lost/callForWindow, lost%callForWindow
	wait, _ := o.waiting.Others()
	if !o.met {
		if o.met = true; units > fewUnits {
			o.units, o.lost, o.wait = units, lost, wait
		}
	}
	if o.stirs = units > o.units || lost > o.lost; units > o.units {
		o.of.Elsewhere(now, int(units-o.units))
		o.units = units
	}
	if n := lost - o.lost; n > 0 {
		made(o.cooldown)
		asked := each(wait-o.wait, n)
		if !o.of.spared && asked > longHint { // as of own ones: it is the first of all processes
			o.of.spared = true
			o.of.ElsewhereUnsent()
			n--
		}
		o.of.ElsewhereRefused(now, int(n), asked, o.maxPause)
		o.lost, o.wait = lost, max(wait, o.wait)
	}
	o.of.Heard(now)
	o.stirs = o.stirs || o.of.Lands() != never
}

// each is for how long each of n refusals asked that asked for so many milliseconds
// together, in whole seconds as servers do; negative: for nothing.
func each(ms, n int64) time.Duration {
	if ms <= 0 {
		return -1
	}
	return (time.Duration(ms/n)*time.Millisecond + time.Second - 1).Truncate(time.Second)
}

// refused notes a refusal that others are to know of.
func (o *peers) refused(now instant, said cooldown.Hint) {
	if o != nil {
		o.tell++
		o.bad++
		o.stirs = true
		o.follow(now)
		if said.Known {
			o.told += said.Wait.Milliseconds()
		}
	}
}

// tellRefused lets the other processes know of refusals. The lock is held.
func (p *attempt) tellRefused() {
	if e := p.endpoint.evidenceNow(); e != nil && e.peers != nil && e.peers.tell > 0 {
		o := e.peers
		p.record.t.fleet.Add(p.record.shared().ID, []*fleet.Tally{o.vain, o.waiting}, []int64{o.tell, o.told})
		o.tell, o.told = 0, 0
	}
}

// counted reports whether what was booked is counted for others.
func (o *peers) counted(g *fleet.Grant) bool {
	if o == nil {
		return false
	}
	_, known := g.Counts(o.sent)
	return known
}

// keptAlone is by how much more than this process sends each of the others is taken to send
// while the Store is gone. They do not send evenly, and nobody hears what the others are
// refused: with equal parts sixteen processes are served .89 of what there is and refused
// .96 times each in a window, with this .86 and .80.
const keptAlone = 1.25

// drew takes in that this process drew units, or gave them back if they are negative.
func (o *peers) drew(units float64) {
	if o != nil {
		if units > 0 { // booked notes if they are given back
			o.lead.Drew(units)
		}
		if o.alone {
			o.owed += units * float64(o.members-1) * keptAlone
		}
	}
}

// at is when it is the turn of this process, of what may be sent at at; or before that,
// when to ask again.
func (o *peers) at(now, at instant) instant {
	if o == nil {
		return at
	}
	room, x, k := o.of.Room(now), o.of.turns(), float64(o.members)
	if at <= now && (o.members == 0 || room == learn.Unlimited) {
		return at
	}
	ahead := o.ahead(max(x.Units, x.Burst, float64(room)))
	if at > now {
		o.lead.Lacks(now, o.alone)
		if ahead > 0 { // it had its part
			return o.asks(now, at, nil)
		}
		return o.asks(now, at, o.waits)
	}
	span := x.Per
	if x.Burst > 0 { // a bucket has no window: one unit for each
		span = time.Duration(k * float64(o.of.regain()))
	}
	share := float64(room) / k
	others, _ := o.sent.Others()
	lacks, _ := o.waits.Others()
	wait := o.lead.Wait(now, ahead+1-share, max(1, share), fleet.Turn(span, o.members), others, lacks)
	if wait <= 0 {
		return now
	}
	return o.asks(now, now.Add(wait), nil)
}

// ahead is by how many units this process is ahead of the others, of a limit of that size.
func (o *peers) ahead(size float64) float64 {
	n, _ := o.sent.Count()
	others, _ := o.sent.Others()
	good, all := n-others-o.bad, n-o.lost-o.bad // what was refused is nobody's part
	return o.lead.Ahead(good, all, max(1, float64(o.members)), size)
}

// turns is the limit that is drawn from in turns: the one that was found or, while none is
// likelier than the others, one with a long window.
func (e *evidence) turns() learn.Limit {
	if x, ok := e.found(); ok {
		return x
	}
	return learn.Limit{Per: time.Minute}
}

// asks asks the Store what others did, if it is time to, while requests wait until at, and
// returns when to see to it again. waits is nil if they only let others go first, or had their
// part. A fleet of the largest size asks a hundred times a second in all, a process ten times;
// and sooner where a refusal may be heard of. So all have much the same log: without that, those
// that wait learn late what others sent, and take it for sent lately.
func (o *peers) asks(now, at instant, waits *fleet.Tally) instant {
	if !o.of.Believes() {
		return at
	}
	pause := fleet.AskPause(o.members)
	next := max(min(o.asked.Add(pause), o.of.Lands()), o.asked.Add(pause/2))
	if next <= now {
		o.asked, next = now, now.Add(pause/2)
		o.ask(waits)
	}
	return min(at, next)
}
