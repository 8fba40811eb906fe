package throttle

import (
	"net/http"
	"time"

	"github.com/weirhttp/weir/headers"
)

// suspectPause is the longest pause that is guessed while it is not clear
// whether a pause is of any use.
const suspectPause = time.Second

// calm is the share of 503s below which nobody asks any more why there are so many.
const calm = 0.3

// proven is after how many good answers a host that refuses all is rather down than
// a limiter that has been asked too much: it served as much before.
const proven = 30

// limiter reports whether a host that says it is overloaded rather limits us:
// it serves some, and refuses most however few are under way.
func (k *kind) limiter(now time.Time) bool {
	return k.busy >= 0.5 && k.serves(now) && (k.suspect == nil || !now.Before(k.suspect.not))
}

// serves reports whether there was a good answer lately: no outage, then. A
// limiter that has served nothing for a second has not been asked often since.
func (k *kind) serves(now time.Time) bool {
	ago := time.Duration(instantOf(now) - k.served)
	return k.served != 0 && (ago < time.Second || ago < 5*time.Second && k.streak < 5)
}

// A suspect is a host that often says that it is overloaded. While few requests are
// under way its answers are tossed like a coin: if they prove to be chance, they say
// nothing of what may be sent. Until then it is taken for a limiter, if it is so often
// overloaded however few are under way. If it says as many 503s at a lower rate,
// it is none either.
type suspect struct {
	coin    coin
	watched time.Time // answers to what was sent before are not tossed; zero: none is
	since   time.Time // zero: not taken for a limiter
	answers int       // that count; negative: so many do not
	busy    int
	not     time.Time // until then it is known to be no limiter
	chance  time.Time // until then it is known to refuse by chance
}

// random reports whether 503s are known to be chance.
func (s *suspect) random(now time.Time) bool { return s != nil && now.Before(s.chance) }

// watch begins to toss, unless that was done.
func (k *kind) watch(now time.Time) {
	if k.suspect == nil {
		k.suspect = new(suspect)
	}
	if s := k.suspect; s.watched.IsZero() {
		s.watched, s.coin = now, coin{}
	}
}

// alternates reports whether there were good answers since watch.
func (s *suspect) alternates() bool { return s != nil && s.coin.begun }

// tossed takes in an answer to a request sent at sent, and reports whether it has
// shown that 503s are chance.
func (k *kind) tossed(now, sent time.Time, busy bool) bool {
	s := k.suspect
	switch {
	case s == nil || s.watched.IsZero() || s.random(now):
		return false
	case k.busy < calm:
		s.watched = time.Time{}
		return false
	case !k.slow.few() || sent.Before(s.watched) || !s.coin.toss(busy):
		return false
	}
	s.watched, s.since = time.Time{}, time.Time{}
	s.not = now.Add(forgetRate)
	s.chance = s.not
	return true
}

func (s *suspect) suspected() bool { return s != nil && !s.since.IsZero() }

// begin returns s, made if need be, suspected from now on.
func (s *suspect) begin(now time.Time) *suspect {
	if s == nil {
		s = new(suspect)
	}
	s.since, s.answers, s.busy = now, -16, 0 // first the rate has to be found
	return s
}

// judge counts an answer. It reports whether the host has proved to be none.
func (s *suspect) judge(now time.Time, busy bool) bool {
	if !s.suspected() {
		return false
	}
	if s.answers++; busy && s.answers > 0 {
		s.busy++
	}
	none := s.busy >= 4 // a limiter whose rate is known refuses a few in a hundred
	if s.answers < 16 && !none {
		return false
	}
	s.answers, s.busy = 0, 0
	if none {
		s.since, s.not = time.Time{}, now.Add(forgetRate)
	}
	return none
}

// Some limiters refuse with a 503 that says no more (nginx's limit_req does by
// default). So a host is not taken to be down by such answers as long as it has
// served somebody briefly before, and not more than some requests in a row have
// asked in vain. On 900 servers of bench/sim's population (train), 33 of the 58 that
// refuse so lose calls with it, 49 without. Six in a row would be 25, but a host that
// is down would be asked more often than a hundredth of its calls.
const (
	briefly = time.Second
	spared  = 2
)

// spares reports whether a 503 that says no more may well be a limiter's.
func (k *kind) spares(now instant) bool {
	return !k.learner.terms.pausesOnly && k.served != 0 && time.Duration(now-k.served) < briefly &&
		k.vain < spared && (k.suspect == nil || !now.Time().Before(k.suspect.not))
}

// note503 counts a 503 that says no more, to a request sent at sent: those of one burst
// are one.
func (k *kind) note503(now, sent instant) {
	if sent > k.heard503 {
		k.vain, k.heard503 = min(k.vain+1, manyAnswers), now
	}
}

// bare503 reports whether an answer says 503 and no more.
func bare503(status int, s *headers.Signal) bool {
	return status == http.StatusServiceUnavailable && !s.RetryAfter.Known && len(s.Limits) == 0
}

// explain calls an answer that says 503 and no more a refusal as long as a limiter
// may be why: then it is no failure of the host, and the request is repeated.
func (p *passage) explain(status int, s *headers.Signal) {
	if s.Throttled || p.kind == nil || p.tr.Probe || !bare503(status, s) {
		return
	}
	e := p.record.lock()
	defer e.Unlock()
	if p.kind.spares(e.Now()) {
		s.Throttled, s.Kind, p.permit.guessed = true, headers.Quota, true
	}
}

// unexplained is s without what explain made of it: whether it was a refusal,
// learning has to find out.
func (p *passage) unexplained(s *headers.Signal) *headers.Signal {
	if s == nil || !p.permit.guessed {
		return s
	}
	said := *s
	said.Throttled, said.Kind = false, headers.NoKind
	return &said
}
