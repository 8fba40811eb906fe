package throttle

import (
	"github.com/weirhttp/weir/throttle/internal/concurrency"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

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
