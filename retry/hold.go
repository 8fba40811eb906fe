package retry

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/trip"
)

const (
	holdBytes = 64 << 10               // an error is said in far less; what is longer is not worth the memory while the next attempt waits
	holdTime  = 100 * time.Millisecond // as the longest first delay: whoever waits for the next attempt does not notice it
)

// held is an answer that was taken in hand before another attempt, which
// freed its connection and its place below.
type held struct {
	resp  *http.Response
	body  []byte
	whole bool // read to its end; an answer is never returned cut short
}

// hold reads resp to its end, unless that is too long or takes too long, and
// closes it.
func (l *loop) hold(resp *http.Response) {
	if resp == nil {
		return
	}
	h := &held{resp: resp}
	l.held = h
	if resp.Body == nil || resp.Body == http.NoBody {
		h.whole = true
		return
	}
	if resp.ContentLength > holdBytes {
		resp.Body.Close()
		return
	}
	clock := time.AfterFunc(holdTime, func() { resp.Body.Close() })
	var buf bytes.Buffer
	_, err := buf.ReadFrom(io.LimitReader(resp.Body, holdBytes+1))
	inTime := clock.Stop()
	resp.Body.Close()
	if err == nil && inTime && buf.Len() <= holdBytes {
		h.body, h.whole = buf.Bytes(), true
	}
}

// response is the answer with the bytes that were read of it.
func (h *held) response() *http.Response {
	if h.body != nil {
		h.resp.Body = io.NopCloser(bytes.NewReader(h.body))
	} else {
		h.resp.Body = http.NoBody
	}
	return h.resp
}

// perhaps reports whether the attempt that failed with err may have been processed.
// Then an earlier answer is not returned, because it would say that it was not.
func (l *loop) perhaps(err error) bool {
	if !l.t.link.Has[trip.Wire] {
		return !errors.Is(err, notsent.Err)
	}
	return !l.tr.OnWire().IsZero() && !l.tr.Unprocessed
}

// remember notes an attempt that is followed by another.
func (l *loop) remember(o Outcome, resp *http.Response, err error) {
	t := Tried{Outcome: o, Err: err}
	if resp != nil {
		t.Status = resp.StatusCode
	}
	if len(l.tried) < maxTried {
		l.tried = append(l.tried, t)
	}
}

// maxTried bounds what an Error lists: repeats of throttled answers have no
// other bound than time, and nobody reads more.
const maxTried = 100
