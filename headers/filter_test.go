package headers

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Which headers are looked at, and in which order, does not depend on chance,
// their number, or how they are spelled.
func TestHeadersOfInterest(t *testing.T) {
	for name, want := range map[string]bool{
		"X-Limit": true, "Ratelimit-Reset": true, "RATELIMIT": true, "x-ratelimit-a": true, "Remaining": true, "X-Mbx-Weight": true, "Quota": true, "Usage": true,
		"Concurrency": true, "X-Sapi-Used-Ip": true, "Retry-After": true, "Should-Retry": true, "X-Amzn-Errortype": true, "Api-Token": true, "Backoff": true,
		"Throttle": true, "Credits": true, "X-Error-Code": true, "Left": true, "X-Left": true, "Limi": false, "Left-": true,
		"X-Amz-Meta-Limit": false, "Amz-Meta-Limit": true, "X-Amz-Meta-Ratelimit": false, "Xx-Ratelimit": true, "Emain": false, "Ki": false, "": false, "Date": false, "Uota": false, "Etry": false,
		strings.Repeat("x", maxName-5) + "limit": true, strings.Repeat("x", maxName-4) + "limit": false,
	} {
		if got := promising(name); got != want {
			t.Errorf("%.30q: %t", name, got)
		}
	}
	names := []string{"Retry-After", "retry-after", "A-Limit", "a-limit", "A-limit", "A-Limits", "A-Lim", "B-Limit", "A_Limit", "Z-Limit", "A-Limit2", "M-Quota", "N-Quota", "O-Quota", "P-Quota"}
	want := "Retry-After retry-after A-Limit A-limit a-limit A-Limit2 A-Limits A_Limit B-Limit M-Quota N-Quota O-Quota P-Quota Z-Limit"
	for n := range len(names) + 1 {
		for seed := range uint64(4) {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			r.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
			h := http.Header{"Date": {"x"}, "Age": {"1"}, "Content-Type": {"x"}, "X-Limit": nil}
			for _, name := range names[:n] {
				h[name] = []string{"1"}
			}
			var space [16]entry
			found, c := collect(space[:0], h)
			var got, expect []string
			for _, e := range found {
				got = append(got, e.name)
			}
			for _, name := range strings.Fields(want) {
				if h[name] != nil {
					expect = append(expect, name)
				}
			}
			if !slices.Equal(got, expect) || c.date.value != "x" || c.age.value != "1" {
				t.Fatalf("got %v, want %v; %+v", got, expect, c)
			}
		}
	}
}

// Texts of a server that are kept are clean and no longer than a name.
func TestCleanTexts(t *testing.T) {
	long := strings.Repeat("x", maxName)
	for text, want := range map[string]string{
		"": "", "plain ~": "plain ~", "a\x1fb": "ab", "a\x7fb": "ab", "ü": "ü", "a\u202eb": "ab", "a\xffb": "ab", "a\tb": "ab",
		long: long, long + "y": long, long[1:] + "ü": long[1:], long[2:] + "ü": long[2:] + "ü", "\x01" + long: long, strings.Repeat("\x01", 4*maxName-1) + "ab": "a",
	} {
		if got := clean(text); got != want {
			t.Errorf("%.20q (%d): got %.20q (%d), want %d", text, len(text), got, len(got), len(want))
		}
	}
	for name, want := range map[string]string{"X-RateLimit-Limit": "x-ratelimit-limit", "X-Rate-Limit-Limit": "x-rate-limit-limit", "RateLimit": "ratelimit", "RateLimit-Limit": "ratelimit-limit", "X-Other": "x-other"} {
		if got := lowerName(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
