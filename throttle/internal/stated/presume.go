package stated

import (
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// presumed is what is known of requests whose answers take long, as those of language models do.
// Servers refuse at once. So a request that is under way for far longer than a refusal takes was
// accepted, and the server has counted it. Its units are spent then, as if an answer had said so, in
// the window in which it was sent. If each answer were awaited, no more than the whole limit would be
// under way at a time: of 30 per second with answers after 2 s half would be used, and of 2 per
// second with answers after 10 s a tenth. The zero value presumes nothing yet.
type presumed struct {
	trip   time.Duration        // how long the slowest refusal lately took; zero: none was heard
	before meter.Instant        // what was sent before this is presumed to be accepted
	units  float64              // units of that under way
	next   meter.Instant        // what was sent before this is so next; zero: what was sent until now
	young  float64              // units of that, which are part of out
	asked  meter.Instant        // when the request was sent that asks what there is; zero: none was
	former float64              // units of out that were sent before that
	back   headers.Opt[float64] // units that there were when the last request came that asked, as its answer says
	told   meter.Instant        // when the last of the requests was sent whose answers say what is left
	spans  [2]time.Duration     // the longest time until a reset that was stated, in this window and in the one before of which something was heard
	early  bool                 // a reset was taken to count from when a request was sent whose answer is late
	stands bool                 // they do not: such a one was too early
	passed meter.Instant        // when the last requests were found under way that did not draw on the limit
}

// askedPart is the part of a window for which the answer to a request is awaited that asks what there is.
// A quarter of the limit is left unused at most.
const askedPart = 4

// presumes reports whether requests are presumed to be accepted. The processes of a fleet know by
// the Store what is under way. What a request costs in tokens the server may know only when it
// answers.
func (q *Limit) presumes() bool {
	return q.exact() && !q.terms.Fleet && (q.ID.Unit == "" || q.ID.Unit == meter.Requests)
}

// late reports whether a request that was sent at sent was presumed to be accepted. What its answer
// says may have been so long ago.
func (q *Limit) late(sent meter.Instant) bool { return sent < q.presumed.before }

// ripens is when those of the requests under way that were sent before a certain instant are presumed to
// be accepted, and how many units they have.
func (q *Limit) ripens() (at, before meter.Instant, units float64) {
	if before, units = q.presumed.next, q.presumed.young; before == 0 {
		before, units = q.lastSent+1, q.out
	}
	return before.Add(cooldown.Unrefused(q.presumed.trip)), before, units
}

// ripe reports whether presume has something to do.
func (q *Limit) ripe(now meter.Instant) bool {
	return q.out+q.early > 0 && q.presumes() && min(q.ripensOut(), q.ripensEarly()) <= now
}

// ripensOut is when some of out is presumed to be accepted, and ripensEarly when early is. The latter
// was mostly sent at once, to a host of which nothing was known. So how long a refusal takes has to
// be known first, as a host may take seconds for that, too.
func (q *Limit) ripensOut() meter.Instant {
	if q.out <= 0 {
		return meter.Never
	}
	at, _, _ := q.ripens()
	return at
}

func (q *Limit) ripensEarly() meter.Instant {
	if q.early <= 0 || q.presumed.trip == 0 {
		return meter.Never
	}
	return q.presumed.passed.Add(cooldown.Quiet(q.presumed.trip))
}

// presume takes what has been under way for long enough for accepted. What was sent before a request
// whose answer says how much is left is part of that already, and what was sent before one that asks
// what there is belongs to the last window.
func (q *Limit) presume(now meter.Instant) {
	p, presumes := &q.presumed, q.presumes()
	if presumes && q.ripensEarly() <= now {
		if p.passed > max(p.told, q.rolled) { // nothing is left of what a refusal told, with them or without
			q.left = min(q.left, max(0, q.left-q.early))
		}
		q.Unbind()
	}
	for presumes && q.ripensOut() <= now {
		_, before, n := q.ripens()
		n = min(n, q.out)
		former := min(n, p.former)
		q.out, p.units, p.former = q.out-n, p.units+n, p.former-former
		if before > p.told {
			q.left -= n - former
		}
		p.before, p.next, p.young = before, 0, 0
		if q.trail != nil {
			q.trail.add(now, int64(n))
		}
	}
	q.conclude(now)
}

// conclude ends the question what there is once the request that asks has been under way for so long
// that the server has accepted it.
func (q *Limit) conclude(now meter.Instant) {
	p := &q.presumed
	switch {
	case !q.fresh.IsOpen() || p.asked == 0 || now.Sub(p.asked) < q.askedFor():
	case !q.counted: // how much there is does not matter
		q.fresh.Close()
		p.asked = 0
	case p.asked < p.before: // a new window has begun
		q.fresh.Close()
		q.rolled, q.basis = p.asked, now
		if p.back.Known { // not all, if the window slides
			q.left -= max(0, q.sizeOr(plentiful)-p.back.Value)
		}
		if span := q.span(); span > 0 { // it began when that request arrived, or before
			q.reset, q.agree = headers.Opt[meter.Instant]{Value: p.asked.Add(span + q.slack), Known: true}, 0
		}
		p.asked, p.former = 0, 0
	}
}

// span is how long a window lasts, as far as is known; zero: it is not.
func (q *Limit) span() time.Duration { return max(q.window, q.presumed.spans[0], q.presumed.spans[1]) }

// askedFor is for how long others wait for the answer to a request that asks what there is. If requests
// are counted, it tells more than that the request was accepted, as perhaps not all units are back. So
// it is awaited for a part of the window.
func (q *Limit) askedFor() time.Duration {
	if !q.counted {
		return min(askedFor, cooldown.Unrefused(q.presumed.trip))
	}
	if q.presumes() {
		return min(askedFor, max(cooldown.Unrefused(q.presumed.trip)+1, q.span()/askedPart))
	}
	return askedFor
}

// opens notes that a window may have ended.
func (p *presumed) opens() {
	if p.asked = 0; p.spans[0] > 0 {
		p.spans = [2]time.Duration{0, p.spans[0]}
	}
}

// lasts notes that the window lasts for so long yet, as an answer states.
func (p *presumed) lasts(reset time.Duration) { p.spans[0] = max(p.spans[0], min(reset, MostWindow)) }

// takes notes that a request is sent now, before it is part of out. asks says that it asks what there is.
func (p *presumed) takes(now, lastSent meter.Instant, out float64, asks bool) {
	if p.next == 0 && out > 0 && now > lastSent {
		p.next, p.young = now, out
	}
	if asks && p.asked == 0 {
		p.asked, p.former = now, out
	}
}

// ends notes the end of a request of n units that was granted then, and reports whether these are part
// of out.
func (p *presumed) ends(granted meter.Instant, n float64) bool {
	if granted < p.before {
		p.units = max(0, p.units-n)
		return false
	}
	if granted < p.next {
		p.young = max(0, p.young-n)
	}
	if granted < p.asked {
		p.former = max(0, p.former-n)
	}
	return true
}

// tells notes that an answer to a request that was sent at sent was heard now.
func (q *Limit) tells(now, sent meter.Instant) {
	if q.basis == now {
		q.presumed.told = max(q.presumed.told, sent)
	}
}

// hearLate learns from a late answer to a request that was sent at sent. Units may have come back
// since, and what was sent since is spent.
func (q *Limit) hearLate(now, sent meter.Instant, left float64, reset meter.Instant, hasReset bool) {
	switch {
	case q.fresh.IsOpen() || sent < q.rolled: // it is about the last window
	case q.flows():
		if most := left + q.rate()*now.Sub(sent).Seconds(); most < q.there(now) {
			q.left, q.basis = most, now
		}
	default:
		q.lower(now, left, reset, hasReset)
		if hasReset {
			q.keepReset(reset, false)
		}
	}
}
