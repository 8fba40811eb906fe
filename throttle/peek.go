package throttle

import (
	"context"
	"net/http"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/peek"
)

// parse is what resp says: its headers, and for a refusal also the first bytes
// of its body, which are given back. now is when the headers came.
func (t *Transport) parse(ctx context.Context, resp *http.Response, now time.Time) headers.Signal {
	if t.peek <= 0 || !peek.Tells(resp) {
		return headers.Parse(resp, now)
	}
	return headers.ParseBody(resp, peek.Start(ctx, resp, t.peek), now)
}
