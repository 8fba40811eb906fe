package throttle_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle"
)

// An API that refuses with status 200 and a code of its own.
func ExampleConfig_classify() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"error_code":"ComplexityException","status_code":200}`)
	}))
	defer server.Close()

	transport, err := throttle.New(nil, throttle.Config{
		Classify: func(resp *http.Response, s headers.Signal) headers.Signal {
			if start, _ := io.ReadAll(resp.Body); bytes.Contains(start, []byte(`"ComplexityException"`)) {
				s.Throttled = true
			}
			return s
		},
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
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(string(body), err)
	fmt.Println(transport.Stats().Hosts[0].Throttled, "throttled answer")
	// Output:
	// {"error_code":"ComplexityException","status_code":200} <nil>
	// 1 throttled answer
}
