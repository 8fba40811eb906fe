package throttle_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/peek"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/throttle"
)

// serving is a base that gives one answer after the other, the last for good.
func serving(all ...func(*http.Request) *http.Response) *base {
	n := 0
	return newBase(func(r *http.Request) (*http.Response, error) {
		n++
		return all[min(n, len(all))-1](r), nil
	})
}

// of is an answer of that status, type and body.
func of(status int, kind, text string) func(*http.Request) *http.Response {
	return func(r *http.Request) *http.Response {
		return testnet.Answer(r, status, http.Header{"Content-Type": {kind}}, testnet.NewBody(text))
	}
}

// Classify's word counts instead of the status: what it calls throttled pauses
// the host for as long as it says, and a 429 that is none pauses nobody.
func TestClassifyRules(t *testing.T) {
	busy := func(_ *http.Response, s headers.Signal) headers.Signal {
		s.Throttled, s.RetryAfter = true, headers.Opt[time.Duration]{Value: 30 * time.Second, Known: true}
		return s
	}
	not := func(_ *http.Response, s headers.Signal) headers.Signal {
		s.Throttled = false
		return s
	}
	for _, tt := range []struct {
		name      string
		status    int
		classify  func(*http.Response, headers.Signal) headers.Signal
		throttled int64
		waits     bool
	}{
		{"a 200 is throttled", 200, busy, 1, true},
		{"a 500 is throttled", 500, busy, 1, true},
		{"a 429 is no limit", 429, not, 0, false},
		{"a 429 stays one", 429, busy, 1, true},
		{"nothing is said about a 404", 404, not, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				b := serving(of(tt.status, "text/plain", "x"), of(200, "text/plain", "x"))
				tr := newTransport(t, b, throttle.Config{Classify: func(resp *http.Response, s headers.Signal) headers.Signal {
					if asked++; asked > 1 {
						return s
					}
					return tt.classify(resp, s)
				}})
				mustGet(t, tr, "http://a/x").Body.Close()
				mustGet(t, tr, "http://a/x").Body.Close()
				if at := b.Times()[1]; at >= 30*time.Second != tt.waits {
					t.Errorf("the next request went after %v", at)
				}
				if n := tr.Stats().Hosts[0].Throttled; n != tt.throttled || asked != 2 {
					t.Errorf("%d throttled answers, asked %d times; want %d, once for each answer", n, asked, tt.throttled)
				}
			})
		})
	}
}

// Classify reads the start of a body as any body, without taking anything from
// the caller; what it does not read is not read.
func TestClassifyReadsTheStart(t *testing.T) {
	long := `{"data": "` + strings.Repeat("x", 9000) + `"}`
	for _, tt := range []struct {
		name, kind, encoding, text string
		peek                       int64
		reads                      bool
		want                       string
	}{
		{"all of a short one", "application/json", "", `{"a":1}`, 0, true, `{"a":1}`},
		{"as much as PeekBody", "application/json", "", long, 10, true, long[:10]},
		{"4 KiB", "text/plain", "", long, 0, true, long[:4<<10]},
		{"nothing where PeekBody says so", "application/json", "", long, -1, true, ""},
		{"nothing of a stream", "text/event-stream", "", "data: x\n\n", 0, true, ""},
		{"nothing of lines", "application/x-ndjson", "", "{}\n", 0, true, ""},
		{"nothing that is compressed", "application/json", "gzip", "xxx", 0, true, ""},
		{"nothing of a picture", "image/png", "", "xxx", 0, true, ""},
		{"not unless it reads", "application/json", "", long, 0, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := testnet.NewBody(tt.text)
				b := newBase(func(r *http.Request) (*http.Response, error) {
					resp := testnet.Answer(r, 200, http.Header{"Content-Type": {tt.kind}}, body)
					resp.ContentLength = -1
					if tt.encoding != "" {
						resp.Header.Set("Content-Encoding", tt.encoding)
					}
					return resp, nil
				})
				tr := newTransport(t, b, throttle.Config{PeekBody: tt.peek, Classify: func(resp *http.Response, s headers.Signal) headers.Signal {
					if tt.reads {
						got, err := io.ReadAll(resp.Body)
						if string(got) != tt.want || err != nil {
							t.Errorf("read %.20q, %v; want %.20q", got, err, tt.want)
						}
						resp.Body.Close()
					}
					return s
				}})
				resp := mustGet(t, tr, "http://a/")
				if read := body.Reads() > 0; read != (tt.want != "") {
					t.Errorf("the body was read: %t", read)
				}
				if got, err := io.ReadAll(resp.Body); string(got) != tt.text || err != nil {
					t.Errorf("the caller got %d bytes, %v; want %d", len(got), err, len(tt.text))
				}
				resp.Body.Close()
			})
		})
	}
}

// A body that comes slowly is not held up: Classify waits 100 ms for its start,
// and the caller gets each byte when it comes.
func TestClassifyDoesNotHoldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := io.Pipe()
		b := newBase(func(r *http.Request) (*http.Response, error) {
			resp := testnet.Answer(r, 200, http.Header{"Content-Type": {"application/json"}}, from)
			resp.ContentLength = -1
			return resp, nil
		})
		go func() {
			for range 3 {
				io.WriteString(to, "[1]")
				time.Sleep(10 * time.Second)
			}
			to.Close()
		}()
		tr := newTransport(t, b, throttle.Config{Classify: func(resp *http.Response, s headers.Signal) headers.Signal {
			if got, err := io.ReadAll(resp.Body); string(got) != "[1]" || err != nil {
				t.Errorf("Classify read %q, %v; want what had come", got, err)
			}
			return s
		}})
		resp := mustGet(t, tr, "http://a/")
		if took := time.Since(b.Start); took != peek.For {
			t.Errorf("the answer came after %v, want %v", took, peek.For)
		}
		part := make([]byte, 10)
		for i := range 3 {
			n, err := resp.Body.Read(part)
			if at := time.Since(b.Start).Truncate(time.Second); string(part[:n]) != "[1]" || err != nil || at != time.Duration(10*i)*time.Second {
				t.Errorf("read %q, %v after %v", part[:n], err, at)
			}
		}
		if n, err := resp.Body.Read(part); n != 0 || err != io.EOF {
			t.Errorf("in the end %d bytes, %v", n, err)
		}
		resp.Body.Close()
	})
}

// A refusal that states a bucket and what the request needs of it is waited out
// until that is there, not by guesses.
func TestStatedNeedSaysWhen(t *testing.T) {
	for _, tt := range []struct {
		name, cost  string
		least, most time.Duration
	}{
		{"in six seconds", `"requestedQueryCost":752,"throttleStatus":{"maximumAvailable":2000,"currentlyAvailable":152,"restoreRate":100}`, 6 * time.Second, 8 * time.Second},
		{"never", `"requestedQueryCost":3000,"throttleStatus":{"maximumAvailable":2000,"currentlyAvailable":152,"restoreRate":100}`, 0, time.Second},
		{"in a century", `"requestedQueryCost":99999999999,"throttleStatus":{"currentlyAvailable":0,"restoreRate":0.01}`, 5 * time.Minute, 5 * time.Minute},
		{"without a rate", `"requestedQueryCost":752,"throttleStatus":{"maximumAvailable":2000,"currentlyAvailable":152,"restoreRate":0}`, 0, time.Second},
		{"there already", `"requestedQueryCost":1,"throttleStatus":{"maximumAvailable":2000,"currentlyAvailable":152,"restoreRate":1}`, 0, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refusal := of(200, "application/json", `{"errors":[{"extensions":{"code":"THROTTLED"}}],"extensions":{"cost":{`+tt.cost+`}}}`)
				b := serving(refusal, of(200, "application/json", "{}"))
				tr := newTransport(t, b, throttle.Config{MaxWait: time.Hour})
				mustGet(t, tr, "http://a/graphql").Body.Close()
				mustGet(t, tr, "http://a/graphql").Body.Close()
				if at := b.Times()[1]; at < tt.least || at > tt.most {
					t.Errorf("the next went after %v, want %v to %v", at, tt.least, tt.most)
				}
			})
		})
	}
}

// What Classify keeps is of no use and does no harm: it cannot read on, close or
// replace the caller's body.
func TestClassifyKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept []*http.Response
		tr := newTransport(t, serving(of(200, "application/json", "one"), of(200, "application/json", "two")),
			throttle.Config{Classify: func(resp *http.Response, s headers.Signal) headers.Signal {
				if kept = append(kept, resp); len(kept) == 1 {
					resp.Body.Read(make([]byte, 1))
				}
				resp.StatusCode = 500
				return s
			}})
		for i, text := range []string{"one", "two"} {
			resp := mustGet(t, tr, "http://a/")
			rest, err := io.ReadAll(kept[i].Body)
			if want := []string{"ne", ""}[i]; string(rest) != want || i == 1 && !errors.Is(err, http.ErrBodyReadAfterClose) {
				t.Errorf("%d: what was kept gives %q, %v", i, rest, err)
			}
			kept[i].Body.Close()
			if got, err := io.ReadAll(resp.Body); string(got) != text || err != nil || resp.StatusCode != 200 {
				t.Errorf("%d: the caller got %q, %v, status %d", i, got, err, resp.StatusCode)
			}
			resp.Body.Close()
		}
	})
}

// A Classify that panics, or ends its goroutine, leaves nothing behind: the
// answer's body is closed and its place is free.
func TestClassifyPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, calm := testnet.NewBody("x"), false
		b := newBase(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 200, http.Header{"Content-Type": {"text/plain"}}, body), nil
		})
		tr := newTransport(t, b, throttle.Config{Default: throttle.Budget{InFlight: 1}, Classify: func(resp *http.Response, s headers.Signal) headers.Signal {
			if calm {
				return s
			}
			io.ReadAll(resp.Body)
			panic("no")
		}})
		func() {
			defer func() {
				if got := recover(); got != "no" {
					t.Errorf("recovered %v", got)
				}
			}()
			mustGet(t, tr, "http://a/")
		}()
		if body.Closes() != 1 {
			t.Errorf("closed %d times", body.Closes())
		}
		calm, body = true, testnet.NewBody("x")
		mustGet(t, tr, "http://a/").Body.Close()
	})
}

// Classify may use the Transport that asks it: no lock is held.
func TestClassifyCallsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tr *throttle.Transport
		tr = newTransport(t, serving(of(429, "text/plain", "x"), of(200, "text/plain", "x")),
			throttle.Config{Classify: func(resp *http.Response, s headers.Signal) headers.Signal {
				if resp.StatusCode == 429 {
					tr.Stats()
					mustGet(t, tr, "http://b/").Body.Close()
				}
				return s
			}})
		mustGet(t, tr, "http://a/").Body.Close()
	})
}

// What Classify returns is held to what package headers promises.
func TestClassifyIsBounded(t *testing.T) {
	nan := headers.Opt[float64]{Value: math.NaN(), Known: true}
	less := headers.Opt[time.Duration]{Value: -time.Hour, Known: true}
	one := headers.Limit{
		Name: strings.Repeat("é", 999), Quota: nan, Remaining: headers.Opt[float64]{Value: -1, Known: true},
		Used: headers.Opt[float64]{Value: math.Inf(1), Known: true}, Refill: headers.Opt[float64]{Value: 7}, Reset: less, Window: less,
	}
	given := make([]headers.Limit, 1000)
	for i := range given {
		given[i] = one
	}
	classify := func(*http.Response, headers.Signal) headers.Signal {
		return headers.Signal{Kind: headers.Ban, RetryAfter: less, Limits: given}
	}
	var s headers.Signal
	mustGet(t, hearing{newTransport(t, serving(of(500, "text/plain", "x")), throttle.Config{Classify: classify}), &s}, "http://a/")
	if s.RetryAfter.Value != 0 || !s.RetryAfter.Known || len(s.Limits) != 64 || &s.Limits[0] == &given[0] {
		t.Errorf("%v, %d limits", s.RetryAfter, len(s.Limits))
	}
	want := headers.Limit{Name: strings.Repeat("é", 128), Reset: headers.Opt[time.Duration]{Known: true}}
	if s.Limits[0] != want {
		t.Errorf("%+v\nwant %+v", s.Limits[0], want)
	}
	synctest.Test(t, func(t *testing.T) { // and nothing of it stops the next
		tr := newTransport(t, serving(of(200, "text/plain", "x")), throttle.Config{Classify: classify})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range 20 {
			resp, err := get(t, ctx, tr, "http://a/")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
	})
}

// hearing stands for a layer above the throttle that looks at what an answer says.
type hearing struct {
	t    *throttle.Transport
	said *headers.Signal
}

func (h hearing) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	r, tr, made := trip.Begin(r, trip.Retry, h.t.Link().Hosts)
	if made {
		defer func() { err = tr.End(err) }()
	}
	tr.At(trip.Retry)
	tr.Next()
	if resp, err = h.t.RoundTrip(r); err == nil {
		*h.said = tr.Heard(resp).Signal
	}
	return resp, err
}
