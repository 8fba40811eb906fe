package throttle

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/absence"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/learn"
)

// evidence is what a learner, or a kind of request that is apart, gives to the model
// of limits that nobody states, and what that answers. It is told of each request when
// it is sent, and mostly how it ended. Of a request that it was not told of until over, it
// takes back that it was sent. Its owner guards it.
type evidence struct {
	learn.Learner
	fates  attribution.Fates
	began  instant          // the first request, or the first after a long idling
	good   float64          // accepted since then
	last   instant          // request
	row    int              // refusals since one was accepted, one for each burst
	plain  bool             // it was refused by more than 503s
	vague  bool             // a limit has to explain its refusals, which may have other reasons; see weighs, suspects
	chance bool             // the last refusal may well be chance, and no limit is believed in; see doubt
	spared bool             // a refusal with a long hint was no evidence: the first is, for all that is known, for one request
	told   instant          // when the request was sent whose end was told last; it is about to be given back
	away   *absence.Absence // of a host that refuses, or refused, everybody; nil: it does not
	peers  *peers           // of a fleet; nil: nothing is shared
}

// forgetRate is for how long a limit is believed that nothing bears out any more.
const forgetRate = attribution.Remembered

// sent notes a request. After a long idling nothing is known.
func (e *evidence) sent(now instant) {
	if now-e.last > instant(forgetRate) {
		e.forget()
		e.began, e.good = 0, 0
	}
	if e.began == 0 {
		e.began = now
	}
	e.last = now
	e.away.Sent(now)
	e.Sent(now)
	e.peers.drew(1)
}

// forget makes e as good as new but for what is under way, and since when the host is known.
func (e *evidence) forget() {
	e.Forget()
	e.anew()
}

// anew forgets what kind of refusals there were.
func (e *evidence) anew() { e.plain, e.vague = false, false }

// past is what is known of the time since the first request.
func (e *evidence) past() attribution.Past {
	if e == nil {
		return attribution.Past{}
	}
	return attribution.Past{Since: e.began, Served: e.good}
}

// accepted notes an accepted answer. It reports whether the host is back that refused
// everybody, and not for a limit.
func (e *evidence) accepted(now, sent instant) (back bool) {
	if e == nil {
		return false
	}
	e.told = sent
	e.Accepted(now, sent)
	if back = e.row > mostRow && e.Unsure(); back {
		e.Reopened(now, sent)
		e.anew()
	}
	e.row = 0
	e.good++
	e.fates.Served(sent)
	return back
}

// refused notes a refusal.
func (e *evidence) refused(now, sent instant, r learn.Refusal) {
	e.told = sent
	if e.Refused(now, sent, r) {
		e.row++
	}
	if r.Alone {
		r.Hint = cooldown.Hint{} // of no use to others
	}
	if e.sure() {
		e.peers.refused(now, r.Hint)
	}
}

// suspects notes a refusal of a kind of request, or of a URL, that alone is to stay away for
// long. It was told so before and was served since, so that wait does not bind. Perhaps a limit
// of all requests refuses whoever comes when it is spent. It may be chance as well, so a limit
// has to explain such refusals. spared says that others were never told so: then they do not
// keep that wait, whatever limit is found. first says that it was not told so before: then it may
// have a limit of its own, and it counts only if others were under way, which may be why as well.
func (e *evidence) suspects(now, sent instant, said cooldown.Hint, most time.Duration, spared, first bool) {
	if first && e.UnderWay() <= 1 {
		return
	}
	e.vague = e.vague || first || e.blank()
	e.refused(now, sent, learn.Refusal{Hint: said, MaxPause: most, Alone: spared || !e.Explains()})
}

// weighs reports whether a refusal may be for a limit. A host that is overloaded says
// 503, too: so if it has served many, these have to be explained by a limit, and one that
// refuses otherwise is no limiter when it says 503.
func (e *evidence) weighs(by503, young bool) bool {
	switch {
	case !by503:
		e.plain, e.vague = true, false
	case !e.plain:
		e.vague = e.vague || !young && e.blank()
	}
	return !by503 || !e.plain
}

// lost notes a request that brought no answer, but may have been counted.
func (e *evidence) lost(sent instant) {
	e.told = sent
	e.Lost(sent)
}

// resume dates a request anew, as it is sent only now.
func (e *evidence) resume(now, sent instant) {
	if e != nil && now > sent {
		e.Unsent(sent)
		e.Sent(now)
	}
}

// late notes a request that it was not told of when it was sent, as it is about to be told how that
// ended. over has to follow.
func (e *evidence) late() {
	e.Under(e.UnderWay() + 1)
	e.peers.drew(1)
}

// over ends what was sent then.
func (e *evidence) over(sent instant) {
	if e.told == sent {
		e.told = 0
		return
	}
	e.Unsent(sent)
	e.peers.drew(-1)
}

// at is when one may be sent, if so many wait.
func (e *evidence) at(now instant, waiting int) instant {
	if e == nil {
		return now
	}
	at := now
	if e.sure() {
		first := e.peers.lone(now)
		if at = e.Next(now, max(1, waiting)).At; first {
			at = e.peers.at(now, at)
		} else {
			at = max(at, now.Add(e.regain()))
		}
	}
	if !e.chance {
		at = max(at, e.Beside(now))
	}
	return e.away.At(now, at, waiting)
}

// outlook is about when one may be sent after ahead others, at the earliest at from.
func (e *evidence) outlook(now, from instant, ahead int64, waiting int) instant {
	switch {
	case e == nil:
		return from
	case from == now && ahead == 0:
		return e.at(now, waiting)
	}
	at := from
	if e.sure() {
		at = e.Outlook(from, ahead)
	}
	return e.away.Outlook(from, at, ahead)
}

// lift lets a flow that would resume later do so now.
func (e *evidence) lift() {
	if e == nil {
		return
	}
	e.Lift()
}

// believes reports whether there is a limit that may hold requests up.
func (e *evidence) believes() bool { return e != nil && e.Believes() && e.sure() }

// sure reports whether the limit that the model believes in, if any, is likely one.
func (e *evidence) sure() bool { return !e.chance && (!e.vague || e.Explains()) }

// doubt notes whether refusals may well be chance. That counts where a limit helps nobody:
// at its pace those that wait, so many of them, would not all go within most. While it may
// help, to ask more often costs a limiter's callers more than it gains those of a host that
// fails: buckets and logs of few units then lost up to ten times as many calls.
func (e *evidence) doubt(plausible bool, waiting int, most time.Duration) {
	if e == nil {
		return
	}
	e.chance = false
	e.chance = plausible && time.Duration(waiting)*e.regain() > most
}

// blank reports whether nothing was refused since nothing was known.
func (e *evidence) blank() bool { return e.Since() == 0 }

// found is the limit that holds requests up, in figures.
func (e *evidence) found() (learn.Limit, bool) {
	if !e.sure() {
		return learn.Limit{}, false
	}
	return e.Leader()
}

// binds reports whether forgetting e would lose something.
func (e *evidence) binds(now instant) bool {
	return e.believes() && now-e.last < instant(forgetRate)
}

// mostRow is how many refusals in a row tell of a quota, as long as no limit explains them
// well. A host that refuses all for a while and says no more has some other reason.
const mostRow = 4

// inVainOf is how many refusals in a row the model is left to explain: then each guess
// is twice as long.
const inVainOf = 2

// guess is the pause after a refusal without a hint: what one request takes at least.
func (e *evidence) guess(now instant, waiting int) time.Duration {
	if !e.believes() {
		return cooldown.FirstGuess
	}
	p := e.Next(now, max(1, waiting))
	if p.Reason == learn.Untrusted { // the answers that are to come say more
		return min(e.regain(), cooldown.FirstGuess)
	}
	return max(p.At.Until(now), min(e.regain()*4/5, cooldown.FirstGuess))
}

// regain is about how long it takes until one more may be sent.
func (e *evidence) regain() time.Duration {
	if e == nil {
		return cooldown.FirstGuess
	}
	x, ok := e.found()
	if !ok {
		return cooldown.FirstGuess
	}
	return min(time.Duration(x.Per.Seconds()/x.Units*float64(time.Second)), cooldown.MostGuess)
}

func (e *evidence) words() string {
	return "looks like " + e.Words() + ", found by its refusals"
}
