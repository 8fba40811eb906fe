package throttle

import (
	"net/http"
	"time"

	"github.com/weirhttp/weir/headers"
)

// hear takes in what an answer says: a throttled one pauses its host, or the
// partition that it was for.
func (t *Transport) hear(p *passage, resp *http.Response) {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return
	}
	s := headers.Parse(resp, time.Now())
	if !s.Throttled && !s.RetryAfter.Known {
		return
	}
	wait := time.Second
	if s.RetryAfter.Known {
		wait = s.RetryAfter.Value
	}
	wait = min(wait, t.config.MaxPause)
	p.tr.Throttled = true
	e := t.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	g := &p.record.gate
	if until := now.add(wait); until > g.paused {
		p.record.quiet(now, until)
		e.pause(now, g, until, "paused by the server")
	}
}
