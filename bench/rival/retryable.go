package rival

import (
	"net/http"

	"github.com/hashicorp/go-retryablehttp"
)

// Retryable is hashicorp/go-retryablehttp. It has retries only; its
// DefaultBackoff reads Retry-After.
func Retryable() Rival {
	return Rival{
		Name:   "go-retryablehttp",
		Link:   "https://github.com/hashicorp/go-retryablehttp#getting-a-stdlib-httpclient-with-retries",
		Entry:  "RoundTrip of its StandardClient",
		Module: "github.com/hashicorp/go-retryablehttp",
		Known:  "go-retryablehttp + x/time/rate",
		New: func(base http.RoundTripper, p Policy) (Client, error) {
			c := retryablehttp.NewClient()
			c.HTTPClient = &http.Client{Transport: paced(base, p.Rate), Timeout: p.Timeout}
			c.Logger = nil
			c.RetryMax, c.RetryWaitMin, c.RetryWaitMax = p.Retries, p.Base, p.Max
			c.ErrorHandler = retryablehttp.PassthroughErrorHandler
			return of(c.StandardClient().Transport), nil
		},
	}
}
