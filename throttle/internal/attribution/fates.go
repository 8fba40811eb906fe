package attribution

import (
	"math"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	// chance is how likely refusals in a row may be by chance, from how often others
	// are refused, to be taken for the request's own. A larger one takes some of a
	// server that refuses a tenth at random for such, and starts others earlier than
	// that asked for; a smaller one holds up everybody once more for a few requests
	// that are refused together.
	chance = 1.0 / 5000

	memory = 512 // answers of which that is known
)

// Fates are how the last answers of requests that have limits in common came out, but
// for refusals of a request's own. They tell those: a refusal follows the request and
// not the rate when it is refused again though others were served since. One for a
// locked object is so, or one that is too large. The zero Fates have seen none.
type Fates struct {
	served, refused float64
	sent            meter.Instant // when the latest request was sent that was served
	teaching        *teaching     // nil: none
}

// A Request is what is known of one request that was refused, from its first refusal
// to its end, or of all requests for one object, from its first refusal until it is
// served. The zero Request was not refused.
type Request struct {
	refused int           // times in a row
	counted int           // of these, in Fates
	heard   meter.Instant // the last of these
	taught  *teaching     // that it had a part in; nil: none
	part    int           // refusals of it that teaching counts
}

// A teaching counts the refusals that a model has known since it knew nothing. When
// all of them prove to be requests' own, it was none.
type teaching struct{ refusals int }

// FatesOf are those of a time when so many were served, and none refused.
func FatesOf(served int) Fates { return Fates{served: float64(min(served, memory))} }

// Served notes that a request was served that was sent at sent.
func (f *Fates) Served(sent meter.Instant) {
	f.sent = max(f.sent, sent)
	if f.served++; f.served+f.refused > memory {
		f.served, f.refused = f.served/2, f.refused/2
	}
}

// A Refused says of what a refusal is one more.
type Refused struct {
	Object  *Request // nil: not known
	Request *Request
	Fresh   bool // nothing was refused since the model that learns from refusals knew nothing
	Others  bool // it was for requests under way
}

// Refused takes in a refusal. It returns whose own it is, the object's or the
// request's, nil if neither's, and whether the model has nothing left then that others
// have taught.
func (f *Fates) Refused(now meter.Instant, r Refused) (own *Request, untaught bool) {
	for _, o := range [...]*Request{r.Object, r.Request} {
		if o == nil {
			continue
		}
		if own == nil && !r.Others && f.follows(o) {
			own = o
		}
		o.heard = now
		o.refused++
	}
	if own != nil {
		return own, f.recant(own, r)
	}
	f.refused++
	if r.Fresh {
		f.teaching = new(teaching)
	}
	if f.teaching != nil {
		f.teaching.refusals++
	}
	for _, o := range [...]*Request{r.Object, r.Request} {
		if o != nil {
			o.counted++
			o.teach(f.teaching)
		}
	}
	return nil, false
}

// follows reports whether one more refusal follows r.
func (f *Fates) follows(r *Request) bool {
	return r.refused > 0 && f.sent > r.heard && math.Pow(f.share(r.counted), float64(r.refused+1)) < chance
}

// Refusals is how many times in a row r was refused.
func (r *Request) Refusals() int { return r.refused }

// Heard is when r was refused last.
func (r *Request) Heard() meter.Instant { return r.heard }

// Served notes that one for the object was served that was sent at sent.
func (r *Request) Served(sent meter.Instant) {
	if sent > r.heard {
		*r = Request{}
	}
}

// share is that of refusals, but for those of one request, which had so many. It
// is zero where no other was refused, however few were served: a prior would hold up
// the others for a second pause, and for a third, beside a request that is refused
// among the first of all.
func (f *Fates) share(its int) float64 {
	refused := max(0, f.refused-float64(its))
	return refused / max(1, f.served+refused)
}

// teach notes that a refusal of r has a part in t.
func (r *Request) teach(t *teaching) {
	if r.taught != t {
		r.taught, r.part = t, 0
	}
	r.part++
}

// recant takes back the part of own in what was learned; what a request takes back is its
// object's as well. It reports whether nothing is left of that.
func (f *Fates) recant(own *Request, r Refused) bool {
	if own.taught == nil || own.taught != f.teaching || own.part == 0 {
		return false
	}
	part := min(own.part, f.teaching.refusals)
	f.teaching.refusals -= part
	own.part = 0
	if o := r.Object; o != nil && o != own && o.taught == own.taught {
		o.part = max(0, o.part-part)
	}
	if o := r.Request; o != own && o.taught == own.taught {
		o.part = 0
	}
	return f.teaching.refusals == 0
}
