package retry

import (
	"errors"
	"net/http"
)

// errNeither is what a GiveUp ends with that says nothing.
var errNeither = errors.New("retry: GiveUp returned neither an answer nor an error")

// ready prepares what is sent next.
func (l *loop) ready() error {
	l.r = copyOf(l.r)
	l.r.Header = l.r.Header.Clone()
	if l.r.Header == nil {
		l.r.Header = make(http.Header)
	}
	if l.r.URL != nil {
		u := *l.r.URL
		l.r.URL = &u
	}
	return l.c.Prepare(l.r, l.made)
}

// over returns what the request ends with.
func (l *loop) over(o Outcome, p plan, resp *http.Response, err error) (*http.Response, error) {
	wanted := p.reason != Final && p.reason != Declined && p.reason != Vetoed
	if l.c.GiveUp != nil && resp != nil && p.err != nil && !l.done() {
		return l.end(resp, p.err, true)
	}
	l.open = nil
	last, failure := l.last(o, p, resp, err)
	l.open = last
	return l.end(last, failure, wanted || failure != nil)
}

// end asks GiveUp about the end of a request if it is one to be given up.
func (l *loop) end(resp *http.Response, err error, given bool) (*http.Response, error) {
	if l.c.GiveUp == nil || !given || l.done() {
		l.open = nil
		return resp, err
	}
	other, failed := l.c.GiveUp(resp, err, l.made)
	if failed == nil && other == nil {
		failed = errNeither
	}
	if failed == nil {
		if l.open = nil; resp != nil && resp != other {
			resp.Body.Close()
		}
		return other, nil
	}
	if other != nil && other != resp && other.Body != nil {
		other.Body.Close()
	}
	return nil, failed // finish closes the last answer
}
