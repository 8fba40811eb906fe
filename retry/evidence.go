package retry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/plain"
)

// evidence is whether an attempt got a connection and wrote its headers. Its
// hooks run on other goroutines, also after the attempt returned.
type evidence struct {
	full              bool // needsEvidence
	asked, got, wrote atomic.Bool
}

// hooks returns a trace by which e learns what the base does. Of what is
// repeated anyway it learns only whether there was a connection: net/http, too,
// sends that again when it loses one it had kept, and the error is then the
// second's, of a dial, say.
func (e *evidence) hooks() *httptrace.ClientTrace {
	t := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { e.got.Store(true) }}
	if e.full {
		t.GetConn = func(string) { e.asked.Store(true) }
		t.WroteHeaders = func() { e.wrote.Store(true) }
	}
	return t
}

// needsEvidence reports whether errors alone cannot tell about r what must be
// known: whether it may be repeated though it is not idempotent; and, if it is
// only so by its key, whether net/http has sent it before the error at hand.
func needsEvidence(r *http.Request) bool {
	switch r.Method {
	case "", "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return false
	}
	return true
}

// weigh says what is certain about a failed attempt: that the server
// processed nothing of it, and that nothing of it reached the network. e is
// nil if nobody watched. A base that knows no httptrace leaves e.asked unset
// and is thus never taken for one that sent nothing.
//
// Another chain that is the base says itself whether it sent something, also
// before it refused. It speaks of its own request only: a base that has sent
// this one may have failed at another.
func weigh(err error, e *evidence) (unprocessed, unsent bool) {
	watched, connected := e != nil && e.asked.Load(), e != nil && e.got.Load()
	switch {
	case !connected && errors.Is(err, notsent.Err):
		return true, true
	case watched && e.wrote.Load():
		return refusedStream(err), false
	case watched, badRequest(err):
		return true, !connected
	case dialing(err), distrusted(err):
		return true, e != nil && !connected
	}
	return refusedStream(err), false
}

// dialing reports that err arose before there was a connection.
func dialing(err error) bool {
	var op *net.OpError
	if !errors.As(err, &op) {
		return false
	}
	return op.Op == "dial" || op.Op == "proxyconnect" || op.Op == "socks connect"
}

// streamError takes the fields of net/http's HTTP/2 stream error, which is
// found by shape: its own type is not exported.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return "stream error" }

// refusedStream reports an HTTP/2 REFUSED_STREAM (RFC 9113 section 8.7): the
// server has not processed the request.
func refusedStream(err error) bool {
	var e streamError
	return errors.As(err, &e) && e.Code == 7
}

// distrusted reports that the server's certificate was rejected, which the
// next attempt would do as well.
func distrusted(err error) bool {
	var verify *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	return errors.As(err, &verify) || errors.As(err, &unknown) || errors.As(err, &invalid) || errors.As(err, &name)
}

// badRequest reports that net/http would not send such a request. Those
// errors have no types; their text is looked for where it begins, and never
// behind a URL.
func badRequest(err error) bool {
	return begins(err, "unsupported protocol scheme", "net/http: invalid ",
		"http: no Host in request URL", "http: nil Request")
}

// badLength reports that a request body was not as long as it said.
func badLength(err error) bool {
	return begins(err, "http: ContentLength=", "http: Request.ContentLength=", "http2: request body larger")
}

func begins(err error, prefixes ...string) bool {
	for e := err; e != nil; e = errors.Unwrap(e) {
		text := e.Error()
		for _, prefix := range prefixes {
			if strings.HasPrefix(text, prefix) {
				return true
			}
		}
	}
	return false
}

// unknownHost reports that there is no such name, as against a name server
// that did not answer.
func unknownHost(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound && !dns.IsTemporary
}

// alerted reports that one side ended TLS with an alert. With TLS 1.3 the
// server's may come after the request was written, so it proves nothing about
// that; but neither side will think better of the other's certificate.
func alerted(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error") &&
		!strings.Contains(op.Err.Error(), "internal error")
}

// permanent reports that the next attempt would fail like this one. The base
// vote is retryablehttp's, which looks for a *url.Error and reads its text: no
// URL may be in it, whose words it might misread.
func permanent(ctx context.Context, err error) bool {
	var record tls.RecordHeaderError
	switch {
	case badRequest(err), badLength(err), distrusted(err), unknownHost(err), alerted(err),
		errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return true
	}
	vote, _ := retryablehttp.ErrorPropagatedRetryPolicy(ctx, nil, &url.Error{Op: "RoundTrip", Err: plain.Bare(err)})
	return !vote
}
