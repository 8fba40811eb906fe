package throttle

import (
	"context"
	"net/http"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"golang.org/x/time/rate"
)

func benchLimiter(b testing.TB, budget string) *Limiter {
	l, err := NewLimiter(LimiterConfig{Default: MustParseBudget(budget)})
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

// BenchmarkQueue is the cost of one grant with that many waiting.
func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{100, 10000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			e := newEngine()
			s := &scope{key: "k", gate: account{meter: meter.Open{}, terms: &e.gate}}
			r := MustParseBudget("1/h").Rates[0]
			m := meter.NewRated(0, meter.NewRate(r.spec()), &e.clock)
			s.own = []member{{a: &account{meter: m, terms: &terms{unit: requests, spec: m.Rate}}}}
			var q []*waiter
			enter := func(now instant) {
				k := &ask{scope: s}
				e.seq++
				k.seq = e.seq
				w := newWaiter(k, s.draws(nil, k))
				e.list(now, w)
				e.try(now, w)
				q = append(q, w)
			}
			e.enter(1, s.draws(nil, &ask{scope: s}), &ask{scope: s})
			for range n {
				enter(1)
			}
			b.ReportAllocs()
			now := instant(1)
			for b.Loop() {
				now += instant(time.Hour)
				enter(now)
				e.mark(s.own[0].a)
				e.run(now)
			}
		})
	}
}

// BenchmarkRoundTrip is a request over a base that does nothing.
func BenchmarkRoundTrip(b *testing.B) {
	for _, c := range []struct {
		name string
		c    Config
	}{
		{"unlimited", Config{DisableLearning: true}},
		{"one rate", Config{Default: MustParseBudget("1000000000/s"), DisableLearning: true}},
		{"one rate, learning", Config{Default: MustParseBudget("1000000000/s")}},
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
	}), Config{Default: MustParseBudget("100/s")})
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

// BenchmarkGrantLearned grants a Transport's request that draws on two rates, on
// a limit that the server states, and on what is learned of every host, and
// gives the places back.
func BenchmarkGrantLearned(b *testing.B) {
	tr := newTransport(b, testnet.Func(func(r *http.Request) (*http.Response, error) {
		return testnet.Answer(r, 200, http.Header{
			"X-Ratelimit-Limit": {"2000000000"}, "X-Ratelimit-Remaining": {"2000000000"}, "X-Ratelimit-Reset": {"86400"},
		}, nil), nil
	}), Config{Default: MustParseBudget("1000000000/s, 2000000000/m burst 2000000000")})
	mustGet(b, tr, "http://a/x")
	r, err := http.NewRequest(http.MethodGet, "http://a/x", nil)
	if err != nil {
		b.Fatal(err)
	}
	rec := tr.Stats().Hosts[0]
	if len(rec.Learned) != 1 || len(rec.Budgets) != 2 {
		b.Fatalf("%d limits are learned beside %d of its own", len(rec.Learned), len(rec.Budgets))
	}
	entry := tr.hosts.Acquire("a", time.Time{})
	home := tr.of(entry, "a")
	e := tr.engine
	q := &ask{scope: &home.scope, r: r}
	e.mu.Lock()
	q.learn, _ = tr.kindOf(e.now(), q, &home.scope, "", false)
	e.mu.Unlock()
	var room [8]draw
	b.ReportAllocs()
	for b.Loop() {
		e.mu.Lock()
		now := e.now()
		draws := q.scope.draws(room[:0], q)
		if !e.enter(now, draws, q) {
			b.Fatal("refused")
		}
		e.answered(now, &permit{draws: draws, granted: now}, true)
		e.mu.Unlock()
	}
}
