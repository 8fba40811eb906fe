package retry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/plain"
)

// evidence is what a trail has shown of an attempt that has ended.
type evidence struct {
	watched           bool // somebody was ready to hear
	full              bool // also of headers; see needsEvidence
	asked, got, wrote bool // ever: for a connection, one, headers to it
	phase             phase
	queued            time.Duration // waited for connections that others had
}

// needsEvidence reports whether the error of an attempt does not tell enough about r.
// If r is not idempotent, it must be known whether it may be repeated all the same. If
// only its key makes it idempotent, it must be known whether net/http had sent it
// before the attempt that failed.
func needsEvidence(r *http.Request) bool {
	switch r.Method {
	case "", "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return false
	}
	return true
}

// weigh says what is certain about a failed attempt: that the server
// processed nothing of it, and that nothing of it reached the network. A base
// that knows no httptrace leaves e.asked unset and is thus never taken for one
// that sent nothing.
//
// stopped says that somebody ended the attempt, and not the base or its peer.
// Then a connection is as good as the request itself: over HTTP/2, RoundTrip
// returns when its context ends, though the headers may still be blocked in a
// Write and go out later.
//
// Another chain that is the base says itself whether it sent something, also
// before it refused. It speaks of its own request only: a base that has sent
// this one may have failed at another.
func weigh(err error, e evidence, stopped bool) (unprocessed, unsent bool) {
	switch {
	case !e.got && errors.Is(err, notsent.Err):
		return true, true
	case e.wrote, e.got && (stopped || endedEarly(err)):
		return refusedStream(err), false
	case e.asked && e.full, e.phase == waiting && !e.got, badRequest(err):
		return true, !e.got
	case dialing(err), distrusted(err):
		return true, e.watched && !e.got
	}
	return refusedStream(err), false
}

// endedEarly reports that a context ended or a time was over: not ours, but of
// somebody between us and the connection.
func endedEarly(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
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
