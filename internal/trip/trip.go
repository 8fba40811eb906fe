// Package trip is what the layers of a chain know together about one request.
// Layers that know one another hand it on beside the request; through the code
// of others it travels in the request's context. The first of our layers that
// meets a request makes it and ends it; the others find it.
package trip

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/notsent"
)

// Layer names the rooms in the order in which a request walks them.
type Layer uint8

const (
	None Layer = iota
	Door
	Retry
	Throttle
	Meter
	Wire
	nowhere // of a trip that nobody is to find in a context
)

// Cause says why an attempt was ended from our side. HTTP/2 reports only
// context.Canceled, so it must be noted where it is decided.
type Cause uint32

const (
	NoCause        Cause = iota
	CallerDone           // the caller's context ended
	AttemptTimeout       // retry.Wire's clock
	LostHedge            // the other attempt answered first
)

// Request is what all attempts of one request share.
type Request struct {
	Entry  *hosts.Entry // the host's record; its Key is the canonical host
	Table  *hosts.Table
	Caller context.Context // the caller's, for hooks and for judging deadlines
	sent   atomic.Bool     // by a hedge, or by others; see split
	first  Layer           // that made its trip
}

// Trip is one line of attempts, one after the other. A hedge runs beside it
// and has a Trip of its own (Fork). Fields are written by the layer named,
// before it calls its base, or after its base returned.
//
// It is a context, too: that of the request it was first dressed for.
type Trip struct {
	*Request
	context.Context               // see Over; nil: none yet
	AttemptTimeout  time.Duration // retry: for Wire; zero: Wire's own; negative: none
	StallTimeout    time.Duration // likewise
	Order           uint64        // arrival, in nanoseconds or a few more: retries keep it, so they keep their place. Zero: it has not come to a queue yet
	Grant           any           // throttle: of the newest attempt; Settle finds it here, and it is an Ear. Before the first: what Box.Grant said
	rare            *rare         // nil: nothing of it
	clock           time.Time     // see Depart
	Number          int32         // retry: which attempt of the request this is, from 1; 0 without a retry layer
	Hedge           bool          // retry: takes room now or never queues
	Throttled       bool          // throttle: the answer just returned was throttled, and the next call of this trip will wait it out. retry clears it before each attempt
	Probe           bool          // breaker: the Door let it in as the half-open candidate, or the attempt just made was a probe
	Patient         bool          // breaker: a Meter, asked for its outlook, found the host failing and that this request may wait for it: its next attempt costs nothing
	Doubtful        bool          // breaker: likewise, but the host may be well, and its next attempt costs what it always does
	Unprocessed     bool          // Wire: proof that the server processed nothing of the attempt that just failed; retry clears it before each attempt
	Yields          bool          // throttle: a Meter that would make this attempt wait returns a Yield instead, so that nothing is held meanwhile
	Stage           Stage         // Wire: of the attempt that just failed; retry clears it before each attempt
	departed        bool          // this attempt was handed to the base, at clock
	sent            bool          // not by a hedge
	found           Layer         // the outermost that found it in a context; None: none had to
	copied          bool          // r is used
	cause           atomic.Uint32
	at              uint32 // Layer, and split; atomic because a late user of our context may ask
	r               http.Request
}

// rare is what few requests have: where all goes well it costs no memory.
type rare struct {
	after  string        // see After
	held   time.Time     // see Held
	said   *Said         // see Hear
	waited time.Duration // see Waited
}

// rarely returns the rare part of t, made if need be.
func (t *Trip) rarely() *rare {
	if t.rare == nil {
		t.rare = new(rare)
	}
	return t.rare
}

// After is the outcome, in words, that this attempt follows; "": it is the
// request's first.
func (t *Trip) After() string {
	if t.rare == nil {
		return ""
	}
	return t.rare.after
}

// Follow says what After is to return. Retry calls it.
func (t *Trip) Follow(outcome string) { t.rarely().after = outcome }

// Waited is the sum of this request's waits for budget.
func (t *Trip) Waited() time.Duration {
	if t.rare == nil {
		return 0
	}
	return t.rare.waited
}

// Wait adds to what Waited returns. The throttle calls it.
func (t *Trip) Wait(d time.Duration) {
	if d != 0 {
		t.rarely().waited += d
	}
}

// Held is when this request first had to wait for its circuit, from when its
// Patience counts; zero: it has not.
func (t *Trip) Held() time.Time {
	if t.rare == nil {
		return time.Time{}
	}
	return t.rare.held
}

// Hold says what Held is to return. The breaker calls it.
func (t *Trip) Hold(since time.Time) { t.rarely().held = since }

// split, in Trip.at, says that another request than the one which has the trip
// came to a layer below the trip's maker with our context.
const split = 1 << 8

// Host is the canonical host of the request.
func (t *Trip) Host() *hosts.Host { return &t.Entry.Value }

// Cause is why the current attempt was ended by us.
func (t *Trip) Cause() Cause { return Cause(t.cause.Load()) }

// SetCause notes why; the first word stands until Next.
func (t *Trip) SetCause(c Cause) { t.cause.CompareAndSwap(0, uint32(c)) }

// Next prepares the trip for another attempt.
func (t *Trip) Next() {
	t.Number++
	t.Clock(time.Time{})
	t.Throttled = false
	t.Unprocessed = false
	t.Keep(nil, nil)
	t.Stage = Answering
	if t.cause.Load() != 0 {
		t.cause.Store(0)
	}
}

// Clock notes a reading of the clock for Depart, which may take it if nothing
// is waited for and no user's code is called in between: whoever does that
// calls Clock with zero.
func (t *Trip) Clock(now time.Time) { t.clock, t.departed = now, false }

// Reading is the time, read once for it and for Depart. What Clock says holds for
// it, too.
func (t *Trip) Reading() time.Time {
	if t.clock.IsZero() {
		t.clock = time.Now()
	}
	return t.clock
}

// Depart is called by Wire when it hands an attempt to the base. It returns
// the time, which OnWire repeats.
func (t *Trip) Depart() time.Time {
	t.departed = true
	return t.Reading()
}

// OnWire is when this attempt was handed to the base; zero if it was not.
func (t *Trip) OnWire() time.Time {
	if !t.departed {
		return time.Time{}
	}
	return t.clock
}

// Queued is called by Wire when an attempt that was handed to the base had to
// wait there for a connection, for d: only then it departed. If it never got
// one and its caller left, it did not depart.
func (t *Trip) Queued(d time.Duration, began bool) {
	t.clock = t.clock.Add(d)
	t.departed = t.departed && began
}

// MarkSent notes that an attempt may have reached the network. The innermost
// layer of a chain calls it when it hands a request to a base that is not
// ours; Wire, which has evidence, calls it unless nothing was written.
func (t *Trip) MarkSent() {
	if t.Hedge { // it runs beside the first attempt
		t.Request.sent.Store(true)
	} else {
		t.sent = true
	}
}

// returned is called when an attempt has ended that layer l offered, and ends
// the offer: somebody may still have the context. If nobody took the trip, or
// others came as well, whoever stands between two layers has sent what he likes,
// and what the trip knows says nothing about the answer.
func (t *Trip) returned(l Layer) {
	if at := atomic.SwapUint32(&t.at, uint32(nowhere)); at == uint32(l) || at&split != 0 {
		t.MarkSent()
		t.Throttled, t.Unprocessed, t.Probe = false, false, false
		t.Stage = Answering
	}
}

// Sent reports whether any attempt may have reached the network. It is asked
// of the request's own trip, when its attempts have ended.
func (t *Trip) Sent() bool { return t.sent || t.Request.sent.Load() }

// Yield is what a Meter returns instead of waiting if Trip.Yields is set.
// Nothing was sent, and the request's body was left open. Wait waits until
// the circuit lets r come again; then the attempt is made anew, after which
// done is called. An error of Wait is the refusal.
type Yield interface {
	notsent.Refusal
	Wait(r *http.Request, t *Trip) (done func(), err error)
}

type key struct{}

// Box is the memory of a new trip. A layer that needs memory for each request, too,
// embeds one in a type of its own and makes that (Link.New): one allocation of 640
// bytes takes 70 % of the time of two, of 480 and 208.
type Box struct {
	trip    Trip
	request Request
}

// Grant says what Trip.Grant is as long as no attempt was granted.
func (b *Box) Grant(g any) { b.trip.Grant = g }

func newBox() *Box { return new(Box) }

// Value is context.Context's.
func (t *Trip) Value(k any) any {
	if k == (key{}) {
		return t
	}
	return t.Context.Value(k)
}

// carrier is a context with a trip that is already another one's context.
type carrier struct {
	context.Context
	t *Trip
}

// Value is context.Context's.
func (c *carrier) Value(k any) any {
	if k == (key{}) {
		return c.t
	}
	return c.Context.Value(k)
}

// Over returns ctx with t in it.
func (t *Trip) Over(ctx context.Context) context.Context {
	if t.Context == nil {
		t.Context = ctx
		return t
	}
	return &carrier{ctx, t}
}

// Worn reports whether layer l, to which t belongs as well, has a request that
// carries t in its context.
func (t *Trip) Worn(l Layer) bool { return t.found != None && t.found <= l }

// Copy returns a shallow copy of r with another context. The first is made in
// memory that came with the trip.
func (t *Trip) Copy(r *http.Request, ctx context.Context) *http.Request {
	c := &t.r
	if t.copied {
		c = new(http.Request)
	}
	t.copied = true
	*c = *r.WithContext(ctx)
	return c
}

// Dress returns a copy of r that carries t in its context.
func (t *Trip) Dress(r *http.Request) *http.Request { return t.Copy(r, t.Over(r.Context())) }

// From returns the trip of a context, or nil.
func From(ctx context.Context) *Trip {
	t, _ := ctx.Value(key{}).(*Trip)
	return t
}

// Begin returns the trip of r for layer l of the chain whose hosts table
// keeps: a new one, or the one that an outer layer of the chain offers, as it
// offers this one to those below (At). made tells; then the returned request is
// a copy that carries the trip, and the maker calls End when it returns.
//
// A trip found in the context belongs to r only if an outer layer of the same
// chain handed it on, to the same host. A request that somebody below made with
// our context (a token source, a hook) is another request and gets its own.
// Layers that know one another hand the trip on beside the request (Onward).
func Begin(r *http.Request, l Layer, table *hosts.Table) (_ *http.Request, t *Trip, made bool) {
	if t, made = begin(r, l, table, l, newBox); made {
		r = t.Dress(r)
	}
	return r, t, made
}

func begin(r *http.Request, l Layer, table *hosts.Table, offer Layer, fresh func() *Box) (t *Trip, made bool) {
	ctx := r.Context()
	if t := From(ctx); t != nil && t.Table == table {
		if at := t.layer(); at < l && t.goesTo(r) && atomic.CompareAndSwapUint32(&t.at, uint32(at), uint32(offer)) { // else another was faster
			if !t.Worn(l) {
				t.found = l
			}
			return t, false
		}
		if t.first < l {
			t.Request.sent.Store(true) // it will be, perhaps
			atomic.OrUint32(&t.at, split)
		}
	}
	b := fresh()
	b.trip.Request = &b.request
	b.trip.at = uint32(offer)
	q := &b.request
	q.Table, q.Caller, q.first = table, ctx, l
	q.Entry = table.Of(r)
	return &b.trip, true
}

// goesTo reports whether r goes to the trip's host.
func (t *Trip) goesTo(r *http.Request) bool {
	return t.Entry.Overflow || hosts.Key(r) == t.Entry.Key
}

// At offers the trip to layers below l, if their chain is the same.
func (t *Trip) At(l Layer) { atomic.StoreUint32(&t.at, uint32(l)) }

func (t *Trip) layer() Layer { return Layer(atomic.LoadUint32(&t.at) &^ split) }

// End is called by the layer that made the trip, when it returns. It frees
// the host's record and makes an error claim that nothing was sent if, and
// only if, that is so.
func (t *Trip) End(err error) error {
	t.Entry.Release()
	switch {
	case err == nil:
		return nil
	case t.Sent():
		return notsent.Deny(err)
	}
	return notsent.Wrap(err)
}

// Fork returns a trip of its own for a hedge of the same request.
func (t *Trip) Fork() *Trip {
	return &Trip{
		Request: t.Request, Number: t.Number, Hedge: true,
		AttemptTimeout: t.AttemptTimeout, StallTimeout: t.StallTimeout,
		at: uint32(t.layer()),
	}
}
