package outbox

import (
	"io"
	"net/http"
	"strings"
)

// IDHeader is the header of the 202 that answers a kept request; its value is
// the id. A server could send a header of that name too, so trust it only as
// far as you trust the server.
const IDHeader = "Outbox-Id"

// accepted is the answer to a request that was kept as id.
func accepted(req *http.Request, id string) *http.Response {
	text := `{"outbox_id":"` + id + `"}` + "\n"
	resp := &http.Response{
		Status: "202 Accepted", StatusCode: http.StatusAccepted,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{IDHeader: {id}, "Content-Type": {"application/json"}},
		Body:          io.NopCloser(strings.NewReader(text)),
		ContentLength: int64(len(text)),
		Request:       req,
	}
	if req.Method == http.MethodHead {
		resp.Body = http.NoBody
	}
	return resp
}
