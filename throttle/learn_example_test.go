package throttle_test

import (
	"fmt"
	"net/http"

	"github.com/weirhttp/weir/throttle"
)

// told is an API that says what is left of its quota.
type told struct{}

func (told) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Request: r, Body: http.NoBody, Header: http.Header{
		"X-Ratelimit-Limit": {"50"}, "X-Ratelimit-Remaining": {"12"},
	}}, nil
}

// What a server states is obeyed without being asked for; OnLearn and Stats
// say what that is.
func ExampleConfig_onLearn() {
	rt, err := throttle.New(told{}, throttle.Config{
		OnLearn: func(l throttle.Learned) { fmt.Println(l.Why) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := http.Client{Transport: rt}
	resp, err := client.Get("https://api.example.com/v1/items")
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	for _, h := range rt.Stats().Hosts {
		for _, r := range h.Restrictions {
			fmt.Println("now:", r.Why)
		}
	}
	// Output:
	// api.example.com: 12 of 50 left, said by X-RateLimit-Limit
	// now: api.example.com: 12 of 50 left, said by X-RateLimit-Limit
}
