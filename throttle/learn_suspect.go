package throttle

import (
	"net/http"
	"time"

	"github.com/weirhttp/weir/headers"
)

// suspectPause is the longest pause that is guessed while it is not clear
// whether a pause is of any use.
const suspectPause = time.Second

// proven is after how many good answers a host that refuses all is rather down than
// a limiter that has been asked too much: it served as much before.
const proven = 30

// bare503 reports whether an answer says 503 and no more.
func bare503(status int, s *headers.Signal) bool {
	return status == http.StatusServiceUnavailable && !s.RetryAfter.Known && len(s.Limits) == 0
}

// explain calls an answer that says 503 and no more a refusal as long as a limiter
// may be why: then it is no failure of the host, and the request is repeated.
func (p *attempt) explain(status int, s *headers.Signal) {
	if s.Throttled || p.endpoint == nil || p.tr.Probe || !bare503(status, s) {
		return
	}
	e := p.record.lock()
	defer e.Unlock()
	k, now := p.endpoint, e.Now()
	if k.learner.terms.pausesOnly {
		return
	}
	found := k.evidenceNow()
	past := found.past()
	past.Waits = p.record.t.maxWait(p.record.host)
	p.permit.limited = k.overload.Limited(now, past)
	found.doubt(p.permit.limited && k.overload.Plausible(), int(k.learner.scope.Waiting), past.Waits)
	if p.permit.limited || k.overload.Spares(now) {
		s.Throttled, s.Kind, p.permit.guessed = true, headers.Quota, true
	}
}

// unexplained is s without what explain made of it, unless that is most likely so:
// whether it was a refusal, learning has to find out.
func (p *attempt) unexplained(s *headers.Signal) *headers.Signal {
	if s == nil || !p.permit.guessed || p.permit.limited {
		return s
	}
	said := *s
	said.Throttled, said.Kind = false, headers.NoKind
	return &said
}
