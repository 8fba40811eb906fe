package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
)

// store is what answers are kept in. The caches made for
// github.com/gregjones/httpcache (on disk, memcache, leveldb, ...) fit.
type store interface {
	Get(key string) (answer []byte, ok bool)
	Set(key string, answer []byte)
}

// cache keeps good answers for the day on which their host is down.
type cache struct {
	store store
	most  int64 // bytes of a body that is kept
}

func newCache(most int64) *cache {
	return &cache{store: &memory{kept: map[string][]byte{}}, most: most}
}

// keep returns a RoundTripper that keeps copies of base's good answers, as
// their readers come to the end of them.
func (c *cache) keep(base http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := base.RoundTrip(r)
		if err != nil || !public(r, resp) || resp.Header.Get("Cache-Status") != "" {
			return resp, err
		}
		if resp.ContentLength > c.most {
			return resp, nil // it is only not kept
		}
		answer, key := *resp, r.URL.String()
		answer.Header = resp.Header.Clone()
		resp.Body = &copied{ReadCloser: resp.Body, most: c.most, whole: func(body []byte) {
			answer.Body, answer.ContentLength, answer.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
			if text, err := httputil.DumpResponse(&answer, true); err == nil {
				c.store.Set(key, text)
			}
		}}
		return resp, nil
	})
}

// public reports whether an answer may be shown to whoever asks the same.
func public(r *http.Request, resp *http.Response) bool {
	control := strings.ToLower(resp.Header.Get("Cache-Control"))
	return r.Method == http.MethodGet && resp.StatusCode == http.StatusOK &&
		len(anonymous(r.Header)) == len(r.Header) && resp.Header.Get("Vary") == "" &&
		!strings.Contains(control, "no-store") && !strings.Contains(control, "private")
}

// anonymous returns those of h that say nothing of who asks. Which others do,
// by a key or a cookie, only their owner knows.
func anonymous(h http.Header) http.Header {
	some := http.Header{}
	for _, name := range []string{"Accept", "Accept-Encoding", "Accept-Language", "Content-Type", "User-Agent"} {
		if values, ok := h[name]; ok {
			some[name] = values
		}
	}
	return some
}

// fallback answers with what was kept, marked as RFC 9211 has it.
func (c *cache) fallback(r *http.Request, _ error) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return nil, nil
	}
	kept, ok := c.store.Get(r.URL.String())
	if !ok {
		return nil, nil
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(kept)), r)
	if err != nil {
		return nil, nil // what cannot be read is not there
	}
	resp.Header.Set("Cache-Status", "fallback; hit; detail=stale")
	return resp, nil
}

// copied is a body that is kept when it was read to its end.
type copied struct {
	io.ReadCloser
	most  int64
	read  bytes.Buffer
	whole func([]byte)
}

func (c *copied) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if c.whole == nil {
		return n, err
	}
	c.read.Write(p[:n])
	switch {
	case int64(c.read.Len()) > c.most, err != nil && err != io.EOF:
		c.whole, c.read = nil, bytes.Buffer{}
	case err == io.EOF:
		c.whole(c.read.Bytes())
		c.whole = nil
	}
	return n, err
}

// memory is a store for a program's life. It keeps everything; a real one has
// a bound.
type memory struct {
	mu   sync.Mutex
	kept map[string][]byte
}

func (m *memory) Get(key string) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	answer, ok := m.kept[key]
	return answer, ok
}

func (m *memory) Set(key string, answer []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept[key] = answer
}

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
