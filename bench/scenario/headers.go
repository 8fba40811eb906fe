package scenario

import (
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/weirhttp/weir/bench/result"
	"github.com/weirhttp/weir/bench/rival"
)

// A statement is how servers state their limits when n units are spent.
type statement struct {
	name string
	set  func(h http.Header, n int)
}

func statements() []statement {
	one := func(h http.Header, name string, value string) { h[name] = []string{value} }
	return []statement{
		{"none", func(http.Header, int) {}},
		{"X-RateLimit", func(h http.Header, n int) {
			one(h, "X-Ratelimit-Limit", "100000")
			one(h, "X-Ratelimit-Remaining", strconv.Itoa(99000-n))
			one(h, "X-Ratelimit-Reset", "3000")
		}},
		{"GitHub", func(h http.Header, n int) {
			one(h, "X-Ratelimit-Limit", "100000")
			one(h, "X-Ratelimit-Remaining", strconv.Itoa(99000-n))
			one(h, "X-Ratelimit-Used", strconv.Itoa(1000+n))
			one(h, "X-Ratelimit-Reset", "3000")
			one(h, "X-Ratelimit-Resource", "core")
		}},
		{"draft 8", func(h http.Header, n int) {
			one(h, "Ratelimit", `"default";r=`+strconv.Itoa(99000-n)+`;t=`+strconv.Itoa(3000-n/10))
			one(h, "Ratelimit-Policy", `"default";q=100000;w=3600`)
		}},
		{"OpenAI", func(h http.Header, n int) {
			one(h, "X-Ratelimit-Limit-Requests", "100000")
			one(h, "X-Ratelimit-Limit-Tokens", "150000000")
			one(h, "X-Ratelimit-Remaining-Requests", strconv.Itoa(99000-n))
			one(h, "X-Ratelimit-Remaining-Tokens", strconv.Itoa(149000000-20*n))
			one(h, "X-Ratelimit-Reset-Requests", strconv.Itoa(8000+n)+"ms")
			one(h, "X-Ratelimit-Reset-Tokens", "6m"+strconv.Itoa(n/20)+"s")
		}},
	}
}

// speaker is a stub that answers as a server does that counts down.
type speaker struct {
	answers [40]http.Header // few, so that they are in the cache when they come
	n       atomic.Uint32
}

func (s *speaker) RoundTrip(r *http.Request) (*http.Response, error) {
	h := s.answers[s.n.Add(1)%uint32(len(s.answers))]
	return (&stub{h}).RoundTrip(r)
}

func newSpeaker(d statement) *speaker {
	s := new(speaker)
	for n := range s.answers {
		s.answers[n] = http.Header{"Content-Type": {"application/json"}, "Content-Length": {"3287"}, "Server": {"nginx"}, "Vary": {"Accept, Authorization"}}
		d.set(s.answers[n], n)
	}
	return s
}

// headerCosts is what a call costs whose answer states limits, with one goroutine and with two.
// Of the rivals, none reads more than Retry-After.
func headerCosts(s Size) (result.Table, error) {
	rounds, n := pick(s, 1, 3, 13), pick(s, 20, 4000, 10000)
	t := result.Table{ID: "headers", Title: "A call whose answer states limits",
		Note: "The figures are the nanoseconds that are added to a GET over a stub, with timeouts on and no limit configured. The answers of the stub state their limits in one of four ways, or not at all. The remaining units change with each answer. x2: with two goroutines, the time per call. The rivals do not read these headers."}
	policy := rival.Default()
	list := []rival.Rival{rival.Bare(), rival.Weir(), rival.Hand(), rival.Failsafe()}
	var fs []func(int)
	for _, d := range statements() {
		t.Columns = append(t.Columns, less(d.name, 0, .1))
		for _, r := range list {
			c, err := r.New(newSpeaker(d), policy)
			if err != nil {
				return t, err
			}
			defer c.Close()
			f, err := contender{client: c}.get("http://api.example.com/v1/items")
			if err != nil {
				return t, err
			}
			fs = append(fs, f)
		}
	}
	for _, d := range statements() {
		t.Columns = append(t.Columns, less(d.name+" x2", 0, .1))
	}
	costs := append(interleave(rounds, n, 1, fs), interleave(rounds, n, 2, fs)...)
	for i, r := range list {
		row := row(r)
		for k := range t.Columns {
			v := costs[k*len(list)+i].ns
			if i > 0 {
				v -= costs[k*len(list)].ns
			}
			row.Cells = append(row.Cells, result.Num(v))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}
