package rival

import (
	"net/http"
	"time"

	"github.com/go-resty/resty/v2"
)

// Resty is go-resty with its retries. It reads every body into memory, as it
// does by default. Its rate limiter refuses instead of waiting, so x/time/rate
// takes its place where the rate is known.
func Resty() Rival {
	return Rival{
		Name:   "resty",
		Link:   "https://resty.dev/docs/retry-mechanism/",
		Entry:  "Request.Execute",
		Module: "github.com/go-resty/resty/v2",
		Known:  "resty + x/time/rate",
		New: func(base http.RoundTripper, p Policy) (Client, error) {
			c := resty.New().
				SetTransport(paced(base, p.Rate)).
				SetTimeout(p.Timeout).
				SetRetryCount(p.Retries).
				SetRetryWaitTime(p.Base).
				SetRetryMaxWaitTime(p.Max).
				AddRetryCondition(func(resp *resty.Response, err error) bool {
					return err != nil || resp.StatusCode() == http.StatusTooManyRequests || resp.StatusCode() >= 500
				}).
				SetRetryAfter(func(_ *resty.Client, resp *resty.Response) (time.Duration, error) {
					if resp.RawResponse == nil {
						return 0, nil
					}
					d, _ := retryAfter(resp.RawResponse)
					return d, nil // zero: its own backoff
				}).
				SetLogger(quiet{})
			return Client{Close: func() {}, Do: func(r *http.Request) (*http.Response, error) {
				return restyDo(c, r)
			}}, nil
		},
	}
}

func restyDo(c *resty.Client, r *http.Request) (*http.Response, error) {
	call := c.R().SetContext(r.Context())
	if r.Body != nil && r.Body != http.NoBody {
		call.SetBody(r.Body)
	}
	resp, err := call.Execute(r.Method, r.URL.String())
	if err != nil {
		return nil, err
	}
	return resp.RawResponse, nil
}

type quiet struct{}

func (quiet) Errorf(string, ...any) {}
func (quiet) Warnf(string, ...any)  {}
func (quiet) Debugf(string, ...any) {}
