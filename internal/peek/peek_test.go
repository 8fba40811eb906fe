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
		{400, "application/x-amz-json-1.1", "", -1, true},
		{404, "application/json", "", -1, false},
		{200, "application/json", "", -1, false},
		{500, "application/json", "", -1, false},
		{429, "", "", -1, false},
		{429, "image/png", "", -1, false},
		{429, "application/text", "", -1, false},
		{429, "text/event-stream", "", -1, false},
		{429, "application/x-ndjson", "", -1, false},
		{429, "application/json;stream=watch", "", -1, false},
		{429, "application/connect+json", "", -1, false},
		{429, "application/grpc-web+json", "", -1, false},
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

// torn is a body that panics after its first bytes.
type torn struct{ io.Reader }

func (b torn) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil {
		panic("torn")
	}
	return n, nil
}

// A body that panics does so where its reader can recover it, after what it
// gave before.
func TestPanicIsTheReaders(t *testing.T) {
	resp := &http.Response{Body: io.NopCloser(torn{strings.NewReader("start")})}
	if got := Start(t.Context(), resp, 100); string(got) != "start" {
		t.Errorf("looked at %q", got)
	}
	b := make([]byte, 100)
	if n, err := resp.Body.Read(b); string(b[:n]) != "start" || err != nil {
		t.Errorf("read %q, %v", b[:n], err)
	}
	for range 2 {
		func() {
			defer func() {
				if got := recover(); got != "torn" {
					t.Errorf("recovered %v", got)
				}
			}()
			n, err := resp.Body.Read(b)
			t.Errorf("read %q, %v", b[:n], err)
		}()
	}
}
