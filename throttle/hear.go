package throttle

import (
	"net/http"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/trip"
)

// hear takes in what an answer says, before what it holds is given back, so
// that nobody is let through in between who should not be.
//
// It reports whether places in flight are held until the body's end.
func (t *Transport) hear(p *attempt, resp *http.Response) bool {
	var said *headers.Signal
	p.tr.Throttled = false
	known := p.tr.Heard(resp)
	asks := known == nil && !p.permit.plain && p.asksGraphQL(resp)
	if known != nil {
		said = &known.Signal
	} else if r := p.recall(resp, asks); r != nil {
		defer r.Done()
		said = &r.Signal
	} else if p.speaks(resp, asks) {
		s, ruled := p.read(resp, asks)
		if resp.StatusCode >= 400 || s.Throttled || ruled { // else no other layer asks
			p.tr.Keep(resp, &trip.Said{Signal: s, Ruled: ruled})
		}
		said = &s
	}
	if said != nil {
		p.tr.Throttled = said.Throttled || resp.StatusCode == http.StatusServiceUnavailable && said.RetryAfter.Known
	}
	bare := resp.Body == nil || resp.Body == http.NoBody
	news, holds := p.heard(t.domains.Read(), resp.StatusCode, said, bare)
	if news != nil {
		t.config.OnLearn(*news)
	}
	return holds
}

// heard is hear under the lock.
func (p *attempt) heard(at instant, status int, s *headers.Signal, bare bool) (told *Learned, holds bool) {
	e := p.record.lock()
	defer e.Unlock()
	now := e.NowFrom(at)
	p.left()
	c := p.counts()
	c.retry(p.tr.After(), 1)
	if p.tr.Throttled {
		c.more().throttled++
	}
	add(&c.latency, time.Duration(now-p.permit.Granted))
	news := p.learn(now, replied, status, p.unexplained(s))
	p.heed(now, news)
	p.permit.vacate(now)
	e.Answered(now, &p.permit.Permit, bare)
	holds = !bare && (p.reads(status) || p.places())
	p.again(now)
	if news.what == causeNone || p.record.t.config.OnLearn == nil {
		return nil, holds
	}
	return p.told(now, news), holds
}
