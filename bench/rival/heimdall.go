package rival

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/gojek/heimdall/v7"
	"github.com/gojek/heimdall/v7/httpclient"
	"github.com/gojek/heimdall/v7/hystrix"
)

// Heimdall is gojek/heimdall's client with its breaker. It retries errors and
// 5xx, never 429, and cannot be without timeouts.
func Heimdall() Rival {
	return Rival{
		Name:   "heimdall",
		Link:   "https://github.com/gojek/heimdall#creating-a-hystrix-like-circuit-breaker",
		Entry:  "Do of its hystrix client",
		Module: "github.com/gojek/heimdall/v7",
		Known:  "heimdall + x/time/rate",
		New: func(base http.RoundTripper, p Policy) (Client, error) {
			limit := p.Timeout
			if limit == 0 {
				limit = time.Minute
			}
			c := hystrix.NewClient(
				hystrix.WithHTTPClient(httpclient.NewClient(httpclient.WithHTTPClient(
					&http.Client{Transport: paced(base, p.Rate), Timeout: limit}))),
				hystrix.WithHTTPTimeout(limit),
				hystrix.WithHystrixTimeout(limit),
				hystrix.WithCommandName(strconv.FormatUint(rand.Uint64(), 36)), // circuits are global, by name
				hystrix.WithMaxConcurrentRequests(10000),
				hystrix.WithErrorPercentThreshold(50),
				hystrix.WithRequestVolumeThreshold(p.Failures),
				hystrix.WithSleepWindow(int(p.OpenFor.Milliseconds())),
				hystrix.WithRetryCount(p.Retries),
				hystrix.WithRetrier(heimdall.NewRetrier(heimdall.NewExponentialBackoff(p.Base, p.Max, 2, p.Base))),
			)
			return Client{Close: func() {}, Do: func(r *http.Request) (*http.Response, error) {
				resp, err := c.Do(r)
				if err != nil && resp != nil {
					resp.Body.Close()
					resp = nil
				}
				return resp, err
			}}, nil
		},
	}
}
