package inspect_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/inspect"
)

// The page stands beside a program's own handlers, on a loopback address.
func ExampleHandler() {
	t, err := weir.New(nil, weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	mux := http.NewServeMux()
	mux.Handle("/weir/", http.StripPrefix("/weir", inspect.Handler(t, inspect.Config{})))
	// go http.ListenAndServe("localhost:8080", mux)

	for _, url := range []string{"http://localhost:8080/weir/", "http://rebound.example:8080/weir/"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", url, nil))
		fmt.Println(url, w.Code)
	}
	// Output:
	// http://localhost:8080/weir/ 200
	// http://rebound.example:8080/weir/ 403
}

func ExampleConfig_allowHosts() {
	t, err := weir.New(nil, weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	page := inspect.Handler(t, inspect.Config{AllowHosts: []string{"worker-7.internal"}})
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest("GET", "http://worker-7.internal:8080/stats.json", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 200 application/json
}

// A page with controls pauses hosts and switches circuits. Put it behind
// your own authentication.
func ExampleConfig_controls() {
	t, err := weir.New(nil, weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	page := inspect.Handler(t, inspect.Config{Controls: true})
	r := httptest.NewRequest("POST", "http://localhost:8080/open", nil)
	r.PostForm = map[string][]string{"host": {"api.example.com"}}
	r.Header.Set("Sec-Fetch-Site", "same-origin") // browsers say where a request comes from
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	fmt.Println(w.Code, t.Circuits().State("api.example.com"))
	// Output: 204 open
}
