package chaintest

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// A dialect is how a server says what remains of its limits.
type dialect struct {
	name string
	say  func(h http.Header, limit, remaining, reset string)
}

func dialects() []dialect {
	trio := func(limit, remaining, reset string) dialect {
		return dialect{limit, func(h http.Header, l, r, t string) {
			for name, v := range map[string]string{limit: l, remaining: r, reset: t} {
				if v != "" {
					h.Set(name, v)
				}
			}
		}}
	}
	return []dialect{
		trio("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"),
		trio("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"),
		trio("X-RateLimit-Limit-Minute", "X-RateLimit-Remaining-Minute", "X-RateLimit-Reset-Minute"),
		trio("X-RateLimit-Limit-Tokens", "X-RateLimit-Remaining-Tokens", "X-RateLimit-Reset-Tokens"),
		{"RateLimit of draft 7", func(h http.Header, l, r, t string) {
			s := ""
			for _, m := range [][2]string{{"limit", l}, {"remaining", r}, {"reset", t}} {
				if m[1] == "" {
					continue
				}
				if s != "" {
					s += ", "
				}
				s += m[0] + "=" + m[1]
			}
			h.Set("RateLimit", s)
		}},
		{"RateLimit of draft 8", func(h http.Header, l, r, t string) {
			if l != "" {
				h.Set("RateLimit-Policy", `"default";q=`+l)
			}
			s := `"default"`
			if r != "" {
				s += ";r=" + r
			}
			if t != "" {
				s += ";t=" + t
			}
			h.Set("RateLimit", s)
		}},
	}
}

// A stated is what one answer says, and what of it a client can read.
type stated struct {
	limit, remaining, reset string
	form                    string // of the reset
	wait                    time.Duration
}

const hugeNumber = "99999999999999999999"

func statements() []stated {
	words := []string{"", "-1", "0", "1", "1000", hugeNumber, "unlimited", "x9;="}
	var all []stated
	for _, limit := range words {
		for _, remaining := range words {
			for _, reset := range words {
				forms := []string{"seconds", "epoch", "milliseconds", "date", "HTTP date"}
				n, err := strconv.Atoi(reset)
				if err != nil {
					n = 0
				}
				if reset == hugeNumber {
					n = math.MaxInt32
				} else if err != nil {
					forms = forms[:1]
				}
				for _, form := range forms {
					all = append(all, stated{limit, remaining, reset, form, time.Duration(max(0, n)) * time.Second})
				}
			}
		}
	}
	return all
}

// at is the reset as it stands in an answer that is given now.
func (s stated) at(now time.Time) string {
	n, err := strconv.Atoi(s.reset)
	end := now.Add(time.Duration(n) * time.Second)
	if s.reset == hugeNumber {
		end = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	} else if err != nil {
		return s.reset
	}
	switch s.form {
	case "epoch":
		return strconv.FormatInt(end.Unix(), 10)
	case "milliseconds":
		return strconv.FormatInt(end.UnixMilli(), 10)
	case "date":
		return end.UTC().Format(time.RFC3339)
	case "HTTP date":
		return end.UTC().Format(http.TimeFormat)
	}
	return s.reset
}

// possible reports whether a quota could be as s says.
func (s stated) possible() bool {
	limit, err := strconv.ParseFloat(s.limit, 64)
	remaining, err2 := strconv.ParseFloat(s.remaining, 64)
	return err == nil && err2 == nil && limit >= 1 && remaining >= 0 && remaining <= limit
}

// A load is how the server is used: so many callers, each with so many calls
// one after the other, which it serves in so long.
type load struct {
	callers, calls int
	trip           time.Duration
	wait           time.Duration // that a call bears; zero: the default
}

// round sends the calls of l, and returns how many were lost and how long all took.
func (l load) round(t *testing.T, rt http.RoundTripper) (lost int64, took time.Duration) {
	start := time.Now()
	var failed atomic.Int64
	var wg sync.WaitGroup
	for range l.callers {
		wg.Go(func() {
			for range l.calls {
				r := get(t, "http://h/v1")
				if l.wait > 0 {
					r = r.WithContext(throttle.WithMaxWait(context.Background(), l.wait))
				}
				resp, err := rt.RoundTrip(r)
				if err != nil {
					failed.Add(1)
					continue
				}
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
	return failed.Load(), time.Since(start)
}

// served is two rounds at a server that accepts everything and speaks as say does.
func (l load) served(t *testing.T, say func(h http.Header)) (lost int64, first, second time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(26 * 365 * 24 * time.Hour) // Unix times of the year 2000 may be taken for others
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			time.Sleep(l.trip)
			h := http.Header{}
			say(h)
			return testnet.Answer(r, 200, h, nil), nil
		}), weir.Config{}))(t)
		lost, first = l.round(t, rt)
		more, second2 := l.round(t, rt)
		lost, second = lost+more, second2
	})
	return lost, first, second
}

func loads() []load {
	return []load{
		{callers: 6, calls: 2, trip: time.Second},
		{callers: 1, calls: 6, trip: 50 * time.Millisecond},
		{callers: 3, calls: 3, trip: 5 * time.Second},
		{callers: 20, calls: 1, trip: 20 * time.Millisecond},
	}
}

// eachStatement calls f for what a server may state, with what the load takes if
// nothing is stated: in every dialect under the first load, in one under the others.
func eachStatement(t *testing.T, possible bool, f func(t *testing.T, l load, s stated, lost int64, first, second, plain time.Duration)) {
	for i, l := range loads() {
		if possible {
			l.wait = time.Hour
		}
		_, plain, _ := l.served(t, func(http.Header) {})
		spoken := dialects()
		if i > 0 {
			spoken = spoken[i : i+1]
		}
		for _, d := range spoken {
			t.Run(fmt.Sprint(l.callers, " ", d.name), func(t *testing.T) {
				t.Parallel()
				for _, s := range statements() {
					if s.possible() != possible {
						continue
					}
					lost, first, second := l.served(t, func(h http.Header) { d.say(h, s.limit, s.remaining, s.at(time.Now())) })
					f(t, l, s, lost, first, second, plain)
				}
			})
		}
	}
}

// TestWhatNoQuotaCouldStateHoldsUpNobody: an answer that states no limit, no
// remaining or more than the limit says nothing about what may be sent.
func TestWhatNoQuotaCouldStateHoldsUpNobody(t *testing.T) {
	eachStatement(t, false, func(t *testing.T, l load, s stated, lost int64, first, second, plain time.Duration) {
		if most := plain * 11 / 10; lost > 0 || first > most || second > most {
			t.Errorf("%+v: %d lost, %v and %v; want none, at most %v", s, lost, first, second, most)
		}
	})
}

// TestWhatAnswersContradictIsObeyedOnce: a quota of which nothing is left is
// waited for, but one that is accepted against it shows that it means nothing.
func TestWhatAnswersContradictIsObeyedOnce(t *testing.T) {
	eachStatement(t, true, func(t *testing.T, l load, s stated, lost int64, first, second, plain time.Duration) {
		most := plain * 11 / 10
		once := min(s.wait, 5*time.Minute)
		if s.wait == 0 {
			once = time.Minute // the longest guess
		}
		if lost > 0 || first > most+once+2*l.trip || second > most {
			t.Errorf("%+v: %d lost, %v and %v; want none, at most %v more than %v, and then no more", s, lost, first, second, once, most)
		}
	})
}

// TestHeadersThatStateNoQuota: headers as gateways send them with every answer that
// they accept, which name no remaining or say that there is no quota, cost 200 calls
// nothing, whoever makes them. One that says that nothing is left is waited for once.
func TestHeadersThatStateNoQuota(t *testing.T) {
	type words map[string]string // "+3600" is the Unix time in an hour
	for _, tt := range []struct {
		name string
		says words
		once time.Duration // may be waited for
	}{
		{"a limit and a reset", words{"X-RateLimit-Limit": "1000", "X-RateLimit-Reset": "3600"}, 0},
		{"unlimited", words{"X-RateLimit-Limit": "unlimited", "X-RateLimit-Remaining": "unlimited", "X-RateLimit-Reset": "+3600"}, 0},
		{"Tyk without a quota", words{"X-RateLimit-Limit": "-1", "X-RateLimit-Remaining": "-1", "X-RateLimit-Reset": "+3600"}, 0},
		{"a reset alone", words{"X-Quota-Reset": "86400"}, 0},
		{"a limit and a reset of a minute", words{"RateLimit-Limit": "1000", "RateLimit-Reset": "60"}, 0},
		{"a policy alone", words{"RateLimit-Policy": `"default";q=10;w=60`}, 0},
		{"nothing of nothing", words{"X-RateLimit-Limit": "0", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "0"}, 0},
		{"nothing of no limit", words{"X-RateLimit-Limit": "-1", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "0"}, 0},
		{"no remaining of no limit", words{"X-RateLimit-Limit": "-1", "X-RateLimit-Remaining": "-1", "X-RateLimit-Reset": "0"}, 0},
		{"nothing left", words{"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "0"}, time.Minute},
		{"nothing left for half a minute", words{"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "+30"}, 32 * time.Second},
	} {
		for _, l := range []load{
			{callers: 10, calls: 20, trip: time.Second}, {callers: 1, calls: 200, trip: 7 * time.Millisecond},
			{callers: 40, calls: 5, trip: 300 * time.Millisecond}, {callers: 200, calls: 1, trip: 50 * time.Millisecond},
		} {
			_, plain, _ := l.served(t, func(http.Header) {})
			lost, first, second := l.served(t, func(h http.Header) {
				for name, v := range tt.says {
					if in, ok := strings.CutPrefix(v, "+"); ok {
						n, _ := strconv.Atoi(in)
						v = strconv.FormatInt(time.Now().Unix()+int64(n), 10)
					}
					h.Set(name, v)
				}
			})
			if most := plain * 11 / 10; lost > 0 || first > most+tt.once || second > most {
				t.Errorf("%s, %d callers: %d of 400 lost, %v and %v; want none, at most %v and %v", tt.name, l.callers, lost, first, second, most+tt.once, most)
			}
		}
	}
}

// TestCallsAfterAStatedWindowWaitForNobody: a program that makes a few calls at once now
// and then has each answered as soon as the host can, though the window that the last
// answers stated has ended in between, because enough was left of it.
func TestCallsAfterAStatedWindowWaitForNobody(t *testing.T) {
	const takes, every, calls = 2 * time.Second, 10 * time.Minute, 5
	for _, window := range []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			left, ends := 0, time.Time{}
			rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				now := time.Now()
				if !now.Before(ends) {
					left, ends = 100, now.Add(window)
				}
				left--
				h := http.Header{}
				dialects()[0].say(h, "100", strconv.Itoa(left), strconv.Itoa(int(ends.Sub(now).Seconds())))
				mu.Unlock()
				time.Sleep(takes)
				return testnet.Answer(r, 200, h, nil), nil
			}), weir.Config{}))(t)
			for i := range 6 {
				lost, took := load{callers: calls, calls: 1}.round(t, rt)
				if lost > 0 || took > takes && i > 0 { // a new host gets few at a time
					t.Errorf("window of %v: %d calls at once took %v, %d lost; want %v, none", window, calls, took, lost, takes)
				}
				time.Sleep(every)
			}
		})
	}
}
