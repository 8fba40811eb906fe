package headers_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
)

// recalled is what m recalls of resp; ok is false if it does not.
func recalled(m *headers.Memory, resp *http.Response) (s headers.Signal, ok bool) {
	r := m.Recall(resp)
	if r == nil {
		return s, false
	}
	defer r.Done()
	s = r.Signal
	s.Limits = slices.Clone(s.Limits)
	return s, true
}

// A host's answers are recalled once one of them was parsed, in the dialects that
// most servers speak, and mean what Parse says.
func TestMemoryRecalls(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lines func(n int) string // of the n-th answer
	}{
		{"GitHub", func(n int) string {
			return fmt.Sprintf("X-Ratelimit-Limit:5000\nX-Ratelimit-Remaining:%d\nX-Ratelimit-Used:%d\nX-Ratelimit-Reset:%d\nX-Ratelimit-Resource:core", 5000-n, n, 1768480000+n/9)
		}},
		{"three headers", func(n int) string {
			return fmt.Sprintf("X-Ratelimit-Limit:100\nX-Ratelimit-Remaining:%d\nX-Ratelimit-Reset:%d", 100-n, 60-n)
		}},
		{"used alone", func(n int) string { return fmt.Sprintf("X-Ratelimit-Limit:100\nX-Ratelimit-Used:%d", 2*n) }},
		{"no size", func(n int) string { return fmt.Sprintf("X-Ratelimit-Remaining:%d\nX-Ratelimit-Used:%d", 100-n, n) }},
		{"draft 8", func(n int) string {
			return fmt.Sprintf("Ratelimit:\"default\";r=%d;t=%d\nRatelimit-Policy:\"default\";q=100;w=60", 100-n, 60-n)
		}},
		{"draft 8, two policies", func(n int) string {
			return fmt.Sprintf("Ratelimit:\"burst\";r=%d;t=2, \"hour\";r=%d;t=%d\nRatelimit-Policy:\"burst\";q=20;w=2, \"hour\";q=1000;w=3600", n%20, 1000-n, 3600-n)
		}},
		{"draft 6", func(n int) string {
			return fmt.Sprintf("Ratelimit-Limit:100\nRatelimit-Remaining:%d\nRatelimit-Reset:%d\nRatelimit-Policy:100;w=60", 100-n, 60-n)
		}},
		{"OpenAI", func(n int) string {
			return fmt.Sprintf("X-Ratelimit-Limit-Requests:60\nX-Ratelimit-Limit-Tokens:150000\nX-Ratelimit-Remaining-Requests:%d\nX-Ratelimit-Remaining-Tokens:%d\nX-Ratelimit-Reset-Requests:%dms\nX-Ratelimit-Reset-Tokens:6m%ds", 60-n, 150000-17*n, 20+n, n)
		}},
		{"Anthropic", func(n int) string {
			return fmt.Sprintf("Anthropic-Ratelimit-Requests-Limit:50\nAnthropic-Ratelimit-Requests-Remaining:%d\nAnthropic-Ratelimit-Requests-Reset:2026-01-15T12:00:%02dZ", 50-n, n)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m headers.Memory
			for n := 1; n < 50; n++ {
				h := fuzzHeader(tt.lines(n))
				h.Set("Date", noon.Add(time.Duration(n)*time.Second).Format(http.TimeFormat))
				h.Set("X-Github-Request-Id", strconv.Itoa(n))
				h.Set("Content-Type", "text/plain")
				resp := response(200+n%3, h)
				got, ok := recalled(&m, resp)
				if want := headers.Parse(resp, noon); !ok {
					got = m.Parse(resp, noon)
					if n > 1 {
						t.Errorf("answer %d is not recalled: %v", n, h)
					}
				} else if !reflect.DeepEqual(got, want) || len(got.Limits) == 0 {
					t.Errorf("answer %d: recalled %v, parsed %v", n, got, want)
				}
			}
		})
	}
}

// A reset that is a span is recalled as Parse reads it, in short forms and in others.
func TestMemoryReadsSpans(t *testing.T) {
	answer := func(reset string) *http.Response {
		return response(200, fuzzHeader("X-Ratelimit-Limit-Requests:60\nX-Ratelimit-Remaining-Requests:7\nX-Ratelimit-Reset-Requests:"+reset))
	}
	var m headers.Memory
	m.Parse(answer("6m12s"), noon)
	texts := []string{"0s", "5s", "59ms", "5ms3s", "1h2m3s4ms", "00001s", "99999h", "99999h99999h999h", "123456s", "1m2", "m", "1mm", "1s2s", "1ms1m"}
	for _, unit := range []string{"ns", "us", "ms", "s", "m", "h", "d", "msec", "sec", "min", "hr", "mx", "sh", "H"} {
		texts = append(texts, "7"+unit, "7"+unit+"5s", "1.5"+unit, "7 "+unit)
	}
	for _, text := range texts {
		resp := answer(text)
		want := headers.Parse(resp, noon)
		if got, ok := recalled(&m, resp); ok && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: recalled %v, parsed %v", text, got, want)
		} else if !ok && strings.Trim(text, "0123456789hms") == "" && len(want.Limits) > 0 && want.Limits[0].Reset.Known && want.Limits[0].ResetMeans == headers.Full {
			t.Errorf("%q is not recalled: parsed %v", text, want)
		}
	}
}

// An answer of a known layout makes no memory.
func TestMemoryRecallsWithoutAllocations(t *testing.T) {
	var m headers.Memory
	resp := response(200, fuzzHeader("Date:Thu, 15 Jan 2026 12:00:00 GMT\nX-Ratelimit-Limit:5000\nX-Ratelimit-Remaining:17\nX-Ratelimit-Reset:1768480000"))
	m.Parse(resp, noon)
	if n := testing.AllocsPerRun(100, func() { m.Recall(resp).Done() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A reset that is an instant is reckoned from the date of its own answer, also after
// one of that date that could not be read to its end.
func TestMemoryReckonsResetsFromTheirDate(t *testing.T) {
	answer := func(second, remaining string) *http.Response {
		return response(200, fuzzHeader("Date:Thu, 15 Jan 2026 12:00:"+second+" GMT\nA-Ratelimit-Remaining:"+remaining+"\nA-Ratelimit-Reset:1768480000"))
	}
	var m headers.Memory
	m.Parse(answer("00", "9"), noon)
	for _, tt := range []struct{ second, remaining string }{{"00", "9"}, {"01", "8"}, {"02", "none"}, {"02", "7"}, {"02", "6"}, {"00", "5"}} {
		resp := answer(tt.second, tt.remaining)
		if got, ok := recalled(&m, resp); ok != (tt.remaining != "none") || ok && !reflect.DeepEqual(got, headers.Parse(resp, noon)) {
			t.Errorf("%v: recalled %v, %v, want %v", tt, got, ok, headers.Parse(resp, noon))
		}
	}
}

// An answer of GraphQL's media type is never recalled, whether the layout has seen a
// media type or not, nor is a layout made of it.
func TestMemoryLeavesGraphQLToParse(t *testing.T) {
	answer := func(media string) *http.Response {
		h := fuzzHeader("X-Ratelimit-Limit:5000\nX-Ratelimit-Remaining:17\nX-Ratelimit-Reset:60")
		if media != "" {
			h.Set("Content-Type", media)
		}
		return response(200, h)
	}
	const graphQL = "application/graphql-response+json; charset=utf-8"
	for _, first := range []string{"", "application/json", graphQL} {
		var m headers.Memory
		m.Parse(answer(first), noon)
		for _, media := range []string{"", "application/json", graphQL} {
			if _, got := recalled(&m, answer(media)); got != (media != graphQL && first != graphQL) {
				t.Errorf("after %q: recalled %q: %v", first, media, got)
			}
		}
	}
}

// What only Parse can tell is not recalled: other headers than before, other texts,
// refusals, answers out of a cache.
func TestMemoryIsAskedNothingNew(t *testing.T) {
	known := "Date:Thu, 15 Jan 2026 12:00:00 GMT\nX-Ratelimit-Limit:5000\nX-Ratelimit-Remaining:17\nX-Ratelimit-Reset:1768480000\nX-Ratelimit-Resource:core"
	for _, tt := range []struct {
		name, old, new string
		status         int
	}{
		{"a refusal", "", "", 429},
		{"another header", "", "\nRetry-After:7", 200},
		{"another family", "", "\nRatelimit-Limit:7", 200},
		{"a header less", "X-Ratelimit-Limit:5000\n", "", 200},
		{"two lines", "", "\nX-Ratelimit-Limit:60", 200},
		{"another size", "5000", "5001", 200},
		{"another label", "core", "search", 200},
		{"out of a cache", "", "\nAge:3", 200},
		{"no date", "Date:Thu, 15 Jan 2026 12:00:00 GMT\n", "", 200},
		{"minus one", "17", "-1", 200},
		{"a list", "17", "17, 18", 200},
		{"nothing", "17", "", 200},
		{"a delta", "1768480000", "30", 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m headers.Memory
			m.Parse(response(200, fuzzHeader(known)), noon)
			if _, ok := recalled(&m, response(200, fuzzHeader(known))); !ok {
				t.Fatal("the same is not recalled")
			}
			text := known + tt.new
			if tt.old != "" {
				text = strings.Replace(known, tt.old, tt.new, 1)
			}
			if s, ok := recalled(&m, response(tt.status, fuzzHeader(text))); ok {
				t.Errorf("recalled %v", s)
			}
		})
	}
}

// Hosts that share a Memory are told apart: some mean more than their headers say.
func TestMemoryTellsHostsApart(t *testing.T) {
	var m headers.Memory
	for _, host := range []string{"api.example.com", "api.github.com", "api.example.com", ""} {
		resp := response(200, http.Header{"X-Ratelimit-Remaining": {"5"}, "X-Ratelimit-Reset": {"60"}})
		resp.Request = &http.Request{URL: &url.URL{Host: host}}
		want := headers.Parse(resp, noon)
		if s, ok := recalled(&m, resp); ok && !reflect.DeepEqual(s, want) {
			t.Errorf("%q: %v, want %v", host, s, want)
		}
		m.Parse(resp, noon)
		if s, ok := recalled(&m, resp); !ok || !reflect.DeepEqual(s, want) {
			t.Errorf("%q: %v, %v, want %v", host, s, ok, want)
		}
	}
}

// A Date is the same instant whether its day is known or not.
func TestMemoryReadsDates(t *testing.T) {
	answer := func(date string) *http.Response {
		return response(200, http.Header{"Date": {date}, "X-Ratelimit-Remaining": {"5"}, "X-Ratelimit-Reset": {"2026-01-20T00:00:00Z"}})
	}
	var m headers.Memory
	m.Parse(answer("Thu, 15 Jan 2026 23:59:60 GMT"), noon)
	for _, s := range []string{
		"00:00:00", "12:34:56", "23:59:59", "23:59:60", "23:59:61", "24:00:00", "12:60:00", "1 :00:00", "12-00:00", "12:00-00", "+1:00:00", "12:00:0x",
	} {
		for _, day := range []string{"Thu, 15 Jan 2026 ", "Fri, 16 Jan 2026 "} {
			for _, zone := range []string{" GMT", " UTC", " EST"} {
				date := day + s + zone
				got, ok1 := recalled(&m, answer(date))
				_, ok2 := dateOf(date, noon)
				if want := headers.Parse(answer(date), noon); ok1 != ok2 || ok1 && !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %v, %v, want %v, %v", date, got, ok1, want, ok2)
				}
			}
		}
	}
}

// A host that states its limits by resource, as GitHub does, is remembered for each.
func TestMemoryOfSeveralResources(t *testing.T) {
	var m headers.Memory
	hits := 0
	for n := range 100 {
		resp := response(200, http.Header{"X-Ratelimit-Remaining": {strconv.Itoa(n)}, "X-Ratelimit-Resource": {"r" + strconv.Itoa(n%maxLayouts)}})
		s, ok := recalled(&m, resp)
		if !ok {
			s = m.Parse(resp, noon)
		} else {
			hits++
		}
		if want := headers.Parse(resp, noon); !reflect.DeepEqual(s, want) {
			t.Errorf("answer %d: %v, want %v", n, s, want)
		}
	}
	if hits != 100-maxLayouts {
		t.Errorf("%d of 100 answers were recalled", hits)
	}
}

// Answers of one host arrive at the same time, and what one of them said stays what
// it was.
func TestMemoryIsSharedByGoroutines(t *testing.T) {
	var m headers.Memory
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 200 {
				resp := response(200, http.Header{"X-Ratelimit-Remaining": {strconv.Itoa(n)}, "X-Ratelimit-Resource": {"r" + strconv.Itoa((n+g)%6)}})
				s, ok := recalled(&m, resp)
				if !ok {
					s = m.Parse(resp, noon)
				}
				if want := headers.Parse(resp, noon); !reflect.DeepEqual(s, want) {
					t.Errorf("%v, want %v", s, want)
				}
				s.Limits[0].Remaining.Value = -1 // ours
			}
		})
	}
	wg.Wait()
}

// FuzzMemory holds that whatever a host's answers are, and in whatever order, what a
// Memory recalls is what Parse says of them. The answers are variants of one: other
// numbers, also those of other headers, headers gone or added, other lines.
func FuzzMemory(f *testing.F) {
	for i, c := range loadCorpus(f) {
		var b strings.Builder
		for name, lines := range c.Headers {
			for _, line := range lines {
				fmt.Fprintf(&b, "%s:%s\n", name, line)
			}
		}
		f.Add(b.String(), c.Host, uint64(i))
	}
	f.Add("X-Ratelimit-Limit:10\nX-Ratelimit-Remaining:5\nRatelimit-Limit:9\nRatelimit-Remaining:4", "", uint64(1))
	f.Add("Ratelimit-Used:4\nRatelimit-Remaining:6\nRatelimit-Policy:10;w=60", "", uint64(3))
	f.Add("X-Ratelimit-Used:4\nX-Ratelimit-Observed:6\nX-Ratelimit-Limit:10", "", uint64(4))
	f.Add("Ratelimit:\"a\";r=5;reset=1768490000", "", uint64(5))
	f.Add("Ratelimit:\"a;r=1\";r=5;t=6;pk=\":YQ==:\",\"b\";t=1;r=2\nRatelimit-Policy:\"a;r=1\";q=5;w=7", "", uint64(2))
	f.Fuzz(func(t *testing.T, text, host string, seed uint64) {
		for round := range uint64(4) {
			checkMemory(t, rand.New(rand.NewPCG(seed, round)), text, host)
		}
	})
}

func checkMemory(t *testing.T, rnd *rand.Rand, text, host string) {
	var m headers.Memory
	h := fuzzHeader(text)
	for range 40 {
		resp := response([]int{200, 200, 200, 304, 201, 429, 503}[rnd.IntN(7)], h)
		if rnd.IntN(20) > 0 {
			resp.Request = &http.Request{URL: &url.URL{Host: host}}
		}
		now := noon.Add(time.Duration(rnd.IntN(4)) * time.Hour)
		want := headers.Parse(resp, now)
		if got, ok := recalled(&m, resp); ok && !reflect.DeepEqual(got, want) {
			t.Fatalf("%d %q %v\nrecalled %+v\nparsed   %+v", resp.StatusCode, host, h, got, want)
		} else if !ok {
			if got := m.Parse(resp, now); !reflect.DeepEqual(got, want) {
				t.Fatalf("%v\nparsed %+v\nwant   %+v", h, got, want)
			}
		}
		if rnd.IntN(6) == 0 {
			h = fuzzHeader(text)
		}
		for range rnd.IntN(3) {
			vary(rnd, h)
		}
	}
}

// vary changes h in one of the ways in which answers of one host differ, or might.
func vary(rnd *rand.Rand, h http.Header) {
	var names []string
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	pick := func() string {
		if len(names) == 0 {
			return "X-Ratelimit-Limit"
		}
		return names[rnd.IntN(len(names))]
	}
	switch name := pick(); rnd.IntN(12) {
	case 0:
		date := noon.Add(time.Duration(rnd.IntN(90000)) * time.Second).Format(http.TimeFormat)
		if rnd.IntN(4) == 0 { // leap seconds, and what is no time of day
			date = date[:17] + []string{"23:59:60", "23:60:00", "24:00:00", "1 :02:03", "12-00-00", "12:00:61"}[rnd.IntN(6)] + date[25:]
		}
		h["Date"] = []string{date}
	case 1:
		other := []string{"Age", "Date", "Retry-After", "Ratelimit-Limit", "X-Ratelimit-Used", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Ratelimit-Resource", "Error-Code", "X-Foo"}
		h[other[rnd.IntN(len(other))]] = []string{[]string{"0", "5", "core", "1768480000", "rateLimited", "-1"}[rnd.IntN(6)]}
	case 2:
		delete(h, name)
	case 3:
		h[name] = slices.Concat(h[name], h[pick()])
	case 4:
		h[name] = h[pick()]
	default:
		lines := slices.Clone(h[name])
		for i, s := range lines {
			lines[i] = renumber(rnd, s)
		}
		h[name] = lines
	}
}

// renumber puts another number in the place of one of those in s.
func renumber(rnd *rand.Rand, s string) string {
	var runs [][2]int
	for i := 0; i < len(s); i++ {
		if n := digitsOf(s[i:]); n > 0 {
			runs = append(runs, [2]int{i, i + n})
			i += n
		}
	}
	if len(runs) == 0 {
		return s
	}
	r := runs[rnd.IntN(len(runs))]
	with := []string{"0", "1", "7", "10", "100", "007", "1.5", "-1", "", "1768479999", "1768480000", "40000000", "99999999999999999999999"}
	n := rnd.IntN(2 * len(with))
	text := strconv.Itoa(rnd.IntN(5000))
	if n < len(with) {
		text = with[n]
	}
	return s[:r[0]] + text + s[r[1]:]
}

// digitsOf is how many digits s begins with.
func digitsOf(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }
