package population

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/weirhttp/weir/bench/sim/limit"
)

// A dialect is how a server refuses and tells its quota.
type dialect struct {
	name   string
	test   bool // only in test
	status int  // of refusals
	states bool // it tells the quota, and not only what a refusal has to wait
	// say writes what it says and returns the wait that it states; zero: none.
	say func(a *answer) time.Duration
}

// An answer is what a dialect has to work with.
type answer struct {
	limit.State
	refused bool
	now     time.Time // by the server's clock
	header  http.Header
	body    string
}

func (a *answer) set(name string, value any) { a.header.Set(name, fmt.Sprint(value)) }

// retryAfter states a wait in whole seconds.
func (a *answer) retryAfter(n int) time.Duration {
	a.set("Retry-After", n)
	return time.Duration(n) * time.Second
}

// three writes limit, remaining and reset, and returns the wait that these
// state: the reset, if nothing is left.
func (a *answer) three(limit, remaining, reset string, value any, wait time.Duration) time.Duration {
	a.set(limit, a.Limit)
	a.set(remaining, a.Left)
	if reset != "" {
		a.set(reset, value)
	}
	if a.Left > 0 {
		return 0
	}
	return wait
}

func ceil(d time.Duration) int  { return int(math.Ceil(d.Seconds())) }
func floor(d time.Duration) int { return int(d.Seconds()) }

// epoch is the end of a wait as a Unix time, rounded up, and the wait it states.
func (a *answer) epoch(d time.Duration) (int64, time.Duration) {
	at := a.now.Add(d)
	unix := at.Unix()
	if at.Nanosecond() > 0 {
		unix++
	}
	return unix, time.Unix(unix, 0).Sub(a.now)
}

// dialects are those that the set has.
func dialects(set Set) (all []dialect) {
	for _, list := range [][]dialect{plain(), stating(), odd()} {
		for _, d := range list {
			if !d.test || set == Test {
				all = append(all, d)
			}
		}
	}
	return all
}

// plain dialects speak of a refusal's wait at most.
func plain() []dialect {
	hint := func(name string, wait func(a *answer) int) dialect {
		return dialect{name: name, status: 429, say: func(a *answer) time.Duration { return a.retryAfter(wait(a)) }}
	}
	silent := func(*answer) time.Duration { return 0 }
	shed := hint("503, Retry-After true", func(a *answer) int { return ceil(a.Next) })
	shed.status = 503
	return []dialect{
		{name: "bare 429", status: 429, say: silent},
		{name: "bare 503", status: 503, say: silent},
		hint("Retry-After true", func(a *answer) int { return ceil(a.Next) }),
		hint("Retry-After rounded down", func(a *answer) int { return floor(a.Next) }),
		hint("Retry-After constant 1", func(*answer) int { return 1 }),
		hint("Retry-After constant window", func(a *answer) int { return max(1, ceil(a.Per)) }),
		hint("Retry-After too short", func(a *answer) int { return int(.6 * a.Next.Seconds()) }),
		shed,
		{name: "Retry-After date", status: 429, say: func(a *answer) time.Duration {
			unix, wait := a.epoch(a.Next)
			a.set("Retry-After", time.Unix(unix, 0).UTC().Format(http.TimeFormat))
			return wait
		}},
		{name: "JSON hint", status: 429, say: func(a *answer) time.Duration {
			a.set("Content-Type", "application/json")
			a.body = fmt.Sprintf(`{"message":"You are being rate limited.","retry_after":%.3f,"global":false}`, a.Next.Seconds())
			return a.Next
		}},
	}
}

// stating dialects tell the quota.
func stating() []dialect {
	epoch := func(a *answer) time.Duration {
		unix, wait := a.epoch(a.Reset)
		return a.three("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", unix, wait)
	}
	return []dialect{
		{name: "X-RateLimit epoch", status: 429, states: true, say: epoch},
		{name: "X-RateLimit seconds", status: 429, states: true, say: func(a *answer) time.Duration {
			return a.three("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", ceil(a.Reset), a.Reset)
		}},
		{name: "X-RateLimit without reset", status: 429, states: true, say: func(a *answer) time.Duration {
			return a.three("X-RateLimit-Limit", "X-RateLimit-Remaining", "", nil, 0)
		}},
		{name: "IETF trio", status: 429, states: true, say: func(a *answer) time.Duration {
			a.set("RateLimit-Policy", fmt.Sprintf("%d;w=%d", a.Limit, max(1, ceil(a.Per))))
			return a.three("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", ceil(a.Reset), a.Reset)
		}},
		{name: "IETF draft 8", status: 429, states: true, say: func(a *answer) time.Duration {
			a.set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=%d`, a.Limit, max(1, ceil(a.Per))))
			a.set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%d`, a.Left, ceil(a.Reset)))
			return a.unless(a.Reset)
		}},
		{name: "GitHub's 403", status: 403, states: true, say: func(a *answer) time.Duration {
			if a.refused {
				a.set("Content-Type", "application/json; charset=utf-8")
				a.body = `{"message":"API rate limit exceeded for user ID 1.","documentation_url":"https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api"}`
			}
			a.set("X-RateLimit-Resource", "core")
			return epoch(a)
		}},
	}
}

// unless is the wait if nothing is left.
func (a *answer) unless(wait time.Duration) time.Duration {
	if a.Left > 0 {
		return 0
	}
	return wait
}

// odd dialects are in test only.
func odd() []dialect {
	all := []dialect{
		{name: "IETF draft 7", status: 429, states: true, say: func(a *answer) time.Duration {
			a.set("RateLimit-Policy", fmt.Sprintf("%d;w=%d", a.Limit, max(1, ceil(a.Per))))
			a.set("RateLimit", fmt.Sprintf("limit=%d, remaining=%d, reset=%d", a.Limit, a.Left, ceil(a.Reset)))
			return a.unless(a.Reset)
		}},
		{name: "X-RateLimit epoch in ms", status: 429, states: true, say: func(a *answer) time.Duration {
			return a.three("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", a.now.Add(a.Reset).UnixMilli()+1, a.Reset)
		}},
		{name: "X-RateLimit epoch rounded down", status: 429, states: true, say: func(a *answer) time.Duration {
			return a.three("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", a.now.Add(a.Reset).Unix(), 0)
		}},
		{name: "X-RateLimit constant reset 1", status: 429, states: true, say: func(a *answer) time.Duration {
			return a.three("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", 1, time.Second)
		}},
		{name: "reset as a Go duration", status: 429, states: true, say: func(a *answer) time.Duration {
			return a.three("x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests",
				(a.Reset + time.Millisecond - 1).Truncate(time.Millisecond), a.Reset)
		}},
		{name: "reset as RFC 3339", status: 429, states: true, say: func(a *answer) time.Duration {
			unix, wait := a.epoch(a.Reset)
			return a.three("anthropic-ratelimit-requests-limit", "anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset",
				time.Unix(unix, 0).UTC().Format(time.RFC3339), wait)
		}},
		{name: "Retry-After fraction", status: 429, say: func(a *answer) time.Duration {
			a.set("Retry-After", strconv.FormatFloat(math.Ceil(a.Next.Seconds()*1000)/1000, 'f', 3, 64))
			return a.Next
		}},
		{name: "Retry-After constant 0", status: 429, say: func(a *answer) time.Duration { return a.retryAfter(0) }},
		{name: "retry-after-ms", status: 429, say: func(a *answer) time.Duration {
			a.set("Retry-After-Ms", a.Next.Milliseconds()+1)
			return a.Next
		}},
		{name: "Google's RetryInfo", status: 429, say: func(a *answer) time.Duration {
			a.set("Content-Type", "application/json")
			a.body = fmt.Sprintf(`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded.","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"%.3fs"}]}}`, a.Next.Seconds())
			return a.Next
		}},
		{name: "503, X-RateLimit seconds", status: 503, states: true, say: stating()[1].say},
	}
	for i := range all {
		all[i].test = true
	}
	return all
}
