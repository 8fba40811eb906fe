package throttle

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/peek"
	"github.com/weirhttp/weir/internal/trip"
)

// Hear is trip.Ear's.
func (p *attempt) Hear(resp *http.Response) *trip.Said {
	if p.record == nil { // no attempt came here
		return nil
	}
	asks := p.asksGraphQL(resp)
	p.permit.plain = !asks
	if !p.speaks(resp, asks) {
		return nil
	}
	s, ruled := p.read(resp, asks)
	return &trip.Said{Signal: s, Ruled: ruled}
}

// speaks reports whether resp has to be read: most answers say nothing.
// asks tells that the request is one of GraphQL.
func (p *attempt) speaks(resp *http.Response, asks bool) bool {
	return asks || resp.StatusCode >= 400 || p.record.t.config.Classify != nil || !headers.Silent(resp.Header)
}

// recall is read, if the host has stated its limits in these headers before and
// there is nothing else to look at; else it returns nil. The memory knows no answer
// of GraphQL's media type.
func (p *attempt) recall(resp *http.Response, asks bool) *headers.Recalled {
	r := p.record.memory.Recall(resp)
	if r != nil && (p.record.t.config.Classify != nil || asks) {
		r.Done()
		return nil
	}
	return r
}

// read is what resp says: its headers, and for what may be a refusal also the
// first bytes of its body, which are given back. It may wait for these. ruled
// tells that Classify decided otherwise about Throttled, or called Quota what may
// have been executed (a 529).
func (p *attempt) read(resp *http.Response, asks bool) (s headers.Signal, ruled bool) {
	now := time.Now()
	if p.record.t.peek > 0 && (peek.Tells(resp) || p.graphQL(resp, asks) && peek.Readable(resp)) {
		s = headers.ParseBody(resp, peek.Start(p.r.Context(), resp, p.record.t.peek), now)
	} else {
		s = p.record.memory.Parse(resp, now)
	}
	if p.record.t.config.Classify == nil {
		p.explain(resp.StatusCode, &s)
		return s, false
	}
	was := s
	s = p.classify(resp, s)
	if s.Throttled != was.Throttled || was.Kind == headers.Overload && s.Kind == headers.Quota {
		return s, true
	}
	p.explain(resp.StatusCode, &s)
	return s, false
}

// classify asks Config.Classify.
func (p *attempt) classify(resp *http.Response, s headers.Signal) headers.Signal {
	shown := *resp
	if shown.Request == nil {
		shown.Request = p.r
	}
	if shown.Body = http.NoBody; p.record.t.peek > 0 && peek.Readable(resp) {
		start := &startOf{ctx: p.r.Context(), resp: resp, most: p.record.t.peek}
		defer start.end()
		shown.Body = start
	}
	throttled := s.Throttled
	s = sound(p.record.t.config.Classify(&shown, s))
	if s.Throttled && !throttled && s.Kind == headers.NoKind {
		s.Kind = headers.Quota
	}
	if !s.Throttled {
		s.Kind = headers.NoKind
	}
	return s
}

// startOf is the start of a body as Classify reads it: it is looked at when the
// first Read asks for it, and not any more once Classify has returned.
type startOf struct {
	ctx  context.Context
	resp *http.Response
	most int64

	mu   sync.Mutex // Classify may hand it to somebody else
	over bool
	text *bytes.Reader // nil: not looked at
}

func (b *startOf) Read(to []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.text == nil {
		if b.over {
			return 0, http.ErrBodyReadAfterClose
		}
		b.text = bytes.NewReader(bytes.Clone(peek.Start(b.ctx, b.resp, b.most)))
	}
	return b.text.Read(to)
}

// Close does nothing: the body is the caller's.
func (b *startOf) Close() error { return nil }

func (b *startOf) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}

// sound is s with what no server's answer could hold taken out: learning relies
// on what headers promises of a Signal. Its Limits are ours.
func sound(s headers.Signal) headers.Signal {
	const most, name = 64, 256
	s.RetryAfter = wait(s.RetryAfter)
	s.Limits = slices.Clone(s.Limits[:min(len(s.Limits), most)])
	for i := range s.Limits {
		l := &s.Limits[i]
		for _, v := range [...]*headers.Opt[float64]{&l.Quota, &l.Used, &l.Remaining, &l.UsedRatio, &l.Refill, &l.Cost} {
			if !v.Known || !(v.Value >= 0) || math.IsInf(v.Value, 0) {
				*v = headers.Opt[float64]{}
			}
		}
		for _, text := range [...]*string{&l.Name, &l.Unit, &l.Scope, &l.Partition, &l.Source} {
			*text = strings.ToValidUTF8((*text)[:min(len(*text), name)], "")
		}
		l.Reset, l.Window = wait(l.Reset), wait(l.Window)
		if l.Window.Value == 0 {
			l.Window.Known = false
		}
	}
	return s
}

// wait is d, never negative.
func wait(d headers.Opt[time.Duration]) headers.Opt[time.Duration] {
	if !d.Known {
		return headers.Opt[time.Duration]{}
	}
	d.Value = max(0, d.Value)
	return d
}

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
