package throttle_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weirhttp/weir/throttle"
)

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()

	transport, err := throttle.New(nil, throttle.Config{
		Budgets: map[string]throttle.Budget{
			"api.github.com":             throttle.MustParseBudget("5000/h, 20 in flight"),
			"GET api.github.com/search/": throttle.MustParseBudget("30/m"),
		},
		Default: throttle.MustParseBudget("10/s"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: transport}
	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode)
	// Output: 200
}

func ExampleParseBudget() {
	b, err := throttle.ParseBudget("5/s, 100000/h burst 200, 8 in flight")
	fmt.Println(b, err)
	_, err = throttle.ParseBudget("5/s, 90 tokens/fortnight")
	fmt.Println(err)
	// Output:
	// 5/s, 100000/h burst 200, 8 in flight <nil>
	// throttle: budget "5/s, 90 tokens/fortnight": at "fortnight": expected a length of time: ms, s, m, h, d or w, or several as in 10s
}

func ExampleMustParseBudget() {
	daily := throttle.MustParseBudget("1000/d align UTC")
	fmt.Println(daily.Rates[0].Limit, daily.Rates[0].Per, daily.Rates[0].Align)
	// Output: 1000 24h0m0s UTC
}

// A Budget can stand in JSON, and in anything else that knows
// encoding.TextUnmarshaler: YAML, TOML, environment variables.
func ExampleBudget_json() {
	var settings struct {
		Budgets map[string]throttle.Budget
	}
	err := json.Unmarshal([]byte(`{"Budgets": {"*.example.com": "2/s bucket 40"}}`), &settings)
	fmt.Println(settings.Budgets["*.example.com"].Rates[0].Bucket, err)
	// Output: 40 <nil>
}

func ExampleBudget_flag() {
	var b throttle.Budget
	flags := flag.NewFlagSet("fetch", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.TextVar(&b, "budget", throttle.MustParseBudget("10/s"), "what may be sent")
	fmt.Println(flags.Parse([]string{"-budget", "3/s, 2 in flight"}), b)
	fmt.Println(flags.Parse([]string{"-budget", "3 per s"}))
	// Output:
	// <nil> 3/s, 2 in flight
	// invalid value "3 per s" for flag -budget: throttle: budget "3 per s": at "per s": expected a slash and a length of time, as in 5/s; write 3/s
}

// Three posts a minute for each user.
func ExampleLimiter_Try() {
	posts, _ := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("3/m burst 3")})
	for range 4 {
		d := posts.Try("user-17", nil)
		fmt.Println(d.Allowed, d.Remaining, d.RetryAfter.Round(time.Minute))
	}
	// Output:
	// true 2 0s
	// true 1 0s
	// true 0 0s
	// false 0 1m0s
}

func ExampleLimiter_Take() {
	l, _ := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("100 tokens/m burst 100")})
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	grant, err := l.Take(ctx, "job", throttle.Cost{"tokens": 80})
	if err != nil {
		fmt.Println(err)
		return
	}
	grant.Settle(throttle.Cost{"tokens": 30}) // it cost less than reserved
	_, err = l.Take(ctx, "job", throttle.Cost{"tokens": 70})
	fmt.Println(err)
	_, err = l.Take(ctx, "job", throttle.Cost{"tokens": 70})
	var refused *throttle.Error
	fmt.Println(errors.As(err, &refused), refused.Reason, refused.Unit, errors.Is(err, context.DeadlineExceeded))
	// Output:
	// <nil>
	// true wait too long tokens true
}

func ExampleLimiter_TakeUpTo() {
	l, _ := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("500 rows/s burst 500")})
	for _, most := range []int64{300, 300} {
		n, err := l.TakeUpTo(context.Background(), "import", "rows", most)
		fmt.Println(n, err)
	}
	// Output:
	// 300 <nil>
	// 200 <nil>
}

func ExampleLimiter_Pause() {
	l, _ := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("3/m")})
	l.Pause("spammer", time.Now().Add(time.Hour))
	_, err := l.Take(throttle.WithMaxWait(context.Background(), -1), "spammer", nil)
	var refused *throttle.Error
	errors.As(err, &refused)
	fmt.Println(refused.Reason, refused.RetryAfter > 59*time.Minute)
	// Output: paused true
}

// A call to a language model reserves an estimate and settles what the answer
// says it used.
func ExampleSettle() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"usage": {"total_tokens": 150}}`)
	}))
	defer server.Close()
	transport, _ := throttle.New(nil, throttle.Config{Default: throttle.MustParseBudget("1000 tokens/m burst 1000")})

	ctx := throttle.WithCost(context.Background(), throttle.Cost{"tokens": 800})
	r, _ := http.NewRequestWithContext(ctx, "POST", server.URL, nil)
	resp, err := transport.RoundTrip(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	var answer struct {
		Usage struct {
			Total int64 `json:"total_tokens"`
		}
	}
	json.NewDecoder(resp.Body).Decode(&answer)
	err = throttle.Settle(resp, throttle.Cost{"tokens": answer.Usage.Total})
	fmt.Println(err, transport.Stats().Hosts[0].Budgets[0].Left)
	// Output: <nil> 850
}

func ExampleTransport_SetBudget() {
	transport, _ := throttle.New(nil, throttle.Config{})
	fmt.Println(transport.SetBudget("api.example.com", throttle.MustParseBudget("50/s")))
	fmt.Println(transport.SetBudget("api.example.com", throttle.Budget{InFlight: -1}))
	// Output:
	// <nil>
	// throttle: SetBudget "api.example.com": InFlight: -1 is negative
}

func ExampleTransport_Pause() {
	transport, _ := throttle.New(nil, throttle.Config{MaxWait: -1})
	transport.Pause("api.example.com", time.Now().Add(time.Hour))
	_, err := transport.RoundTrip(httptest.NewRequest("GET", "https://api.example.com/", nil))
	var refused *throttle.Error
	errors.As(err, &refused)
	fmt.Println(refused.Key, refused.Reason)
	// Output: api.example.com paused
}
