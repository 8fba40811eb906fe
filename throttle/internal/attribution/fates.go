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
// to its end. The zero Request was not refused.
type Request struct {
	refused int           // times in a row
	counted int           // of these, in Fates
	heard   meter.Instant // the last of these
	taught  *teaching     // that it had a part in; nil: none
}

// A teaching is all refusals that a model has known since it knew nothing. When
// all requests that had a part in it prove to have refusals of their own, it was
// none.
type teaching struct{ requests int }

// FatesOf are those of a time when so many were served, and none refused.
func FatesOf(served int) Fates { return Fates{served: float64(min(served, memory))} }

// Served notes that a request was served that was sent at sent.
func (f *Fates) Served(sent meter.Instant) {
	f.sent = max(f.sent, sent)
	if f.served++; f.served+f.refused > memory {
		f.served, f.refused = f.served/2, f.refused/2
	}
}

// Refused takes in one more refusal of r. fresh says that nothing was refused since the
// model that learns from refusals knew nothing, others that the refusal was for requests
// under way. It reports whether the refusal is the request's own, and whether the
// model has nothing left then that another request has taught.
func (f *Fates) Refused(now meter.Instant, r *Request, fresh, others bool) (own, untaught bool) {
	own = r.refused > 0 && f.sent > r.heard && !others &&
		math.Pow(f.share(r.counted), float64(r.refused+1)) < chance
	r.heard = now
	r.refused++
	if own {
		return true, f.recant(r)
	}
	f.refused++
	r.counted++
	f.teach(r, fresh)
	return false, false
}

// Refusals is how many times in a row r was refused.
func (r *Request) Refusals() int { return r.refused }

// share is that of refusals, but for those of one request, which had so many. It
// is zero where no other was refused, however few were served: a prior would hold up
// the others for a second pause, and for a third, beside a request that is refused
// among the first of all.
func (f *Fates) share(its int) float64 {
	refused := max(0, f.refused-float64(its))
	return refused / max(1, f.served+refused)
}

// teach notes that r has a part in what is about to be learned.
func (f *Fates) teach(r *Request, fresh bool) {
	if fresh {
		f.teaching = new(teaching)
	}
	if f.teaching != nil && r.taught != f.teaching {
		r.taught = f.teaching
		f.teaching.requests++
	}
}

// recant takes back r's part in what was learned. It reports whether nothing is
// left of that.
func (f *Fates) recant(r *Request) bool {
	if r.taught == nil || r.taught != f.teaching {
		return false
	}
	r.taught = nil
	f.teaching.requests--
	return f.teaching.requests == 0
}
