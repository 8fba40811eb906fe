package throttle

import (
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// overloaded learns from an answer that says that the host is overloaded. That
// is a matter of requests at a time, unless it also says when to come back, or
// proves to be a limit that does not say its name.
func (l *learner) overloaded(now time.Time, g *ticket, s headers.Signal) lesson {
	k := g.kind
	at, plain := instantOf(now), !s.Throttled && !s.RetryAfter.Known
	if k.overload.Overloaded(at, plain) {
		return lesson{}
	}
	k.slow.Lost(at, max(1, now.Sub(g.sent)))
	narrow := !l.terms.pausesOnly && !g.probe && k.overload.Limits(at, k.slow.Few(), k.slow.Good() < proven)
	if plain && !narrow {
		return lesson{what: causeFlight, kind: k}
	}
	return l.refuse(now, g, s, narrow || s.RetryAfter.Known && !g.probe)
}

// concurrency reports that a refusal was for requests at a time, not for
// requests per time: the server says so, or it refused one that started alone
// while others were under way.
func (l *learner) concurrency(g *ticket, s headers.Signal) bool {
	if l.terms.pausesOnly || g.kind.slow.UnderWay() <= 1 {
		return false // with nothing else under way only time helps
	}
	if s.Kind == headers.Concurrency {
		return true
	}
	if e := g.kind.evidenceNow(); e != nil && e.Shuts() {
		return false
	}
	return (g.lone() || g.kind.slow.Tight() || g.kind.slow.Silent()) && !s.RetryAfter.Known && len(s.Limits) == 0 && len(g.kind.quotas) == 0 && s.Kind != headers.Overload
}

// refuse pauses, and tells the evidence if a limit may be what was wrong.
func (l *learner) refuse(now time.Time, g *ticket, s headers.Signal, rate bool) lesson {
	k := g.kind
	if q := l.narrow(now, g, s); q != nil {
		return lesson{what: causeQuota, quota: q}
	}
	said, named, explained := l.hintOf(now, k, s)
	h := l.holdOf()
	if !l.terms.pausesOnly {
		if l.blame == nil {
			l.blame = new(blame)
		}
		l.blame.refused(l, k, instantOf(g.sent), !said.known)
		if named || k.apart {
			if k.hold == nil {
				k.hold = new(hold)
			}
			h = k.hold
			l.hold.good(g.sent)
		}
	}
	f, at := l.evidenceOf(k), instantOf(now)
	inVain := h.inVain(g.sent)
	switch {
	case !rate || explained || l.terms.pausesOnly || k.slow.Silent():
	case s.Throttled || said.known:
		if g.limited || f.weighs(!s.Throttled, l.good < proven) {
			f.refused(at, instantOf(g.sent), said, l.terms.maxPause, g.limited && k.overload.Doubtful())
		}
	default:
		f.overloaded(at, instantOf(g.sent), inVain)
	}
	most := l.terms.maxPause
	if !said.known && (k.overload.Suspected() || g.limited && k.overload.Doubtful()) {
		most = min(most, suspectPause)
	}
	if f.believes() && s.Throttled {
		inVain = max(0, inVain-inVainOf)
	}
	guess := guessed(f.guess(at, l.account.Queued()), most, inVain)
	fresh := l.good < settledIn && !f.peers.counted(g.booked) // a fleet is no herd
	news := h.refuse(now, g.sent, said, guess, most, fresh, l.terms.jitter())
	if !news && h.until.Sub(l.pausedBy(h, k).Paused.Time()) < coarse {
		return lesson{}
	}
	f.pace.resume(h.until)
	return lesson{what: causeHold, hold: h, kind: k}
}

// narrow returns the quota that explains a refusal if it is not that of all
// requests of its kind, or not known to be: then it binds those that share it, and
// nobody else has to pause. Nor has anybody if all processes count it: others may
// have spent it, and who paused for longer than its window lasts would come late to
// the next one, too.
func (l *learner) narrow(now time.Time, g *ticket, s headers.Signal) (narrow *quota) {
	if l.terms.pausesOnly {
		return nil
	}
	for i := range s.Limits {
		limit := &s.Limits[i]
		q := l.known(limit, g.kind, nil)
		if q == nil || q.ignored || !exhausted(limit) || !g.strange() && q.sharing.Depth() == attribution.ByKind && !q.shared.based {
			continue
		}
		if s.RetryAfter.Known {
			wait, _ := believe(hint{wait: s.RetryAfter.Value}, l.terms.maxPause)
			if end := instantOf(now).Add(wait); !q.reset.Known || q.reset.Value < end {
				q.reset = headers.Opt[instant]{Value: end, Known: true}
			}
		}
		if q.reset.Known {
			q.asking, narrow = false, q
		}
	}
	return narrow
}

// pausedBy is the account that h pauses, which a request of kind k met.
func (l *learner) pausedBy(h *hold, k *kind) *queue.Account {
	if h == k.hold {
		return &k.account
	}
	return &l.account
}

// hintOf is what a refusal says about when to come back; whether it names the
// limit, so that other kinds of request go on; and whether a stated limit that
// is spent explains it, so that no rate has to be found.
func (l *learner) hintOf(now time.Time, k *kind, s headers.Signal) (h hint, named, explained bool) {
	if s.RetryAfter.Known {
		h = hint{wait: min(s.RetryAfter.Value, mostWindow), known: true, source: "Retry-After"}
	}
	for i := range s.Limits {
		limit := &s.Limits[i]
		if d := refills(limit); d > h.wait && !s.RetryAfter.Known { // that explains no rate: what others need is not known
			h = hint{wait: d, known: true, source: limit.Source}
		}
		if !exhausted(limit) {
			continue
		}
		named = named || limit.Name != "" || l.parted(limit, k)
		if !limit.Reset.Known {
			continue
		}
		q := l.known(limit, k, nil)
		explained = explained || q == nil || !q.belief.Vain()
		reset := min(limit.Reset.Value, 400*24*time.Hour)
		supported := q != nil && q.reset.Known && q.supported(instantOf(now))
		if s.RetryAfter.Known {
			h.supported = h.supported || supported && (reset-h.wait).Abs() <= 2*time.Second+h.wait/20
			continue
		}
		if reset > h.wait || !h.known {
			h = hint{wait: reset, known: true, supported: supported, source: limit.Source}
		}
	}
	return h, named, explained
}

// refills is how long a bucket needs until it holds what the refused request
// needs, if the server said all three figures; 0: it did not, or never will.
func refills(l *headers.Limit) time.Duration {
	left, known := remaining(l)
	lack := l.Cost.Value - left
	if !known || lack <= 0 || l.Refill.Value <= 0 || l.Quota.Known && l.Cost.Value > l.Quota.Value {
		return 0
	}
	return time.Duration(min(lack/l.Refill.Value, mostWindow.Seconds()) * float64(time.Second))
}
