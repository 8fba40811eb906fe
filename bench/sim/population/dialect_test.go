package population

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/bench/sim/limit"
)

// TestDialects shows what each server writes, and the wait that it states, of a
// window of 20 per 10 s that is spent and ends in 2.5 s.
func TestDialects(t *testing.T) {
	const s = time.Second
	now := time.Date(2026, 11, 22, 12, 0, 0, 250e6, time.UTC)
	three := "X-Ratelimit-Limit: 20, X-Ratelimit-Remaining: 0"
	want := map[string]struct {
		text   string
		stated time.Duration
	}{
		"bare 429":                       {"429", 0},
		"bare 503":                       {"503", 0},
		"Retry-After true":               {"429 Retry-After: 3", 3 * s},
		"Retry-After rounded down":       {"429 Retry-After: 2", 2 * s},
		"Retry-After constant 1":         {"429 Retry-After: 1", s},
		"Retry-After constant window":    {"429 Retry-After: 10", 10 * s},
		"Retry-After too short":          {"429 Retry-After: 1", s},
		"503, Retry-After true":          {"503 Retry-After: 3", 3 * s},
		"Retry-After date":               {"429 Retry-After: Sun, 22 Nov 2026 12:00:03 GMT", 2750e6},
		"JSON hint":                      {`429 Content-Type: application/json {"message":"You are being rate limited.","retry_after":2.500,"global":false}`, 2500e6},
		"X-RateLimit epoch":              {"429 " + three + ", X-Ratelimit-Reset: 1795348803", 2750e6},
		"X-RateLimit seconds":            {"429 " + three + ", X-Ratelimit-Reset: 3", 2500e6},
		"X-RateLimit without reset":      {"429 " + three, 0},
		"IETF trio":                      {"429 Ratelimit-Limit: 20, Ratelimit-Policy: 20;w=10, Ratelimit-Remaining: 0, Ratelimit-Reset: 3", 2500e6},
		"IETF draft 8":                   {`429 Ratelimit-Policy: "default";q=20;w=10, Ratelimit: "default";r=0;t=3`, 2500e6},
		"IETF draft 7":                   {"429 Ratelimit-Policy: 20;w=10, Ratelimit: limit=20, remaining=0, reset=3", 2500e6},
		"X-RateLimit epoch in ms":        {"429 " + three + ", X-Ratelimit-Reset: 1795348802751", 2500e6},
		"X-RateLimit epoch rounded down": {"429 " + three + ", X-Ratelimit-Reset: 1795348802", 0},
		"X-RateLimit constant reset 1":   {"429 " + three + ", X-Ratelimit-Reset: 1", s},
		"reset as a Go duration":         {"429 X-Ratelimit-Limit-Requests: 20, X-Ratelimit-Remaining-Requests: 0, X-Ratelimit-Reset-Requests: 2.5s", 2500e6},
		"Retry-After fraction":           {"429 Retry-After: 2.500", 2500e6},
		"Retry-After constant 0":         {"429 Retry-After: 0", 0},
		"retry-after-ms":                 {"429 Retry-After-Ms: 2501", 2500e6},
		"503, X-RateLimit seconds":       {"503 " + three + ", X-Ratelimit-Reset: 3", 2500e6},
	}
	for _, d := range dialects(Test) {
		a := &answer{State: limit.State{Limit: 20, Per: 10 * s, Next: 2500e6, Reset: 2500e6}, refused: true, now: now, header: http.Header{}}
		stated := d.say(a)
		if got, x := wrote(d.status, a), want[d.name]; x.text != "" && (got != x.text || stated != x.stated) {
			t.Errorf("%s:\n got %s and %v\nwant %s and %v", d.name, got, stated, x.text, x.stated)
		} else if x.text == "" && (len(got) < 40 || stated < 2500e6) {
			t.Errorf("%s: %s and %v", d.name, got, stated)
		}
	}
}

// wrote is an answer in one line.
func wrote(status int, a *answer) string {
	var fields []string
	for name, v := range a.header {
		fields = append(fields, name+": "+strings.Join(v, ", "))
	}
	slices.Sort(fields)
	return strings.TrimSpace(fmt.Sprint(status, " ", strings.Join(fields, ", "), " ", a.body))
}

// TestWhereTheQuotaIsTold holds that a quota is told on accepted answers only by
// those who tell it everywhere, and that nothing that is left states no wait.
func TestWhereTheQuotaIsTold(t *testing.T) {
	for _, d := range dialects(Test) {
		for _, everywhere := range []bool{false, true} {
			c := &Case{Dialect: d, Everywhere: everywhere, Hinted: true}
			a := &answer{State: limit.State{Limit: 20, Per: time.Second, Left: 3, Reset: time.Second}, header: http.Header{}}
			stated := c.speak(a)
			if got, want := len(a.header) > 0, d.states && everywhere; got != want || stated != 0 {
				t.Errorf("%s, everywhere %v: accepted with %v, states %v", d.name, everywhere, a.header, stated)
			}
			a.refused, a.Left, a.Next = true, 0, 1500*time.Millisecond
			if c.speak(a); d.states && a.header.Get("Retry-After") != "2" {
				t.Errorf("%s: refused with %v, want Retry-After: 2", d.name, a.header)
			}
		}
	}
}
