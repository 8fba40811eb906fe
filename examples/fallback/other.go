package main

import (
	"net/http"
	"net/url"
	"strings"
)

// otherHost sends what one host would have got to another that can answer the
// same: a mirror, another region, a second supplier.
type otherHost struct {
	from, to string // as "https://api.example.com"
	client   *http.Client
}

// fallback asks the other host. It goes through the same client, so the other
// host has its budget and its circuit too; a request that was on its way there
// already is not sent round again.
func (o *otherHost) fallback(r *http.Request, _ error) (*http.Response, error) {
	rest, ok := strings.CutPrefix(r.URL.String(), o.from)
	if !ok || rest != "" && rest[0] != '/' && rest[0] != '?' {
		return nil, nil // of another host, whose name may begin alike
	}
	u, err := url.Parse(o.to + rest)
	if err != nil {
		return nil, err
	}
	r2 := r.Clone(r.Context())
	r2.URL, r2.Host, r2.RequestURI = u, "", ""
	r2.Header = anonymous(r.Header) // one host's secrets are none of the other's business
	if r.Body != nil && r.Body != http.NoBody {
		if r.GetBody == nil {
			return nil, nil // the body is gone
		}
		if r2.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	resp, err := o.client.Transport.RoundTrip(r2)
	if err != nil {
		return nil, nil // the refusal says more than two failures
	}
	resp.Header.Set("Cache-Status", "fallback; fwd=request; detail="+u.Hostname())
	return resp, nil
}
