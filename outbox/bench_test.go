package outbox

import (
	"net/http"
	"strings"
	"testing"
)

// What the outbox adds to a request that succeeds.
func BenchmarkSuccess(b *testing.B) {
	answer := &http.Response{StatusCode: 200, Body: http.NoBody}
	o := box(b, tripper(func(*http.Request) (*http.Response, error) { return answer, nil }), Config{Patterns: []string{"api.example"}})
	for name, url := range map[string]string{"named": "http://api.example/", "unnamed": "http://other.example/"} {
		b.Run(name, func(b *testing.B) {
			r, _ := http.NewRequest("POST", url, strings.NewReader("body"))
			r.Header.Set("Content-Type", "text/plain")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := o.RoundTrip(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What it costs to keep a request: a sync of the disk, which callers that come
// together share.
func BenchmarkKeep(b *testing.B) {
	for name, callers := range map[string]int{"1": 1, "64": 64} {
		b.Run(name, func(b *testing.B) {
			o := box(b, &server{down: true}, Config{MaxEntries: 1 << 30, MaxBytes: 1 << 40})
			b.SetParallelism(callers)
			keep := func() {
				if id, err := post(b, o, "http://api.example/", "body"); id == "" {
					b.Error(err)
				}
			}
			if callers == 1 {
				for b.Loop() {
					keep()
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					keep()
				}
			})
		})
	}
}
