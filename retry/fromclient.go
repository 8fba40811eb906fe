package retry

import (
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// buffered is how much FromClient keeps of a body that cannot be read twice. The
// library keeps all of it. This is more than the requests that are repeated usually
// have, and little of a server's memory.
const buffered = 64 << 20

// FromClient is the Config that repeats requests as c does: with its RetryMax,
// RetryWaitMin and RetryWaitMax, CheckRetry, Backoff, PrepareRetry, ErrorHandler,
// log hooks, and the Timeout of its HTTPClient for each attempt. The rest of that
// client, such as its Transport, is for weir.New or http.Client. c is read once.
//
// Some things differ, so that no request is processed twice and no server is overrun:
//
//   - A POST that may have been processed is not sent again, whatever CheckRetry says.
//   - Retries are paid from an Allowance.
//   - If a server asks for more than MaxDelay (the longer of RetryWaitMax and 75 s),
//     the request ends.
//   - Without an ErrorHandler the last answer is returned, not an error.
//   - An attempt without a Timeout has DefaultAttemptTimeout.
func FromClient(c *retryablehttp.Client) Config {
	f := Config{
		MaxAttempts: max(0, c.RetryMax) + 1,
		MaxDelay:    max(c.RetryWaitMax, defaultMaxDelay),
		BufferBody:  buffered,
		Check:       c.CheckRetry,
		GiveUp:      c.ErrorHandler,
	}
	if c.HTTPClient != nil && c.HTTPClient.Timeout > 0 {
		f.AttemptTimeout = c.HTTPClient.Timeout
	}
	if wait, least, most := c.Backoff, c.RetryWaitMin, c.RetryWaitMax; wait != nil {
		f.Delay = func(_, _ time.Duration, n int, resp *http.Response) time.Duration {
			return wait(least, most, n, resp)
		}
	}
	logger := printer(c.Logger)
	if before, prepare := c.RequestLogHook, c.PrepareRetry; before != nil || prepare != nil {
		f.Prepare = func(r *http.Request, n int) error {
			if prepare != nil && n > 0 {
				if err := prepare(r); err != nil {
					return err
				}
			}
			if before != nil {
				before(logger, r, n)
			}
			return nil
		}
	}
	if after := c.ResponseLogHook; after != nil {
		f.OnAttempt = func(a Attempt) {
			if a.Response != nil {
				after(logger, a.Response)
			}
		}
	}
	return f
}

// printer is a client's logger as its hooks get it; nil if it has none.
func printer(l any) retryablehttp.Logger {
	switch l := l.(type) {
	case retryablehttp.LeveledLogger:
		return leveled{l}
	case retryablehttp.Logger:
		return l
	}
	return nil
}

// leveled prints at the level of information, as go-retryablehttp does.
type leveled struct{ retryablehttp.LeveledLogger }

func (l leveled) Printf(format string, args ...any) { l.Info(fmt.Sprintf(format, args...)) }
