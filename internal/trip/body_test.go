package trip

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestWhichBodiesCanNeitherBlockNorFail(t *testing.T) {
	type named struct{ *bytes.Reader }
	for _, tt := range []struct {
		name string
		body io.ReadCloser
		want bool
	}{
		{"none", nil, true},
		{"NoBody", http.NoBody, true},
		{"buffer", io.NopCloser(bytes.NewBufferString("x")), true},
		{"bytes", io.NopCloser(bytes.NewReader([]byte("x"))), true},
		{"string", io.NopCloser(strings.NewReader("x")), true},
		{"limited", io.NopCloser(io.LimitReader(strings.NewReader("x"), 1)), false},
		{"file", os.Stdin, false},
		{"file that stays open", io.NopCloser(os.Stdin), false},
		{"somebody's reader around bytes", io.NopCloser(named{bytes.NewReader(nil)}), false},
		{"nil reader", io.NopCloser(nil), false},
		{"closable", struct {
			io.Reader
			io.Closer
		}{strings.NewReader("x"), os.Stdin}, false},
	} {
		if got := Ready(tt.body); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
	r, err := http.NewRequest("POST", "http://h/", strings.NewReader("x"))
	if err != nil || !Ready(r.Body) {
		t.Error("a body of http.NewRequest's is not known")
	}
	if n := testing.AllocsPerRun(100, func() { Ready(r.Body) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
