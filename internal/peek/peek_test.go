package peek

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Which bodies may say why a request was refused.
func TestBodiesThatTell(t *testing.T) {
	for _, test := range []struct {
		status         int
		kind, encoding string
		length         int64
		want           bool
	}{
		{429, "application/json", "", -1, true},
		{429, "application/problem+XML; charset=utf-8", "", 10, true},
		{403, "text/plain", "", -1, true},
		{503, "text/html", "", -1, true},
		{529, "application/json", "", -1, true},
		{200, "application/json", "", -1, false},
		{500, "application/json", "", -1, false},
		{429, "", "", -1, false},
		{429, "image/png", "", -1, false},
		{429, "application/text", "", -1, false},
		{429, "text/event-stream", "", -1, false},
		{429, "application/json", "gzip", -1, false},
		{429, "application/json", "", 0, false},
	} {
		resp := &http.Response{StatusCode: test.status, Body: io.NopCloser(strings.NewReader("x")), ContentLength: test.length,
			Header: http.Header{"Content-Type": {test.kind}, "Content-Encoding": {test.encoding}}}
		if Tells(resp) != test.want {
			t.Errorf("%+v", test)
		}
		resp.Body = http.NoBody
		if Tells(resp) {
			t.Errorf("%+v without a body", test)
		}
		resp.Body = nil
		if Tells(resp) {
			t.Errorf("%+v with a nil body", test)
		}
	}
}
