package outbox

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Whatever request can be kept comes back as it was, byte for byte.
func FuzzRecord(f *testing.F) {
	f.Add("POST", "http://h/a%2Fb;c?d=%20&&e", "Host.Alias", "X-A", "caf\xe9", []byte("body\x00\xff"))
	f.Add("", "https://[::1]:8080", "", "User-Agent", "", []byte(nil))
	f.Add("PUT", "http://u:p@h/%zz", "h", "a b", "\x01", []byte("x"))
	f.Add("M!", "http://h/\xff?\xff", "", "x", "\t", []byte("x"))
	f.Fuzz(func(t *testing.T, method, address, alias, name, value string, body []byte) {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || method != "" && !token(method) {
			return
		}
		r := &http.Request{Method: method, URL: u, Host: alias, Header: http.Header{name: {value, ""}}}
		rec := (&settings{}).newRecord(r, body, time.Now())
		b, err := rec.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if !got.same(r) {
			return // RoundTrip would not have kept it
		}
		again, err := got.request(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if alias != "" && again.Host != alias || again.Header[name][0] != value || len(again.Header[name]) != 2 || again.URL.User != nil {
			t.Errorf("got %+v, want %+v", again, r)
		}
		if m := again.Method; m != method && (m != "GET" || method != "") {
			t.Errorf("method %q, want %q", m, method)
		}
		if data, err := io.ReadAll(again.Body); err != nil || !bytes.Equal(data, body) || again.ContentLength != int64(len(body)) {
			t.Errorf("body %q, %v; want %q", data, err, body)
		}
	})
}

// No bytes make decode panic, and none that are not whole pass.
func TestDecode(t *testing.T) {
	r := &http.Request{Method: "POST", URL: &url.URL{Scheme: "http", Host: "h"}, Header: http.Header{"A": {"b"}}}
	good, err := (&settings{}).newRecord(r, []byte("body"), time.Unix(0, 0)).encode()
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		if _, err := decode(bad); err == nil {
			t.Errorf("byte %d may change unseen", i)
		}
		if _, err := decode(good[:i]); err == nil {
			t.Errorf("cut at %d of %d, unseen", i, len(good))
		}
	}
	sealed := func(change func([]byte)) []byte { // with a checksum that is right
		b := bytes.Clone(good)
		change(b)
		binary.BigEndian.PutUint32(b[1:], checksum(b))
		return b
	}
	for want, b := range map[string][]byte{
		"too short":            sealed(func(b []byte) { binary.BigEndian.PutUint32(b[5:], 1<<32-1) }),
		"version 3":            sealed(func(b []byte) { b[0] = 3 }),
		"unexpected end of JS": sealed(func(b []byte) { binary.BigEndian.PutUint32(b[5:], 3) }),
	} {
		if _, err := decode(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
