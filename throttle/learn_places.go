package throttle

import (
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/concurrency"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// needs appends what requests to endpoint k draw on.
func (k *endpoint) needs(buf []queue.Need, q *ask) []queue.Need {
	l := k.learner
	buf = append(buf, queue.Need{Account: &l.account, N: 1})
	if !l.terms.pausesOnly {
		host := k.headStart(q)
		if host == nil {
			host = &l.host.account
		}
		buf = append(buf, queue.Need{Account: host, N: 1}, queue.Need{Account: &k.account, N: 1})
	}
	return k.stated(buf, q)
}

// stated is the part of needs that answers stated or showed: that to wait before the next
// request to the same URL, limits of few kinds, and limits. It sets q.roomy.
func (k *endpoint) stated(buf []queue.Need, q *ask) []queue.Need {
	q.roomy = q.object == nil && k.group == nil
	if q.object != nil {
		buf = append(buf, queue.Need{Account: &q.object.account, N: 1})
	}
	if k.group != nil {
		buf = append(buf, queue.Need{Account: &k.group.account, N: 1})
	}
	if len(k.quotas) == 0 || k.learner.terms.pausesOnly {
		return buf
	}
	return k.quotaNeeds(buf, q)
}

// quotaNeeds is the part of stated that stated limits are, of which there is one at least.
func (k *endpoint) quotaNeeds(buf []queue.Need, q *ask) []queue.Need {
	asks, kinds := false, false
	var w attribution.Where // not looked at yet
	for _, x := range k.quotas {
		n := q.of(x.account)
		if n <= 0 {
			continue
		}
		ample := x.Ample(q.now, n)
		q.roomy = q.roomy && ample && x.account.Clear(q.now)
		if !(ample && x.Sharing.Depth() == attribution.ByKind) && !x.Sharing.Settled() {
			if w == (attribution.Where{}) {
				w = k.whereOf(q.r)
			}
			if !x.Sharing.Binds(w) {
				continue
			}
			if x.MayAsk(q.now, w, float64(n)) {
				asks = true
				continue
			}
			if x.mayAsk(q.now, k, n) {
				kinds = true
				continue
			}
		}
		buf = append(buf, queue.Need{Account: x.account, N: n})
	}
	q.roomy = q.roomy && !asks && !kinds
	if asks {
		buf = append(buf, k.askerNeed(&k.paths.asker))
	}
	if kinds {
		buf = append(buf, k.askerNeed(&made(&k.learner.paths).asker))
	}
	return buf
}

// pace tells the slow start of k the rate that is configured for requests like q.
func (k *endpoint) pace(q *ask) {
	var pace time.Duration
	for _, m := range q.scope.own {
		if m.a.Label.Rate != nil && (m.route == 0 || q.on(m.route-1)) {
			if n := q.of(m.a); n > 0 {
				pace = max(pace, m.a.Meter.Regain(n))
			}
		}
	}
	if k.slow.Pace(pace); pace > 0 {
		k.learner.host.Slow.Pace(pace)
	}
}

// starts reports whether nothing but a slow start holds up requests that have these needs,
// and the user has set no bound for them. Then no limit is known that they could be too many
// for, and all of them may go soon after the host's first answers.
func (k *endpoint) starts(needs []queue.Need) bool {
	l := k.learner
	if l.terms.maxQueue != 0 || l.cooldown != nil || k.cooldown != nil || k.slow.Cut() || l.host.Slow.Cut() || k.slow.Free() && l.host.Slow.Free() {
		return false
	}
	return !slices.ContainsFunc(needs, func(n queue.Need) bool {
		return n.Account != &l.account && n.Account.Label != l.host.account.Label && n.Account != &k.account
	})
}

// open reports whether a request of k may take its places at now.
func (k *endpoint) open(now instant) bool {
	l := k.learner
	if !l.account.Clear(now) || !l.host.account.Clear(now) || !k.account.Clear(now) {
		return false
	}
	if l.cooldown == nil && k.cooldown == nil && !k.barred && l.host.Slow.Free() && k.slow.Free() {
		return true // as mostly: the questions below have no other answer before the first refusal
	}
	return l.At(now, 1) <= now && l.host.At(now, 1) <= now && k.At(now, 1) <= now
}

// placed is a permit, and to a request that did not have to wait its places at what
// was learned for all requests: of what the server bears, of a new host's slow
// start, and of its endpoint. It takes those in one step, without a draw on each.
type placed struct {
	queue.Permit
	marks [3]uint32 // of the places: the server's, the host's, the endpoint's
	holds bool      // the places are taken, and not given back
	kinds bool      // those of the host and the endpoint, too: learning was not switched off
	progress
}

// enter takes the places of a request of k.
func (p *placed) enter(now instant, k *endpoint) {
	l := k.learner
	p.holds, p.marks[0] = true, uint32(l.Take(now, 1, true))
	if p.kinds = !l.terms.pausesOnly; p.kinds {
		p.marks[1] = uint32(l.host.Take(now, 1, true))
		p.marks[2] = uint32(k.Take(now, 1, true))
	}
}

// unnoted reports whether learning was switched off when p was sent, and is on now: p has no place
// of k's, and what is found was not told of it.
func (p *attempt) unnoted(k *endpoint) bool {
	return !p.permit.kinds && !k.learner.terms.pausesOnly && queue.Of(p.permit.Needs, &k.account) == nil
}

// vacate gives the places of a request of k back, once. Those who wait for them are to be planned
// anew (attempt.again).
func (p *placed) vacate(now instant, k *endpoint) {
	if !p.holds {
		return
	}
	p.holds = false
	l := k.learner
	l.Return(now, 1, meter.Token(p.marks[0]), p.Granted, 0)
	if !p.kinds {
		return
	}
	l.host.Return(now, 1, meter.Token(p.marks[1]), p.Granted, 0)
	k.Return(now, 1, meter.Token(p.marks[2]), p.Granted, 0)
}

// hostStart is a host's slow start, shared by all credentials.
type hostStart struct {
	concurrency.Start
	account queue.Account
}

func newHostStart(words *learnWords) *hostStart {
	s := &hostStart{Start: concurrency.NewStart()}
	s.account = queue.Account{Meter: s, Label: words.host}
	return s
}

// headStart is what the first request of a kind draws on in the place of its host's slow start.
type headStart struct {
	concurrency.Head
	account queue.Account
}

// headStart is the account on which q, of k, draws in the place of its host's slow start;
// nil: on that.
func (k *endpoint) headStart(q *ask) *queue.Account {
	if q.head != nil {
		return &q.head.account
	}
	l, h := k.learner, k.learner.host
	if !h.Lends() || k.slow.UnderWay() > 0 || h.account.Clear(q.now) && h.At(q.now, 1) <= q.now {
		return nil
	}
	p := made(&k.paths)
	if p.head == nil {
		p.head = &headStart{Head: concurrency.NewHead(&h.Start)}
		p.head.account = queue.Account{Meter: p.head, Label: l.terms.words.host, Group: &l.scope.Group}
	}
	if p.head.account.Waited() || !p.head.Offer(q.now, k.slow.Good() > 0) {
		return nil
	}
	q.head = p.head
	return &q.head.account
}
