package attribution

import (
	"math"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	// chance is how unlikely refusals in a row have to be, given how often other requests
	// are refused, to be taken for the request's own. With a larger value, some refusals of
	// a server that refuses a tenth of all requests at random are taken for such, and
	// other requests start earlier than the server asked for. With a smaller one, all
	// requests wait once more if a few are refused together.
	chance = 1.0 / 5000

	// memory is how many answers are remembered: later ones count twice as much as those
	// before, so that a server which has changed is judged anew.
	memory = 512
)

// Fates count how many requests that share limits were served and refused, without the
// refusals that are a request's own. They find out which those are: a refusal is the
// request's own, and not caused by the rate, if the request is refused again although others
// were served meanwhile. So it is with requests for a locked object, or that are too large.
// The zero Fates have seen no answer.
type Fates struct {
	served, refused float64       // of the last answers, about memory
	sent            meter.Instant // when the latest request was sent that was served
	teaching        *teaching     // nil: there was no refusal since Refused.Fresh
}

// A Request is what is known of one request that was refused, from its first refusal
// to its end. It may also stand for all requests for one object, from the first refusal until
// one is served. The zero Request was not refused.
type Request struct {
	refused int           // how many times in a row
	counted int           // how many of these Fates.refused has
	heard   meter.Instant // when the last of these was heard
	taught  *teaching     // the newest one that counts refusals of it; nil: none
	part    int           // how many refusals of it taught counts
}

// A teaching counts the refusals from which the caller's model of the limit has learned since
// it knew nothing. If all of them prove to be requests' own, the model has learned nothing.
type teaching struct{ refusals int }

// FatesOf returns the Fates after so many requests were served and none refused.
func FatesOf(served int) Fates { return Fates{served: float64(min(served, memory))} }

// Served notes that a request was served that was sent at sent.
func (f *Fates) Served(sent meter.Instant) {
	f.sent = max(f.sent, sent)
	if f.served++; f.served+f.refused > memory {
		f.served, f.refused = f.served/2, f.refused/2
	}
}

// A Refused says what a refusal was for.
type Refused struct {
	Object  *Request // the object of the request; nil: not known
	Request *Request // the request
	Fresh   bool     // the caller's model of the limit has learned from no refusal yet
	Others  bool     // other requests that were under way are the reason
}

// Refused notes a refusal. It returns whose own it is: the object's, the request's, or nil if
// it is neither's. untaught says that all refusals from which the caller's model has learned
// were requests' own.
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

// follows reports whether one more refusal of r is r's own.
func (f *Fates) follows(r *Request) bool {
	return r.refused > 0 && f.sent > r.heard && math.Pow(f.share(r.counted), float64(r.refused+1)) < chance
}

// Refusals is how many times in a row r was refused.
func (r *Request) Refusals() int { return r.refused }

// Heard is when r was refused last.
func (r *Request) Heard() meter.Instant { return r.heard }

// Served notes that a request for the object r was served, which was sent at sent.
func (r *Request) Served(sent meter.Instant) {
	if sent > r.heard {
		*r = Request{}
	}
}

// share is which part of the answers are refusals, without those of one request, which had
// so many. It is zero if no other was refused, even if few were served. If it were assumed to
// be higher at first, a request that is refused among the very first would make the others
// wait for a second and a third pause.
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

// recant removes the refusals of own from the teaching. What is removed for a request is
// removed for its object, too. recant reports whether the teaching has no refusals left.
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
