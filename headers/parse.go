// Package headers reads what a response says about the server's quotas.
package headers

import (
	"net/http"
	"strings"
	"time"
)

// What is read of one response is bounded, whatever the server sends.
const (
	maxLines = 64 // lines of one header
	maxItems = 64 // items of one list
)

// Parse returns what the status and the headers of resp say about quotas. It
// reads no body, keeps nothing and changes nothing. now is the local clock; the
// server's own, its Date header, rules if there is one.
func Parse(resp *http.Response, now time.Time) Signal {
	return ParseBody(resp, nil, now)
}

// ParseBody is Parse and reads the hints that stand in body as well, which may
// be cut short.
func ParseBody(resp *http.Response, body []byte, now time.Time) Signal {
	var s Signal
	var retry []string
	for name, values := range resp.Header {
		switch {
		case len(name) == 4 && strings.EqualFold(name, "Date") && len(values) > 0:
			if t, ok := parseTime(values[0]); ok {
				now = t
			}
		case len(name) == 11 && strings.EqualFold(name, "Retry-After"):
			retry = values
		}
	}
	s.RetryAfter = longestWait(retry, time.Second, now)
	if resp.StatusCode == http.StatusTooManyRequests {
		s.Throttled, s.Kind = true, Quota
	}
	return s
}
