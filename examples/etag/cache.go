package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"sync"

	"github.com/weirhttp/weir/throttle"
)

// cache asks again only whether an answer has changed. It is the part of an HTTP
// cache that this example needs: Transport of github.com/gregjones/httpcache, or
// any other, can stand in its place, with free as its base.
type cache struct {
	base http.RoundTripper
	most int64 // bytes of a body that is kept

	mu   sync.Mutex
	kept map[string][]byte // answers as they were sent, by URL
}

// RoundTrip sends a GET with the tag of the answer that is kept, and gives that
// answer again if the server says that it has not changed.
func (c *cache) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || r.Header.Get("If-None-Match") != "" || r.Header.Get("Range") != "" {
		return c.base.RoundTrip(r)
	}
	key := r.URL.String() + "\n" + r.Header.Get("Authorization") + "\n" + r.Header.Get("Accept")
	old := c.read(key, r)
	if old != nil {
		asked := *r
		asked.Header = r.Header.Clone()
		asked.Header.Set("If-None-Match", old.Header.Get("Etag"))
		resp, err := c.base.RoundTrip(asked.WithContext(r.Context()))
		if err != nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusNotModified {
			resp.Body.Close()
			return old, nil
		}
		return c.keep(key, resp)
	}
	resp, err := c.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	return c.keep(key, resp)
}

func (c *cache) read(key string, r *http.Request) *http.Response {
	c.mu.Lock()
	text := c.kept[key]
	c.mu.Unlock()
	if text == nil {
		return nil
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(text)), r)
	if err != nil {
		return nil
	}
	return resp
}

// keep keeps an answer that has a tag and is not too long.
func (c *cache) keep(key string, resp *http.Response) (*http.Response, error) {
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Etag") == "" || resp.ContentLength > c.most {
		return resp, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.most+1))
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	if int64(len(body)) > c.most {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
		return resp, nil
	}
	resp.Body.Close()
	resp.Body, resp.ContentLength, resp.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	text, err := httputil.DumpResponse(resp, true)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) >= 10000 {
		clear(c.kept) // a real cache forgets the oldest
	}
	c.kept[key] = text
	return resp, nil
}

// free stands between a cache and weir. It gives back what a request took from
// the budget if its answer is one that the server does not count.
type free struct{ base http.RoundTripper }

func (f free) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := f.base.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusNotModified {
		err = throttle.Settle(resp, throttle.Cost{"requests": 0})
		if err != nil {
			resp.Body.Close()
			return nil, err
		}
	}
	return resp, err
}
