package throttle_test

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weirhttp/weir/throttle"
)

// Limits that are data: a user may do so much of each action, and the caller
// says how much. The budget stands in the key.
func ExampleLimiterConfig_budget() {
	limiter, err := throttle.NewLimiter(throttle.LimiterConfig{Budget: func(key string) throttle.Budget {
		_, budget, _ := strings.Cut(key, " ")
		return throttle.MustParseBudget(budget)
	}})
	if err != nil {
		panic(err)
	}
	isActionAllowed := func(user, action string, period time.Duration, max int) bool {
		key := fmt.Sprintf("%s:%s %d/%dms burst %d", user, action, max, period.Milliseconds(), max)
		return limiter.Try(key, nil).Allowed
	}
	for range 6 {
		fmt.Print(isActionAllowed("ann", "reply", time.Minute, 5), " ")
	}
	fmt.Println(isActionAllowed("bob", "reply", time.Minute, 5))
	// Output: true true true true true false true
}

// A star in a key stands for any text: every user has a budget of his own.
func ExampleLimiterConfig_patterns() {
	limiter, err := throttle.NewLimiter(throttle.LimiterConfig{Budgets: map[string]throttle.Budget{
		"*:reply": throttle.MustParseBudget("2/m burst 2"),
	}})
	if err != nil {
		panic(err)
	}
	for _, key := range []string{"ann:reply", "ann:reply", "ann:reply", "bob:reply", "ann:read"} {
		fmt.Println(key, limiter.Try(key, nil).Allowed)
	}
	// Output:
	// ann:reply true
	// ann:reply true
	// ann:reply false
	// bob:reply true
	// ann:read true
}

// What a plan, a user and an endpoint have to bear together is charged to all of
// them or to none.
func ExampleLimiter_TryAll() {
	limiter, err := throttle.NewLimiter(throttle.LimiterConfig{Budgets: map[string]throttle.Budget{
		"plan:*": throttle.MustParseBudget("3/m burst 3"),
		"user:*": throttle.MustParseBudget("2/m burst 2"),
	}})
	if err != nil {
		panic(err)
	}
	for _, user := range []string{"ann", "ann", "ann", "bob", "bob"} {
		_, d := limiter.TryAll([]string{"plan:free", "user:" + user}, nil)
		fmt.Println(user, d.Allowed, d.Remaining)
	}
	// Output:
	// ann true 1
	// ann true 0
	// ann false 0
	// bob true 0
	// bob false 0
}

// Look answers without spending.
func ExampleLimiter_Look() {
	limiter, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("2/m burst 2")})
	if err != nil {
		panic(err)
	}
	fmt.Println(limiter.Look("ann", nil).Remaining, limiter.Look("ann", nil).Remaining)
	limiter.Try("ann", throttle.Cost{"requests": 2})
	fmt.Println(limiter.Look("ann", nil).Allowed)
	// Output:
	// 2 2
	// false
}

// A place in flight is held until the grant's Settle or Cancel.
func ExampleLimiter_TryTake() {
	limiter, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("1 in flight")})
	if err != nil {
		panic(err)
	}
	first, d := limiter.TryTake("ann", nil)
	fmt.Println(d.Allowed)
	_, d = limiter.TryTake("ann", nil)
	fmt.Println(d.Allowed)
	first.Settle(nil)
	_, d = limiter.TryTake("ann", nil)
	fmt.Println(d.Allowed)
	// Output:
	// true
	// false
	// true
}

func ExampleDecision_WriteHeader() {
	limiter, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("10/m burst 10")})
	if err != nil {
		panic(err)
	}
	h := http.Header{}
	limiter.Try("ann", throttle.Cost{"requests": 7}).WriteHeader(h)
	fmt.Println(h["Ratelimit-Policy"], h["Ratelimit"], h["Retry-After"])
	h = http.Header{}
	limiter.Try("ann", throttle.Cost{"requests": 4}).WriteHeader(h)
	fmt.Println(h["Ratelimit-Policy"], h["Ratelimit"], h["Retry-After"])
	// Output:
	// ["requests";q=10;w=60] ["requests";r=3;t=60] []
	// ["requests";q=10;w=60] ["requests";r=3;t=60] [60]
}
