package headers_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirhttp/weir/headers"
)

// checkSane holds what is true of every signal, whatever was sent.
func checkSane(t *testing.T, s headers.Signal) {
	t.Helper()
	if s.RetryAfter.Value < 0 || !s.RetryAfter.Known && s.RetryAfter.Value != 0 {
		t.Errorf("retry after %v", s.RetryAfter)
	}
	if !s.Throttled && s.Kind != headers.NoKind {
		t.Errorf("not throttled, and yet of kind %v", s.Kind)
	}
	if len(s.Limits) > maxLimits {
		t.Errorf("%d limits", len(s.Limits))
	}
	for _, l := range s.Limits {
		for _, v := range []headers.Opt[float64]{l.Quota, l.Used, l.Remaining, l.UsedRatio, l.Refill, l.Cost} {
			if v.Value < 0 || math.IsNaN(v.Value) || math.IsInf(v.Value, 0) || !v.Known && v.Value != 0 {
				t.Errorf("number %v in %+v", v, l)
			}
		}
		if l.Reset.Value < 0 || l.Window.Value < 0 || l.Window.Known && l.Window.Value == 0 {
			t.Errorf("time in %+v", l)
		}
		for _, text := range []string{l.Name, l.Unit, l.Scope, l.Partition, l.Source} {
			if len(text) > maxName || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("text %q in %+v", text, l)
			}
		}
	}
	if s.String() == "" {
		t.Error("no words for it")
	}
}

// sorted returns s with its limits in an order that depends on their content
// alone: as a set.
func sorted(s headers.Signal) string {
	lines := make([]string, len(s.Limits))
	for i, l := range s.Limits {
		lines[i] = fmt.Sprintf("%+v", l)
	}
	slices.Sort(lines)
	s.Limits = nil
	return fmt.Sprintf("%+v\n%s", s, strings.Join(lines, "\n"))
}

// fuzzHeader reads lines of "Name: value". Of names that differ in case alone
// only the first counts, for a map has no order to tell which came first.
func fuzzHeader(text string) http.Header {
	h := http.Header{}
	seen := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		folded := fold(name)
		if first, ok := seen[folded]; ok {
			name = first
		}
		seen[folded] = name
		h[name] = append(h[name], value)
	}
	return h
}

// fold and shout change the case of ASCII letters alone, as HTTP does.
func fold(s string) string  { return recased(s, 'A', 'a') }
func shout(s string) string { return recased(s, 'a', 'A') }

// recased is s with the letters of one case, whose first letter is from, in the other.
func recased(s string, from, to byte) string {
	b := []byte(s)
	for i, c := range b {
		if c >= from && c < from+26 {
			b[i] = c - from + to
		}
	}
	return string(b)
}

func renamed(h http.Header, f func(string) string) http.Header {
	out := http.Header{}
	for name, lines := range h {
		out[f(name)] = lines
	}
	return out
}

// FuzzParse holds that nothing panics, every signal is sane, that the case of
// names and headers that are none of ours change nothing, and that the headers
// are left alone.
func FuzzParse(f *testing.F) {
	for _, c := range loadCorpus(f) {
		var b strings.Builder
		for name, lines := range c.Headers {
			for _, line := range lines {
				fmt.Fprintf(&b, "%s:%s\n", name, line)
			}
		}
		body := ""
		if c.Body != nil {
			body = *c.Body
		}
		f.Add(c.Status, b.String(), body)
	}
	f.Fuzz(func(t *testing.T, status int, text, body string) {
		h := fuzzHeader(text)
		before := fmt.Sprint(h)
		parse := func(h http.Header) string {
			s := headers.ParseBody(response(status, h), []byte(body), noon)
			checkSane(t, s)
			return sorted(s)
		}
		want := parse(h)
		checkSane(t, headers.Parse(response(status, h), noon))
		if after := fmt.Sprint(h); after != before {
			t.Errorf("headers changed:\n%s\n%s", before, after)
		}
		if got := parse(renamed(h, fold)); got != want {
			t.Errorf("lower case changes\n%s\nto\n%s", want, got)
		}
		if got := parse(renamed(h, shout)); got != want {
			t.Errorf("upper case changes\n%s\nto\n%s", want, got)
		}
		// The headers go into the map in another order, with strangers among them.
		names := make([]string, 0, len(h))
		for name := range h {
			names = append(names, name)
		}
		slices.Sort(names)
		slices.Reverse(names)
		more := http.Header{"X-Unrelated": {"7"}, "Etag": {`"a"`}}
		for _, name := range names {
			if name != "X-Unrelated" && name != "Etag" {
				more[name] = h[name]
			}
		}
		if got := parse(more); got != want {
			t.Errorf("unrelated headers change\n%s\nto\n%s", want, got)
		}
	})
}

// FuzzStructured holds that whatever stands in a list, the signal is sane.
func FuzzStructured(f *testing.F) {
	for _, s := range headers.ListSeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, name := range []string{"RateLimit", "RateLimit-Policy", "X-RateLimit-Limit", "X-RateLimit-Remaining"} {
			checkSane(t, headers.Parse(response(200, http.Header{name: {s}}), noon))
		}
	})
}

// FuzzBody holds that any body, and any beginning of it, gives a sane signal,
// and that it never overrides a header.
func FuzzBody(f *testing.F) {
	for _, c := range loadCorpus(f) {
		if c.Body != nil {
			f.Add(c.Status, *c.Body, len(*c.Body)/2)
		}
	}
	f.Add(429, strings.Repeat(`{"error":`, 100), 50)
	f.Add(429, `{"retry_after":1e400,"error":{"retry_after_ms":-1}}`, 20)
	f.Add(200, `[[[["a\u00e9\`, 3)
	f.Add(200, shopify, len(shopify)-2)
	f.Add(200, `{"errors":[{"code":"THROTTLED"}],"data":{"a":1},"code":429}`, 50)
	f.Fuzz(func(t *testing.T, status int, body string, cut int) {
		s := headers.ParseBody(response(status, nil), []byte(body), noon)
		checkSane(t, s)
		if cut >= 0 && cut < len(body) {
			part := headers.ParseBody(response(status, nil), []byte(body[:cut]), noon)
			checkSane(t, part)
			if part.Throttled && !s.Throttled && status == 200 && json.Valid([]byte(body)) {
				t.Errorf("%q alone is a refusal, and %q is none", body[:cut], body)
			}
		}
		h := http.Header{"Retry-After": {"7"}}
		if got := headers.ParseBody(response(status, h), []byte(body), noon).RetryAfter; got != some(7*time.Second) {
			t.Errorf("the header says 7 s, and the signal %v", got)
		}
		if s.Throttled && status != 429 && len(body) == 0 && status/100 == 2 {
			t.Errorf("throttled by nothing")
		}
	})
}

// written is a number as a server may write it.
var written = regexp.MustCompile(`^[ \t\r\n]*[0-9]+([.][0-9]+)?[ \t\r\n]*$`)

// FuzzRetryAfter holds that a wait is never negative, that it is no matter
// whether lines are joined by a comma, and that a wait in s is never shorter
// than the same number in ms.
func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"30", "1.5", "Thu, 15 Jan 2026 12:00:10 GMT", "1768478430", "9007199254741", "1m30s", "00:00:09.0530000",
		"PT1M", "-1", "+1", "²", "NaN", "1e9", "99999999999999999999999", "30, 120, bad", `"60"`, "2026-01-15T12:00:30+01:00", "5 minutes", "1.00:00:05"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		wait := headers.Parse(response(429, http.Header{"Retry-After": {s}}), noon).RetryAfter
		if wait.Value < 0 || !wait.Known && wait.Value != 0 {
			t.Errorf("%q waits %v", s, wait)
		}
		if written.MatchString(s) && !wait.Known {
			t.Errorf("the number %q is no wait", s)
		}
		twice := headers.Parse(response(429, http.Header{"Retry-After": {s, s}}), noon).RetryAfter
		if twice != wait {
			t.Errorf("%q: once %v, twice %v", s, wait, twice)
		}
		for _, name := range []string{"Retry-After-Ms", "X-RateLimit-Reset", "X-RateLimit-Reset-After", "X-RateLimit-Window", "X-Sentry-Rate-Limits"} {
			checkSane(t, headers.Parse(response(429, http.Header{name: {s}}), noon))
		}
	})
}

// FuzzDate holds that every form of a date that can be written is read as the
// instant it is, and that no text whatever upsets the reader.
func FuzzDate(f *testing.F) {
	f.Add(int64(1768478400), int64(0), 3600, "Thu, 15 Jan 2026 12:00:00 GMT")
	f.Add(int64(0), int64(999), -18000, "Tue Feb 16 2021 09:02:42 GMT+0100 (Central European Standard Time)")
	f.Add(int64(951782400), int64(5e8), 0, "2024-05-05T18:02Z")
	f.Add(int64(4102444799), int64(1), 49500, "Mon, 3 Jun 2019 12:00:00 UTC")
	f.Fuzz(func(t *testing.T, sec, nsec int64, offset int, text string) {
		for _, name := range []string{"Date", "X-RateLimit-Reset"} {
			checkSane(t, headers.Parse(response(200, http.Header{name: {text}, "X-RateLimit-Limit": {"7"}}), noon))
		}
		const last = 253402300799 // the year 9999 ends
		if sec < 0 || sec > last || nsec < 0 || nsec > 999999999 || offset < -64800 || offset > 64800 {
			return
		}
		at := time.Unix(sec, nsec).In(time.FixedZone("", offset/60*60))
		if at.Year() > 9999 || at.Year() < 1000 {
			return
		}
		utc := at.UTC().Truncate(time.Second)
		if utc.Year() > 9999 {
			return
		}
		forms := []struct{ text, layout string }{
			{utc.Format(http.TimeFormat), http.TimeFormat},
			{utc.Format("Mon, 2 Jan 2006 15:04:05 UTC"), "one-digit day"},
			{utc.Format(time.ANSIC), time.ANSIC},
			{utc.Format(time.UnixDate), time.UnixDate},
			{at.Truncate(time.Second).Format(time.RFC1123Z), time.RFC1123Z},
			{at.Truncate(time.Second).Format("Mon Jan 02 2006 15:04:05 GMT-0700 (Somewhere)"), "JavaScript"},
			{at.Truncate(time.Second).Format(time.RFC3339), time.RFC3339},
			{utc.Format("2006-01-02 15:04:05"), "SQL"},
			{utc.Format("20060102T150405Z"), "basic"},
		}
		for _, form := range forms {
			if got, ok := dateOf(form.text, utc); !ok || !got.Equal(utc) {
				t.Errorf("%s: %q is %v, %v, want %v", form.layout, form.text, got, ok, utc)
			}
		}
		if got, ok := dateOf(at.Format(time.RFC3339Nano), at); !ok || !got.Equal(at) {
			t.Errorf("%q is %v, %v", at.Format(time.RFC3339Nano), got, ok)
		}
	})
}
