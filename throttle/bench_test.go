package throttle_test

import (
	"context"
	"net/http"
	"runtime"
	"strconv"
	"testing"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
	"golang.org/x/time/rate"
)

func benchLimiter(b testing.TB, budget string) *throttle.Limiter {
	l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget(budget)})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func BenchmarkTakeOneRate(b *testing.B) {
	l := benchLimiter(b, "1000000000/s")
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Take(ctx, "k", nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTryOneRate(b *testing.B) {
	l := benchLimiter(b, "1000000000/s")
	b.ReportAllocs()
	for b.Loop() {
		if !l.Try("k", nil).Allowed {
			b.Fatal("refused")
		}
	}
}

// BenchmarkTakeThree draws on three accounts.
func BenchmarkTakeThree(b *testing.B) {
	l := benchLimiter(b, "1000000000/s, 2000000000/m burst 1000000000, 1000000000/s bucket 1000000000")
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Take(ctx, "k", nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTakeParallel8(b *testing.B) {
	l := benchLimiter(b, "1000000000/s")
	ctx := context.Background()
	b.ReportAllocs()
	b.SetParallelism((8 + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := l.Take(ctx, "k", nil); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkKeys touches a new key each time, far more than are kept.
func BenchmarkKeys(b *testing.B) {
	l := benchLimiter(b, "100/s")
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		l.Try(strconv.Itoa(i), nil)
		i++
	}
}

// BenchmarkRoundTrip is a request over a base that does nothing.
func BenchmarkRoundTrip(b *testing.B) {
	for _, c := range []struct {
		name string
		c    throttle.Config
	}{
		{"unlimited", throttle.Config{DisableLearning: true}},
		{"one rate", throttle.Config{Default: throttle.MustParseBudget("1000000000/s"), DisableLearning: true}},
		{"one rate, learning", throttle.Config{Default: throttle.MustParseBudget("1000000000/s")}},
	} {
		b.Run(c.name, func(b *testing.B) {
			resp := &http.Response{StatusCode: 200, Header: make(http.Header), Body: http.NoBody}
			tr := newTransport(b, testnet.Func(func(r *http.Request) (*http.Response, error) {
				resp.Request = r
				return resp, nil
			}), c.c)
			r, err := http.NewRequest("GET", "http://a/x", nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tr.RoundTrip(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReference is what the token bucket inside costs alone, for
// comparison in the same run.
func BenchmarkReference(b *testing.B) {
	l := rate.NewLimiter(1e9, 1e9)
	b.ReportAllocs()
	for b.Loop() {
		if !l.Allow() {
			b.Fatal("refused")
		}
	}
}

// BenchmarkStats copies the state of 10000 hosts.
func BenchmarkStats(b *testing.B) {
	tr := newTransport(b, testnet.Func(func(r *http.Request) (*http.Response, error) {
		return testnet.Answer(r, 200, nil, nil), nil
	}), throttle.Config{Default: throttle.MustParseBudget("100/s")})
	for i := range 10000 {
		mustGet(b, tr, "http://h"+strconv.Itoa(i)+"/")
	}
	b.ReportAllocs()
	for b.Loop() {
		if n := len(tr.Stats().Hosts); n != 10000 {
			b.Fatal(n)
		}
	}
}
