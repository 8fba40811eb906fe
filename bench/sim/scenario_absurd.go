package sim

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/weirhttp/weir"
)

// absurd is E12: a wait that does not fit the deadline.
func absurd() scenario {
	return scenario{
		id: "E12", what: "Retry-After 120 at a deadline of 5 s", quick: true,
		strategies: append([]strategy{weirWith(weir.Config{}), naiveRetry(0, 0, time.Second)}, libraries(stubborn())...),
		targets:    []target{most("time to return (ms)", 1, 1), most("sent too early", 0, 0)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			s := newServer(seed, &fixed{n: 1, per: 120 * time.Second}, retryAfter)
			s.oneWay = [2]time.Duration{0, 0}
			c := st.make(s, seed)
			c.call(t.Context()) // spends the quota
			begin := time.Now()
			for range 10 {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				c.call(ctx)
				cancel()
			}
			r.add("time to return (ms)", time.Since(begin).Seconds()*1000/10)
			r.add("sent too early", float64(max(0, s.refused-1)))
		},
	}
}

// absurdDates is the rest of E12: waits said as dates by a clock that is wrong,
// and those that are none.
func absurdDates() scenario {
	return scenario{
		id: "E12", what: "Retry-After as a date, the server's clock ten minutes off; then 0, negative, huge and garbage", quick: true,
		strategies: []strategy{weirWith(patient())},
		targets:    []target{most("sent too early", 0, 0), most("longest wait (s)", 302, 620)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			early, longest := 0.0, 0.0
			for _, skew := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
				lie := &skewed{skew: skew, wait: 20 * time.Second}
				begin := time.Now()
				c, err := weir.New(lie, patient())
				if err != nil {
					t.Fatal(err)
				}
				(&weirClient{c}).call(t.Context())
				if took := time.Since(begin); took < 19*time.Second {
					early++
				} else {
					longest = max(longest, took.Seconds())
				}
			}
			for _, text := range []string{"0", "-5", "99999999999999999999", "9007199254741", "soon", ""} {
				s := newServer(seed, nil, silent)
				s.quota, s.tell = &fixed{n: 1, per: time.Second}, text
				c := st.make(s, seed)
				c.call(t.Context())
				begin := time.Now()
				c.call(t.Context())
				longest = max(longest, time.Since(begin).Seconds())
			}
			r.add("sent too early", early)
			r.add("longest wait (s)", longest)
		},
	}
}

// skewed refuses once, with a date by its own clock.
type skewed struct {
	skew, wait time.Duration
	n          int
}

func (s *skewed) RoundTrip(r *http.Request) (*http.Response, error) {
	now := time.Now().Add(s.skew).UTC()
	resp := &http.Response{StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Body: http.NoBody,
		Header: http.Header{"Date": {now.Format(http.TimeFormat)}}}
	if s.n++; s.n == 1 {
		resp.StatusCode = 429
		resp.Header.Set("Retry-After", now.Add(s.wait).Format(http.TimeFormat))
	}
	return resp, nil
}
