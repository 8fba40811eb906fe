package retry

import (
	"net/http"
	"net/http/httptrace"
	"testing"
	"testing/synctest"

	"github.com/weirhttp/weir/internal/trip"
)

// What a base that is watched shows of a failed POST decides: whether it may
// be sent again, and whether anything reached the network. A base that shows
// nothing is taken to have sent it.
func TestEvidence(t *testing.T) {
	for _, tt := range []struct {
		name              string
		asked, got, wrote bool
		unprocessed, sent bool
	}{
		{"nothing is known", false, false, false, false, true},
		{"no connection", true, false, false, true, false},
		{"a connection, and no header written", true, true, false, true, true},
		{"the header was written", true, true, true, false, true},
		{"traces without a beginning", false, true, false, false, true},
	} {
		for _, method := range []string{"POST", "PATCH"} {
			bubble(t, tt.name+", "+method, func(t *testing.T) {
				calls, theirs := 0, 0
				base := roundTrip(func(r *http.Request) (*http.Response, error) {
					calls++
					trip.CloseBody(r)
					trace := httptrace.ContextClientTrace(r.Context())
					if tt.asked {
						trace.GetConn("a.example:80")
					}
					if tt.got {
						trace.GotConn(httptrace.GotConnInfo{})
					}
					if tt.wrote {
						trace.WroteHeaders()
					}
					return nil, errReset
				})
				w := Wire(base, Config{})
				r := request(t, method, "http://a.example/", "body")
				ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GetConn: func(string) { theirs++ }})
				r, tr, _ := trip.Begin(r.WithContext(ctx), trip.Retry, w.(trip.Linked).Link().Hosts)
				w.RoundTrip(r)
				if tr.Unprocessed != tt.unprocessed || tr.Sent() != tt.sent {
					t.Errorf("unprocessed %v, sent %v", tr.Unprocessed, tr.Sent())
				}
				tr.End(nil)
				if tt.asked && theirs != 1 {
					t.Error("the caller's own trace is lost")
				}
				calls = 0
				newTransport(t, base, Config{MaxAttempts: 2}).RoundTrip(request(t, method, "http://a.example/", "body"))
				if want := map[bool]int{true: 2, false: 1}[tt.unprocessed]; calls != want {
					t.Errorf("%d attempts, want %d", calls, want)
				}
			})
		}
	}
}

// Nobody is watched more than needed: a full trace costs more than the attempt.
func TestLittleEvidenceForIdempotent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for method, want := range map[string]bool{"GET": false, "PUT": false, "DELETE": false, "POST": true} {
			base := roundTrip(func(r *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(r.Context())
				if got := trace.WroteHeaders != nil; got != want || trace.GotConn == nil {
					t.Errorf("%s: watched to the end %v", method, got)
				}
				return nil, errReset
			})
			newTransport(t, base, Config{MaxAttempts: 1}).RoundTrip(request(t, method, "http://a.example/", ""))
		}
	})
}
