// Package answer reads what an HTTP answer says about the server's limits. A response
// goes in, plain facts come out: a [headers.Signal], and whether the user decided it.
//
// # Words
//
// An answer speaks if it has to be read. Most do not: they are good, and none of their
// headers is about limits. An answer is of GraphQL if its request was, or if it has that
// media type: then it may be a refusal though its status says that all went well.
// The start of a body is its first Peek bytes.
//
// # How it works
//
// [Reader.GraphQL] says what an answer is, [Reader.Speaks] whether it has to be read, and
// [Reader.Read] what it says: first its headers, then for what may be a refusal the start
// of its body, then the user's function, which has the last word. [Reader.Recall] gives the
// same as Read without parsing, if the host has said the same in the same headers before.
// [Overload] and [Bare503] name what is told from the status alone.
//
// # What holds
//
// The caller gets all of a body, as it comes, whatever was looked at. A body that comes
// slowly delays an answer by [peek.For] at most, and only if the answer may be a refusal or
// the user's function reads it. Of requests that are not of GraphQL few bodies are looked
// at, and of requests whose answers are no JSON none is. What Read returns keeps what package
// headers promises of a Signal, also if the user's function broke it. That function sees a
// copy of the response, and can read nothing more once it has returned.
//
// There is no lock here that is held while somebody waits, no clock, and no memory but a
// host's [headers.Memory] and the [Posts] of a kind of request, which their owners keep.
package answer

import (
	"net/http"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/peek"
)

// A Reader reads answers by the user's settings. It is not to be changed while it is used,
// and then safe for concurrent use.
type Reader struct {
	Peek     int64                                               // bytes of a body that may be read; zero or less: none
	Classify func(*http.Response, headers.Signal) headers.Signal // has the last word; nil: what the server says counts
}

// Speaks reports whether resp has to be read. graphQL says that its request was of GraphQL.
func (d *Reader) Speaks(resp *http.Response, graphQL bool) bool {
	return graphQL || resp.StatusCode >= 400 || d.Classify != nil || !headers.Silent(resp.Header)
}

// Recall is what Read would return, if the host has stated its limits in these headers
// before and there is nothing else to look at; else it is nil. The memory knows no answer
// of GraphQL's media type. The caller calls Done.
func (d *Reader) Recall(m *headers.Memory, resp *http.Response, graphQL bool) *headers.Recalled {
	r := m.Recall(resp)
	if r != nil && (d.Classify != nil || graphQL) {
		r.Done()
		return nil
	}
	return r
}

// Read is what resp, the answer to r, says: its headers, and for what may be a refusal also
// the start of its body, which is given back. It may wait for these. ruled says that the
// user decided otherwise about Throttled, or called Quota what may have been executed
// (a 529). m is the host's.
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

// Overload reports whether an answer says that the host has too much to do, rather than that
// somebody asked too often: it is not said to be a quota's.
func Overload(status int, s *headers.Signal) bool {
	return status == http.StatusServiceUnavailable && s.Kind != headers.Quota || status == 529 || s.Throttled && s.Kind == headers.Overload
}

// Away reports whether an answer says that the host has too much to do, and for how long to
// stay away.
func Away(status int, s *headers.Signal) bool { return Overload(status, s) && s.RetryAfter.Known }

// Bare503 reports whether an answer says 503 and no more.
func Bare503(status int, s *headers.Signal) bool {
	return status == http.StatusServiceUnavailable && !s.RetryAfter.Known && len(s.Limits) == 0
}
