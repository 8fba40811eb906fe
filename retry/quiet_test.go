package retry_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// A stream of messages may be quiet for as long as it likes, over both
// versions; a single answer may not.
func TestQuietStreams(t *testing.T) {
	for _, tt := range []struct {
		name, kind, query string
		length            string
		cut               bool
	}{
		{name: "event stream", kind: "Text/Event-Stream; charset=utf-8"},
		{name: "gRPC", kind: "application/grpc"},
		{name: "gRPC-Web", kind: "application/grpc-web+proto"},
		{name: "Connect", kind: "application/connect+proto"},
		{name: "JSON lines", kind: "application/x-ndjson"},
		{name: "JSON sequence", kind: "application/json-seq"},
		{name: "server push", kind: "multipart/x-mixed-replace;boundary=x"},
		{name: "docker logs", kind: "application/vnd.docker.multiplexed-stream"},
		{name: "watch in protobuf", kind: "application/vnd.kubernetes.protobuf;stream=watch"},
		{name: "watch in JSON", kind: "application/json", query: "?watch=true"},
		{name: "followed log", kind: "text/plain", query: "?follow=1"},
		{name: "JSON", kind: "application/json", cut: true},
		{name: "Connect, one answer", kind: "application/proto", cut: true},
		{name: "no watch", kind: "application/json", query: "?watch=false", cut: true},
		{name: "download of JSON lines", kind: "application/x-ndjson", length: "6", cut: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", tt.kind)
				if tt.length != "" {
					w.Header().Set("Content-Length", tt.length)
				}
				io.WriteString(w, "one")
				w.(http.Flusher).Flush()
				if testnet.Wait(r.Context(), time.Hour) == nil {
					io.WriteString(w, "two")
				}
			}
			over(t, h, retry.Config{}, func(t *testing.T, rt *retry.Transport, _ *testnet.Net) {
				resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/"+tt.query, ""))
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				got, err := io.ReadAll(resp.Body)
				var late *retry.TimeoutError
				switch cut := errors.As(err, &late); {
				case cut != tt.cut:
					t.Errorf("read %q, %v", got, err)
				case !cut && string(got) != "onetwo":
					t.Errorf("read %q", got)
				}
			})
		})
	}
}

// What names a stream is found however it is written, and nothing else is.
func TestWhatNamesAStreamIsFound(t *testing.T) {
	for _, tt := range []struct {
		kind, query string
		want        bool
	}{
		{"text/event-stream", "", true},
		{"TEXT/EVENT-STREAM;x", "", true},
		{" text/event-stream ;charset=utf-8", "", true},
		{"text/event-streams", "", false},
		{"text/html", "", false},
		{"", "", false},
		{"application/grpc+proto", "", true},
		{"application/connect+json", "", true},
		{"application/connect", "", false},
		{"application/geo+json-seq", "", true},
		{"application/json; stream=watch", "", true},
		{`application/json;charset=utf-8; Stream="Watch"`, "", true},
		{"application/json; stream=watching", "", false},
		{"application/json; upstream=watch", "", false},
		{"application/json;;=;stream", "", false},
		{"application/vnd.docker.raw-stream", "", true},
		{"application/json", "a=b&watch=1", true},
		{"application/json", "follow=true", true},
		{"application/json", "watch=", false},
		{"application/json", "watch=0", false},
		{"application/json", "watch=later", false},
		{"application/json", "stopwatch=true", false},
		{"application/json", "q=watch=true", false},
		{"application/json", "watch=true;%zz", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(background(), time.Hour)
			defer cancel()
			resp, err := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
				resp := testnet.Answer(r, 200, http.Header{"Content-Type": {tt.kind}}, &leaver{ctx: r.Context()})
				resp.ContentLength = -1
				return resp, nil
			}), retry.Config{}).RoundTrip(request(t, "GET", "http://a.example/?"+tt.query, "").WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.ReadAll(resp.Body)
			var late *retry.TimeoutError
			if got := !errors.As(err, &late); got != tt.want {
				t.Errorf("%q after ?%s: %v", tt.kind, tt.query, err)
			}
		})
	}
}

// A body that is cut ends in an error, however it came, and never as if it
// were whole: a watcher would take that for the end of what there was to see.
func TestCutBodyHasNoEnd(t *testing.T) {
	zipped := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, "one")
		z.Flush()
	}
	for name, begin := range map[string]http.HandlerFunc{
		"chunked": func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "one") },
		"of known length": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "6")
			io.WriteString(w, "one")
		},
		"zipped": zipped,
		"until the connection closes": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Transfer-Encoding", "identity")
			io.WriteString(w, "one")
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := func(w http.ResponseWriter, r *http.Request) {
				begin(w, r)
				w.(http.Flusher).Flush()
				quietly(r)
			}
			over(t, h, retry.Config{}, func(t *testing.T, rt *retry.Transport, _ *testnet.Net) {
				resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				checkCut(t, resp.Body)
			})
		})
	}
	t.Run("a base that says EOF to those who leave", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			rt := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
				return testnet.Answer(r, 200, nil, &leaver{ctx: r.Context()}), nil
			}), retry.Config{})
			resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			checkCut(t, resp.Body)
		})
	})
}

func checkCut(t *testing.T, body io.Reader) {
	t.Helper()
	got, err := io.ReadAll(body)
	var late *retry.TimeoutError
	if string(got) != "one" || !errors.As(err, &late) || !late.Body {
		t.Errorf("read %q, %v", got, err)
	}
}

// leaver is a body that ends when its context does.
type leaver struct {
	ctx  context.Context
	some bool
}

func (b *leaver) Read(p []byte) (int, error) {
	if !b.some {
		b.some = true
		return copy(p, "one"), nil
	}
	<-b.ctx.Done()
	return 0, io.EOF
}

func (b *leaver) Close() error { return nil }

// With changes the StallTimeout of one request, which Wire also knows alone.
func TestStallOverride(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 200, nil, &leaver{ctx: r.Context()}), nil
		})
		for name, rt := range map[string]http.RoundTripper{"chain": newTransport(t, base, retry.Config{}), "Wire": retry.Wire(base, retry.Config{})} {
			for want, o := range map[time.Duration]retry.Override{
				time.Minute:     {AttemptTimeout: time.Second},
				5 * time.Second: {StallTimeout: 5 * time.Second},
				time.Hour:       {StallTimeout: -1}, // the caller's deadline
			} {
				ctx, cancel := context.WithTimeout(retry.With(background(), o), time.Hour)
				start := time.Now()
				resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", "").WithContext(ctx))
				if err != nil {
					t.Fatal(err)
				}
				io.ReadAll(resp.Body)
				if took := time.Since(start); took != want {
					t.Errorf("%s, %+v: cut after %v, want %v", name, o, took, want)
				}
				resp.Body.Close()
				cancel()
			}
		}
	})
}
