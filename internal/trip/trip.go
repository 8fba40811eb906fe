// Package trip is what the layers of a chain know together about one request: a Trip.
// The first layer that gets a request makes its trip, and ends it. A layer whose base is
// another layer of ours hands the trip on together with the request (Room). If somebody
// else's RoundTripper is between two layers, the trip is in the request's context, and
// the layer below finds it there (Begin).
package trip

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/notsent"
)

// Layer names the layers in the order in which a request passes them in [weir.New].
//
// [weir.New]: https://pkg.go.dev/github.com/weirhttp/weir#New
type Layer uint8

const (
	None     Layer = iota
	Door           // breaker.Door
	Retry          // retry.Transport
	Throttle       // throttle.Transport
	Meter          // breaker.Meter
	Wire           // retry.Wire
	nowhere        // in Trip.at: no layer may take the trip from a context
)

// Cause says why an attempt was ended from our side. HTTP/2 reports only
// context.Canceled, so it must be noted where it is decided.
type Cause uint32

const (
	NoCause        Cause = iota // we did not end it
	CallerDone                  // the caller's context ended
	AttemptTimeout              // it took longer than retry.Wire allows
	LostHedge                   // the other attempt answered first
)

// Request is what all attempts of one request share, also those of hedges.
type Request struct {
	Entry  *hosts.Entry    // the host's record; its Key is the canonical host, unless it is the overflow
	Caller context.Context // the caller's, for hooks and for judging deadlines. It does not change: see Over
	others atomic.Bool     // an attempt of a hedge, or of others with our context, may have been sent; see split
	sent   bool            // another attempt may have been sent. The trip of a hedge does not use it
	first  Layer           // the layer that made the trip
}

// Trip is what is known of a sequence of attempts, one after the other. A hedge
// runs at the same time and has a Trip of its own (Fork). A field is written only by the
// layer that its comment names, before that calls its base or after its base returned.
// A Trip is therefore used by one goroutine at a time; only its use as a context is safe
// for others, whoever still has the request.
//
// A Trip is also a context, which spares an allocation: see Over.
type Trip struct {
	*Request
	Order       uint64        // throttle: the place in the order of arrival (hosts.Table.Arrive). Retries keep it, and so do not queue behind later requests. Zero: it has not come to a queue yet
	Grant       any           // throttle: what the newest attempt was granted. throttle.Settle finds it here, and it is an Ear. Before the first: what Box.Grant was given
	rare        *rare         // nil: all of it is zero. Only what rarely returns may be changed, as it may else be that of many trips
	clock       time.Duration // see Clock: one more than that; zero: it was not read
	Number      int32         // retry: which attempt of the request this is, from 1; 0 without a retry layer
	Hedge       bool          // retry: this is a hedge, which does not queue: it is sent if there is room now
	Throttled   bool          // throttle: the answer just returned was throttled, and the next attempt of this trip will wait as long as it says. retry clears it before each attempt
	Probe       bool          // breaker: the Door let it in as the half-open candidate, or the attempt just made was a probe
	Raced       bool          // retry: the request of this attempt has a context of its own, by which one of two attempts is ended. retry clears it before each attempt
	Patience    Patience      // breaker: what a Meter that was asked for its outlook said of a wait for the circuit
	Unprocessed bool          // Wire: there is proof that the server processed nothing of the attempt that just failed; retry clears it before each attempt
	Yields      bool          // throttle: a Meter that would make this attempt wait returns a Yield instead, so that the throttle can give back what it holds meanwhile
	Stage       Stage         // Wire: of the attempt that just failed; retry clears it before each attempt
	departed    bool          // this attempt was handed to the base, at clock
	found       Layer         // the outermost layer that found it in a context; None: each was handed it
	copied      bool          // r is used
	astray      bool          // see Steady
	cause       atomic.Uint32 // a Cause
	at          uint32        // the Layer that offers the trip to those below (At), and split. It is atomic: whoever kept our context may use it late
	r           http.Request  // memory for the first Copy
}

// Patience says whether a request may wait for the circuit of a host that fails.
type Patience uint8

const (
	Impatient Patience = iota // it was not said
	Patient                   // it may, as the host is failing. Its next attempt costs no retry and no allowance
	Doubtful                  // it may, but the host may be well, and its next attempt costs what any retry does
)

// rare has the fields that few requests need. Memory for them is taken only if one is set.
type rare struct {
	attempt, stall time.Duration // see Bound
	after          string        // see After
	held           time.Time     // see Held
	said           *Said         // see Hear
	waited         time.Duration // see Waited
	common         bool          // it is that of Timeouts, and the rest of it is zero
}

// rarely returns the rare part of t, and makes it if there is none of its own.
func (t *Trip) rarely() *rare {
	switch {
	case t.rare == nil:
		t.rare = new(rare)
	case t.rare.common:
		t.rare = &rare{attempt: t.rare.attempt, stall: t.rare.stall}
	}
	return t.rare
}

// Timeouts are how long Wire may let an attempt take, and a Read of its answer's body;
// negative: for ever. They do not change, and are those of any number of trips, which thus
// need no memory for them.
type Timeouts struct{ rare rare }

// NewTimeouts returns these two, which are not zero.
func NewTimeouts(attempt, stall time.Duration) *Timeouts {
	return &Timeouts{rare{attempt: attempt, stall: stall, common: true}}
}

// Bound says what Timeouts is to return. Retry calls it before an attempt.
func (t *Trip) Bound(by *Timeouts) {
	if t.rare == nil || t.rare.common {
		t.rare = &by.rare
	} else {
		t.rare.attempt, t.rare.stall = by.rare.attempt, by.rare.stall
	}
}

// Timeouts returns the timeouts of the request's attempts; zero: there is no retry layer, and
// they are Wire's own.
func (t *Trip) Timeouts() (attempt, stall time.Duration) {
	if t.rare == nil {
		return 0, 0
	}
	return t.rare.attempt, t.rare.stall
}

// After is the outcome, in words, of the attempt before this one; "": this is the
// request's first. The throttle counts retries by it.
func (t *Trip) After() string {
	if t.rare == nil {
		return ""
	}
	return t.rare.after
}

// Follow says what After is to return. Retry calls it.
func (t *Trip) Follow(outcome string) { t.rarely().after = outcome }

// Waited is how long this request has waited for budget, in all its attempts.
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

// Held is when this request first had to wait for its circuit; zero: it has not. The
// breaker's Patience counts from then.
func (t *Trip) Held() time.Time {
	if t.rare == nil {
		return time.Time{}
	}
	return t.rare.held
}

// Hold says what Held is to return. The breaker calls it.
func (t *Trip) Hold(since time.Time) { t.rarely().held = since }

// split is a bit of Trip.at. It says that a second request came to a layer below the
// trip's maker with our context, while the trip belongs to another request. It is above
// all Layers.
const split = 1 << 8

// Host is the record of the request's host.
func (t *Trip) Host() *hosts.Host { return &t.Entry.Value }

// Table is where the record is from. Chains with different tables have different trips.
func (t *Trip) Table() *hosts.Table { return t.Entry.Value.Table }

// Cause is why we ended the current attempt. It is safe for concurrent use.
func (t *Trip) Cause() Cause { return Cause(t.cause.Load()) }

// SetCause notes why we ended the current attempt. Only the first cause is kept until
// Next. It is safe for concurrent use.
func (t *Trip) SetCause(c Cause) { t.cause.CompareAndSwap(0, uint32(c)) }

// Next prepares the trip for another attempt. Retry calls it.
func (t *Trip) Next() {
	t.Number++
	t.Unread()
	t.Throttled = false
	t.Raced = false
	t.Unprocessed = false
	t.Keep(nil, nil)
	t.Stage = Answering
	if t.cause.Load() != 0 {
		t.cause.Store(0)
	}
}

// MarkSent notes that an attempt may have reached the network. The innermost
// layer of a chain calls it when it hands a request to a base that is not
// ours. If that is Wire, it calls it afterwards, unless it knows that nothing was written.
func (t *Trip) MarkSent() {
	if t.Hedge { // it runs beside the first attempt
		t.others.Store(true)
	} else {
		t.sent = true
	}
}

// returned is called when an attempt has ended for which layer l offered the trip. It ends
// the offer, as somebody may still have the context. If no layer took the trip, or a
// second request came, the RoundTripper between the layers may have sent any request and
// returned any answer. So what the trip knows does not tell of this answer, and is cleared.
func (t *Trip) returned(l Layer) {
	if at := atomic.SwapUint32(&t.at, uint32(nowhere)); at == uint32(l) || at&split != 0 {
		t.MarkSent()
		t.Throttled, t.Unprocessed, t.Probe = false, false, false
		t.Stage = Answering
	}
}

// Sent reports whether any attempt of the request may have reached the network. It is
// called for the trip that Begin made, not for that of a hedge, when all attempts have
// ended.
func (t *Trip) Sent() bool { return t.sent || t.others.Load() }

// Yield is the error that a Meter returns instead of waiting if Trip.Yields is set.
// Nothing was sent, and the request's body was left open. The throttle calls Wait, which
// returns when the circuit lets r come again. Then the throttle makes the attempt anew,
// and calls done after it. If Wait fails, its error is the refusal that the Meter would
// have returned.
type Yield interface {
	notsent.Refusal
	Wait(r *http.Request, t *Trip) (done func(), err error)
}

type key struct{}

// Box is the memory of a new trip. A layer that needs memory for each request, too,
// embeds a Box in a type of its own and allocates both at once (Link.New): one allocation
// of 640 bytes was measured to take 70 % of the time of two, of 480 and 208.
type Box struct {
	trip    Trip
	request Request
}

// Grant sets Trip.Grant before any attempt was granted. A Link.New may call it.
func (b *Box) Grant(g any) { b.trip.Grant = g }

func newBox() *Box { return new(Box) }

// carrier is a context with a trip, for an attempt that has a context of its own.
type carrier struct {
	context.Context
	t *Trip
}

// Value implements context.Context.
func (c *carrier) Value(k any) any {
	if k == (key{}) {
		return c.t
	}
	return c.Context.Value(k)
}

// Over returns the context ctx of the request, with t in it. That is t itself, because no layer
// of ours gives a request another context than the caller's. The exception is retry, where two
// attempts race (Raced): then Over returns another context.
func (t *Trip) Over(ctx context.Context) context.Context {
	if t.Raced {
		return &carrier{ctx, t}
	}
	return t
}

// Worn reports whether the request that came to layer l has t in its context already,
// because l or a layer above found t in one.
func (t *Trip) Worn(l Layer) bool { return t.found != None && t.found <= l }

// Copy returns a shallow copy of r with another context. For the first one, the memory is
// part of the trip.
func (t *Trip) Copy(r *http.Request, ctx context.Context) *http.Request {
	c := &t.r
	if t.copied {
		c = new(http.Request)
	}
	t.copied = true
	*c = *r.WithContext(ctx)
	return c
}

// Dress returns a copy of r with t in its context.
func (t *Trip) Dress(r *http.Request) *http.Request { return t.Copy(r, t.Over(r.Context())) }

// From returns the trip in a context, or nil. It may be another request's: see Begin.
func From(ctx context.Context) *Trip {
	t, _ := ctx.Value(key{}).(*Trip)
	return t
}

// Begin returns the trip of r for layer l of the chain whose hosts are in table. It is
// the trip that an outer layer of the same chain offers in r's context (At), or else a new
// one. If it is new, made is true, the returned request is a copy with the trip in its
// context, and the caller calls End when its call returns. In both cases the trip is
// then offered to the layers below l.
//
// A trip in the context belongs to r only if an outer layer of the same chain offers it
// and r goes to the same host. Somebody between the layers may make another request with
// our context, such as a source of tokens or a hook: it gets a trip of its own.
func Begin(r *http.Request, l Layer, table *hosts.Table) (_ *http.Request, t *Trip, made bool) {
	if t, made = begin(r, l, table, l, newBox); made {
		r = t.Dress(r)
	}
	return r, t, made
}

func begin(r *http.Request, l Layer, table *hosts.Table, offer Layer, fresh func() *Box) (t *Trip, made bool) {
	ctx := r.Context()
	if t := From(ctx); t != nil && t.Table() == table {
		if at := t.layer(); at < l && t.goesTo(r) && atomic.CompareAndSwapUint32(&t.at, uint32(at), uint32(offer)) { // else another was faster
			if !t.Worn(l) {
				t.found = l
			}
			return t, false
		}
		if t.first < l {
			t.others.Store(true) // the other request may be sent, perhaps for this one
			atomic.OrUint32(&t.at, split)
		}
	}
	b := fresh()
	b.trip.Request = &b.request
	b.trip.at = uint32(offer)
	q := &b.request
	q.Caller, q.first = ctx, l
	q.Entry = table.Of(r)
	return &b.trip, true
}

// goesTo reports whether r goes to the trip's host.
func (t *Trip) goesTo(r *http.Request) bool {
	return t.Entry.Overflow || hosts.Key(r) == t.Entry.Key
}

// At offers the trip, in the request's context, to layers of the same chain below l.
func (t *Trip) At(l Layer) { atomic.StoreUint32(&t.at, uint32(l)) }

func (t *Trip) layer() Layer { return Layer(atomic.LoadUint32(&t.at) &^ split) }

// End is called once by the layer that made the trip, when its call returns with err. It
// releases the host's record. It returns err, made to satisfy errors.Is(err, notsent.Err)
// if nothing was sent, and not to satisfy it otherwise.
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

// Fork returns a new trip for a hedge of the same request, whose timeouts Bound is to say. It
// has no End of its own.
func (t *Trip) Fork() *Trip {
	return &Trip{Request: t.Request, Number: t.Number, Hedge: true, Raced: true, at: uint32(t.layer())}
}
