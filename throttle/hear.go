package throttle

import (
	"net/http"
	"time"

	"github.com/weirhttp/weir/headers"
)

// hear takes in what an answer says, before what it holds is given back, so
// that nobody is let through in between who should not be.
func (t *Transport) hear(p *passage, resp *http.Response) {
	s := headers.Parse(resp, time.Now())
	p.tr.Throttled = s.Throttled || resp.StatusCode == http.StatusServiceUnavailable && s.RetryAfter.Known
	if news, ok := p.heard(resp.StatusCode, s); ok {
		t.config.OnLearn(news)
	}
}

// heard is hear under the lock.
func (p *passage) heard(status int, s headers.Signal) (Learned, bool) {
	e := p.t.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	p.record.flying--
	news := p.learn(now, replied, status, s)
	p.heed(now, news)
	e.answered(now, &p.permit)
	p.again(now)
	if news.what == causeNone || p.t.config.OnLearn == nil {
		return Learned{}, false
	}
	return p.told(now, news), true
}
