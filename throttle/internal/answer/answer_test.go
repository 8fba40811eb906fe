package answer_test

import (
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
	"github.com/weirhttp/weir/throttle/internal/answer"
)

// read is what d reads in resp.
func read(d *answer.Reader, resp *http.Response) (headers.Signal, bool) {
	return d.Read(time.Now(), new(headers.Memory), resp.Request, resp, d.GraphQL(resp.Request, resp, nil))
}

// TestSpeaks: most answers say nothing, and are not read.
func TestSpeaks(t *testing.T) {
	same := func(_ *http.Response, s headers.Signal) headers.Signal { return s }
	for _, tt := range []struct {
		name    string
		d       answer.Reader
		status  int
		header  http.Header
		graphQL bool
		want    bool
	}{
		{"a good answer", answer.Reader{}, 200, http.Header{"Content-Type": {jsonType}}, false, false},
		{"one of GraphQL", answer.Reader{}, 200, nil, true, true},
		{"an error", answer.Reader{}, 404, nil, false, true},
		{"a limit", answer.Reader{}, 200, http.Header{"X-Ratelimit-Remaining": {"7"}}, false, true},
		{"to whom the user listens", answer.Reader{Classify: same}, 200, nil, false, true},
	} {
		resp := testnet.Answer(posting(t, "/", ""), tt.status, tt.header, nil)
		if got := tt.d.Speaks(resp, tt.graphQL); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.want)
		}
	}
}

// TestBodiesAreReadForHints where they may have some, and given back.
func TestBodiesAreReadForHints(t *testing.T) {
	const hint, graphQL = `{"retry_after": 40}`, `{"errors":[{"extensions":{"code":"THROTTLED"}}]}`
	for _, tt := range []struct {
		name, path, kind, text string
		status                 int
		peek                   int64
		throttled, read        bool
		wait                   time.Duration
	}{
		{"a refusal", "/", jsonType, hint, 429, 99, true, true, 40 * time.Second},
		{"a refusal, no bytes of it", "/", jsonType, hint, 429, -1, true, false, 0},
		{"a refusal by a picture", "/", "image/png", hint, 429, 99, true, false, 0},
		{"a good answer", "/", jsonType, hint, 200, 99, false, false, 0},
		{"one of GraphQL", "/graphql", jsonType, graphQL, 200, 99, true, true, 0},
		{"one of GraphQL's type", "/", "application/graphql-response+json", graphQL, 200, 99, true, true, 0},
		{"one of another type", "/", jsonType, graphQL, 200, 99, false, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := testnet.NewBody(tt.text)
				resp := testnet.Answer(posting(t, tt.path, "{}"), tt.status, http.Header{"Content-Type": {tt.kind}}, body)
				resp.ContentLength = -1
				s, ruled := read(&answer.Reader{Peek: tt.peek}, resp)
				if s.Throttled != tt.throttled || s.RetryAfter.Value != tt.wait || ruled || body.Reads() > 0 != tt.read {
					t.Errorf("%+v, ruled %t, %d reads", s, ruled, body.Reads())
				}
				if got, err := io.ReadAll(resp.Body); string(got) != tt.text || err != nil {
					t.Errorf("the caller got %q, %v", got, err)
				}
				resp.Body.Close()
			})
		})
	}
}

// TestASlowBodyIsNotWaitedForLong.
func TestASlowBodyIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := io.Pipe()
		defer to.Close()
		resp := testnet.Answer(posting(t, "/", ""), 429, http.Header{"Content-Type": {jsonType}}, from)
		resp.ContentLength = -1
		began := time.Now()
		read(&answer.Reader{Peek: 99}, resp)
		if took := time.Since(began); took != peek.For {
			t.Errorf("took %v, want %v", took, peek.For)
		}
		resp.Body.Close()
	})
}

// TestTheUserHasTheLastWord: it is told when that is another than the server's.
func TestTheUserHasTheLastWord(t *testing.T) {
	say := func(throttled bool, kind headers.Kind) func(*http.Response, headers.Signal) headers.Signal {
		return func(_ *http.Response, s headers.Signal) headers.Signal {
			s.Throttled, s.Kind = throttled, kind
			return s
		}
	}
	for _, tt := range []struct {
		name      string
		status    int
		classify  func(*http.Response, headers.Signal) headers.Signal
		throttled bool
		kind      headers.Kind
		ruled     bool
	}{
		{"nobody", 429, nil, true, headers.Quota, false},
		{"a 200 is a refusal", 200, say(true, headers.NoKind), true, headers.Quota, true},
		{"a 429 is none", 429, say(false, headers.Quota), false, headers.NoKind, true},
		{"a 429 stays one", 429, say(true, headers.Quota), true, headers.Quota, false},
		{"a 529 was not executed", 529, say(true, headers.Quota), true, headers.Quota, true},
		{"a 529 stays one", 529, say(true, headers.Overload), true, headers.Overload, false},
	} {
		resp := testnet.Answer(posting(t, "/", ""), tt.status, nil, nil)
		s, ruled := read(&answer.Reader{Classify: tt.classify}, resp)
		if s.Throttled != tt.throttled || s.Kind != tt.kind || ruled != tt.ruled {
			t.Errorf("%s: throttled %t, kind %v, ruled %t", tt.name, s.Throttled, s.Kind, ruled)
		}
	}
}

// TestWhatTheUserSaysIsBounded: it is held to what package headers promises.
func TestWhatTheUserSaysIsBounded(t *testing.T) {
	nan := headers.Opt[float64]{Value: math.NaN(), Known: true}
	less := headers.Opt[time.Duration]{Value: -time.Hour, Known: true}
	given := make([]headers.Limit, 1000)
	for i := range given {
		given[i] = headers.Limit{
			Name: strings.Repeat("é", 999), Quota: nan, Remaining: headers.Opt[float64]{Value: -1, Known: true},
			Used: headers.Opt[float64]{Value: math.Inf(1), Known: true}, Refill: headers.Opt[float64]{Value: 7}, Reset: less, Window: less,
		}
	}
	s, _ := read(&answer.Reader{Classify: func(*http.Response, headers.Signal) headers.Signal {
		return headers.Signal{Kind: headers.Ban, RetryAfter: less, Limits: given}
	}}, testnet.Answer(posting(t, "/", ""), 500, nil, nil))
	if s.RetryAfter.Value != 0 || !s.RetryAfter.Known || s.Kind != headers.NoKind || len(s.Limits) != 64 || &s.Limits[0] == &given[0] {
		t.Errorf("%v, %v, %d limits", s.RetryAfter, s.Kind, len(s.Limits))
	}
	want := headers.Limit{Name: strings.Repeat("é", 128), Reset: headers.Opt[time.Duration]{Known: true}}
	if s.Limits[0] != want {
		t.Errorf("%+v\nwant %+v", s.Limits[0], want)
	}
}

// TestRecallSaysTheSame as Read, of a layout that was seen before, unless there is more to
// look at than headers.
func TestRecallSaysTheSame(t *testing.T) {
	var m headers.Memory
	var d answer.Reader
	resp := func() *http.Response {
		return testnet.Answer(posting(t, "/", ""), 200, http.Header{"X-Ratelimit-Limit": {"60"}, "X-Ratelimit-Remaining": {"7"}, "X-Ratelimit-Reset": {"30"}}, nil)
	}
	x := resp()
	want, _ := d.Read(time.Now(), &m, x.Request, x, false)
	if x = resp(); len(want.Limits) != 1 {
		t.Fatalf("%+v", want)
	}
	r := d.Recall(&m, x, false)
	if r == nil || len(r.Signal.Limits) != 1 || r.Signal.Limits[0].Remaining != want.Limits[0].Remaining {
		t.Fatalf("%+v, want %+v", r, want)
	}
	r.Done()
	if d.Recall(&m, resp(), true) != nil {
		t.Error("an answer of GraphQL is recalled")
	}
	d.Classify = func(_ *http.Response, s headers.Signal) headers.Signal { return s }
	if d.Recall(&m, resp(), false) != nil {
		t.Error("the user is not asked")
	}
}

// TestStatusTells what needs no headers.
func TestStatusTells(t *testing.T) {
	after := headers.Signal{RetryAfter: headers.Opt[time.Duration]{Value: time.Second, Known: true}}
	for _, tt := range []struct {
		name           string
		status         int
		s              headers.Signal
		overload, bare bool
	}{
		{"a bare 503", 503, headers.Signal{}, true, true},
		{"a 503 that says when", 503, after, true, false},
		{"a 503 of a quota", 503, headers.Signal{Throttled: true, Kind: headers.Quota}, false, true},
		{"a 503 that states limits", 503, headers.Signal{Limits: make([]headers.Limit, 1)}, true, false},
		{"a 529", 529, headers.Signal{Throttled: true, Kind: headers.Overload}, true, false},
		{"a 429 of an overload", 429, headers.Signal{Throttled: true, Kind: headers.Overload}, true, false},
		{"a 429", 429, headers.Signal{Throttled: true, Kind: headers.Quota}, false, false},
		{"a 500", 500, headers.Signal{}, false, false},
	} {
		if o, b := answer.Overload(tt.status, &tt.s), answer.Bare503(tt.status, &tt.s); o != tt.overload || b != tt.bare {
			t.Errorf("%s: overload %t, bare %t", tt.name, o, b)
		}
	}
}
