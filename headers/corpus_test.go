package headers_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
)

// corpusCase is a response and what it says. Times are seconds.
type corpusCase struct {
	ID      string
	Status  int
	Date    string
	Now     string `json:"local_now"`
	Host    string
	Headers map[string][]string
	Body    *string
	Expect  struct {
		Throttled  bool
		RetryAfter *float64 `json:"retry_after_s"`
		Limits     []corpusLimit
	}
}

type corpusLimit struct {
	Dimension, Name, PK, Scope *string
	Quota, Remaining, Used     *float64
	Window                     *float64 `json:"window_s"`
	Reset                      *float64 `json:"reset_after_s"`
	Ratio                      *float64 `json:"used_ratio"`
	Refill                     *float64 `json:"refill_per_s"`
}

// response builds what the client saw, and its clock.
func (c *corpusCase) response(t testing.TB) (*http.Response, time.Time) {
	t.Helper()
	at := c.Date
	if c.Now != "" {
		at = c.Now
	}
	now, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		t.Fatalf("clock %q: %v", at, err)
	}
	resp := &http.Response{StatusCode: c.Status, Header: c.Headers}
	if c.Host != "" {
		resp.Request = &http.Request{URL: &url.URL{Scheme: "https", Host: c.Host, Path: "/"}}
	}
	return resp, now
}

// parse parses c as a client would.
func (c *corpusCase) parse(t testing.TB) headers.Signal {
	t.Helper()
	resp, now := c.response(t)
	if c.Body != nil {
		return headers.ParseBody(resp, []byte(*c.Body), now)
	}
	return headers.Parse(resp, now)
}

func loadCorpus(t testing.TB) (cases []corpusCase) {
	t.Helper()
	files, err := filepath.Glob("testdata/signals*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var some []corpusCase
		if err := json.Unmarshal(b, &some); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		cases = append(cases, some...)
	}
	return cases
}

// TestCorpus holds every field of every case: what a server said is found, and
// nothing that it did not say.
func TestCorpus(t *testing.T) {
	for _, c := range loadCorpus(t) {
		t.Run(c.ID, func(t *testing.T) {
			got := c.parse(t)
			if got.Throttled != c.Expect.Throttled {
				t.Errorf("throttled: got %v, want %v", got.Throttled, c.Expect.Throttled)
			}
			if msg := differs(seconds(got.RetryAfter), c.Expect.RetryAfter); msg != "" {
				t.Errorf("retry after: %s", msg)
			}
			compareLimits(t, got.Limits, c.Expect.Limits)
			if t.Failed() {
				t.Logf("headers %v\nsignal %v", c.Headers, got)
			}
		})
	}
}

// compareLimits pairs limits in any order: each wanted one with the first
// unused that has all its fields.
func compareLimits(t *testing.T, got []headers.Limit, want []corpusLimit) {
	t.Helper()
	used := make([]bool, len(got))
	for _, w := range want {
		found := false
		var why []string
		for i := range got {
			if used[i] {
				continue
			}
			if msg := w.differs(&got[i]); msg != "" {
				why = append(why, msg)
				continue
			}
			used[i], found = true, true
			break
		}
		if !found {
			t.Errorf("missing limit %s: %s", w, strings.Join(why, " | "))
		}
	}
	for i := range got {
		if !used[i] {
			t.Errorf("limit not said: %v", headers.Signal{Limits: got[i : i+1]})
		}
	}
}

func (w corpusLimit) String() string {
	b, _ := json.Marshal(w)
	return string(b)
}

// differs returns what distinguishes l from w, "" if nothing does. The optional
// fields count only where w has them.
func (w *corpusLimit) differs(l *headers.Limit) string {
	text := func(p *string) string {
		if p == nil {
			return ""
		}
		return *p
	}
	switch {
	case l.Unit != text(w.Dimension):
		return fmt.Sprintf("unit %q", l.Unit)
	case l.Name != text(w.Name):
		return fmt.Sprintf("name %q", l.Name)
	case w.PK != nil && l.Partition != *w.PK:
		return fmt.Sprintf("partition %q", l.Partition)
	case w.Scope != nil && l.Scope != *w.Scope:
		return fmt.Sprintf("scope %q", l.Scope)
	}
	for _, f := range []struct {
		name     string
		got      headers.Opt[float64]
		want     *float64
		optional bool
	}{
		{"quota", l.Quota, w.Quota, false},
		{"remaining", l.Remaining, w.Remaining, false},
		{"window", seconds(l.Window), w.Window, false},
		{"reset", seconds(l.Reset), w.Reset, false},
		{"used", l.Used, w.Used, true},
		{"ratio", l.UsedRatio, w.Ratio, true},
		{"refill", l.Refill, w.Refill, true},
	} {
		if f.want == nil && f.optional {
			continue
		}
		if msg := differs(f.got, f.want); msg != "" {
			return f.name + " " + msg
		}
	}
	return ""
}

func seconds(d headers.Opt[time.Duration]) headers.Opt[float64] {
	return headers.Opt[float64]{d.Value.Seconds(), d.Known}
}

// differs compares numbers with a relative tolerance of a millionth.
func differs(got headers.Opt[float64], want *float64) string {
	switch {
	case !got.Known && want == nil:
		return ""
	case want == nil:
		return fmt.Sprintf("got %v, want none", got.Value)
	case !got.Known:
		return fmt.Sprintf("got none, want %v", *want)
	case math.Abs(got.Value-*want) > 1e-6*max(math.Abs(*want), 1):
		return fmt.Sprintf("got %v, want %v", got.Value, *want)
	}
	return ""
}
