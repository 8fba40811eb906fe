// Package answer reads what an HTTP answer says about the server's limits. From a response
// it makes a [headers.Signal], and says whether the user's function changed the verdict.
//
// # Words
//
// An answer speaks if it has to be read. Most do not: their status is below 400, and none of
// their headers is about limits. An answer is of GraphQL if its request was, or if it has
// the media type of GraphQL: then it may be a refusal although its status is 200.
// The start of a body is its first Peek bytes. The user's function is Classify.
//
// # How it works
//
// [Reader.GraphQL] says whether an answer is of GraphQL, [Reader.Speaks] whether it has to be
// read, and [Reader.Read] what it says. Read looks at the headers, then, if the answer may be
// a refusal, at the start of its body, and then calls the user's function, which decides.
// [Reader.Recall] returns the same as Read without parsing, if the host has sent the same
// headers about limits before. [Overload] and [Bare503] tell kinds of refusals apart.
//
// # What holds
//
// The caller gets the whole body, each part when it comes, even if it was looked at. A body
// that comes slowly delays an answer by [peek.For] at most, and only if the answer may be a
// refusal or the user's function reads it. Bodies of requests are looked at to find GraphQL:
// none if the answer is not JSON, and few if the requests are not of GraphQL. The Signal that
// Read returns is as package headers promises, even if the user's function returned another.
// That function gets a copy of the response, whose body it can read until it returns.
//
// No lock is held here while somebody waits, and there is no clock. The only memory is a
// host's [headers.Memory] and the [Posts] of a kind of request, which their owners keep.
package answer

import (
	"net/http"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/peek"
)

// A Reader reads answers by the user's settings. It is safe for concurrent use, if its fields
// are not changed any more.
type Reader struct {
	Peek     int64                                               // bytes of a body that may be read; zero or less: none
	Classify func(*http.Response, headers.Signal) headers.Signal // returns what counts instead of what the server says; nil: that counts
}

// Speaks reports whether resp has to be read. graphQL says that its request was of GraphQL.
func (d *Reader) Speaks(resp *http.Response, graphQL bool) bool {
	return graphQL || resp.StatusCode >= 400 || d.Classify != nil || !headers.Silent(resp.Header)
}

// Recall returns what Read would return, if m has the host's limits in the same headers from
// an earlier answer and nothing else has to be looked at; otherwise nil. m has no answers of
// GraphQL's media type. The caller calls Done of what is returned.
func (d *Reader) Recall(m *headers.Memory, resp *http.Response, graphQL bool) *headers.Recalled {
	r := m.Recall(resp)
	if r != nil && (d.Classify != nil || graphQL) {
		r.Done()
		return nil
	}
	return r
}

// Read returns what resp, the answer to r, says in its headers and, if it may be a refusal, in
// the start of its body. That start is put back into resp.Body; Read may wait for it. ruled
// says that the user's function changed Throttled, or changed the Kind from Overload to
// Quota, which means that the request was not executed. m is the memory of the host.
func (d *Reader) Read(now time.Time, m *headers.Memory, r *http.Request, resp *http.Response, graphQL bool) (s headers.Signal, ruled bool) {
	if d.Peek > 0 && (peek.Tells(resp) || (graphQL || typed(resp)) && peek.Readable(resp)) {
		s = headers.ParseBody(resp, peek.Start(r.Context(), resp, d.Peek), now)
	} else {
		s = m.Parse(resp, now)
	}
	if d.Classify == nil {
		return s, false
	}
	was := s
	s = d.classify(r, resp, s)
	return s, s.Throttled != was.Throttled || was.Kind == headers.Overload && s.Kind == headers.Quota
}

// Overload reports whether an answer says that the host has too much to do, and not that a
// caller has spent its quota.
func Overload(status int, s *headers.Signal) bool {
	return status == http.StatusServiceUnavailable && s.Kind != headers.Quota || status == 529 || s.Throttled && s.Kind == headers.Overload
}

// Futile reports whether an answer refuses what no wait helps: there is no allowance, or none
// until a bill is paid or a day ends, and it does not say when to come back. It tells nothing of
// other requests, which may be to another model or project.
func Futile(s *headers.Signal) bool {
	return s.Throttled && s.Kind == headers.NoAllowance && !s.RetryAfter.Known
}

// Away reports whether an answer says that the host has too much to do, and for how long to
// stay away.
func Away(status int, s *headers.Signal) bool { return Overload(status, s) && s.RetryAfter.Known }

// Bare503 reports whether an answer is a 503 without Retry-After and without limits.
func Bare503(status int, s *headers.Signal) bool {
	return status == http.StatusServiceUnavailable && !s.RetryAfter.Known && len(s.Limits) == 0
}
