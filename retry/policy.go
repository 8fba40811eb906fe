package retry

import (
	"net/http"
)

// Outcome is how an attempt ended, as far as the policy cares.
type Outcome uint8

const (
	Answered     Outcome = iota // any response not named below: final
	NotProcessed                // no response, and proof that the server processed nothing
	Broken                      // no response: the connection failed after it may have been used
	TimedOut                    // no headers within AttemptTimeout
	SlowUpload                  // 408
	Conflict                    // 409
	Misdirected                 // 421
	TooEarly                    // 425
	Throttled                   // 429, or another answer that means the same
	ServerError                 // 500, and 5xx not named here
	NotSupported                // 501, 505, 506, 508, 510, 511
	BadGateway                  // 502, 504
	Unavailable                 // 503, 529
	Permanent                   // no response, and none at the next try: bad certificate, scheme, header, host
	CallerDone                  // the caller's context ended first
	Refused                     // a throttle or breaker below refused: nothing was sent
	outcomes
)

// String returns the outcome in lower case, as "bad gateway".
func (o Outcome) String() string {
	if o < outcomes {
		return policy[o].name
	}
	return "invalid"
}

// verdict is what the policy says about an outcome.
type verdict uint8

const (
	never verdict = iota
	once          // one retry of the request may have this reason
	again
	ifAsked // never, unless the server asks for it
)

// policy is the default policy. Its rows are those of the package comment.
// It is not written to.
var policy = [outcomes]struct {
	name       string
	idempotent verdict // idempotent method or Idempotency-Key
	other      verdict
}{
	Answered:     {"answered", never, never},
	NotProcessed: {"not processed", again, again},
	Broken:       {"broken", again, never},
	TimedOut:     {"timed out", again, never},
	SlowUpload:   {"slow upload", again, never},
	Conflict:     {"conflict", ifAsked, never},
	Misdirected:  {"misdirected", once, once},
	TooEarly:     {"too early", once, once},
	Throttled:    {"throttled", again, again},
	ServerError:  {"server error", again, never},
	NotSupported: {"not supported", never, never},
	BadGateway:   {"bad gateway", again, never},
	Unavailable:  {"unavailable", again, never},
	Permanent:    {"permanent", never, never},
	CallerDone:   {"caller done", never, never},
	Refused:      {"refused", never, never},
}

// ofStatus is the outcome that a response's status stands for.
func ofStatus(status int) Outcome {
	switch status {
	case http.StatusRequestTimeout:
		return SlowUpload
	case http.StatusConflict:
		return Conflict
	case http.StatusMisdirectedRequest:
		return Misdirected
	case http.StatusTooEarly:
		return TooEarly
	case http.StatusTooManyRequests:
		return Throttled
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusVariantAlsoNegotiates,
		http.StatusLoopDetected, http.StatusNotExtended, http.StatusNetworkAuthenticationRequired:
		return NotSupported
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return BadGateway
	case http.StatusServiceUnavailable, 529: // 529: overloaded, by use
		return Unavailable
	}
	if status >= 500 {
		return ServerError
	}
	return Answered
}

// idempotent reports whether r may be processed twice without harm: by its
// method (RFC 9110 section 9.2.2), or because a key tells the server that it
// has seen it.
func idempotent(r *http.Request) bool {
	switch r.Method {
	case "", "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return true
	}
	return keyed(r)
}

// keyed looks for the headers by which net/http, too, knows a keyed request. One
// without a value is not sent, and says as much.
func keyed(r *http.Request) bool {
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if v, ok := r.Header[name]; ok && (len(v) == 0 || v[0] != "") {
			return true
		}
	}
	return false
}
