// Limiter limits what users do rather than what a client sends: each user may
// write five posts a minute. The limit is an http.Handler around the program's own.
//
//	go run ./examples/limiter
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/weirhttp/weir/throttle"
)

// limited lets five requests a minute of each user through to next, and tells
// every client how many are left and when to come again.
func limited(next http.Handler) (http.Handler, error) {
	posts, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("5/m burst 5")})
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := posts.Try(r.FormValue("user"), nil)
		d.WriteHeader(w.Header())
		if !d.Allowed {
			http.Error(w, "too many posts", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	}), nil
}

// newForum returns a handler that takes posts, each user's at most five in any
// minute.
func newForum() (http.Handler, error) {
	return limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusCreated) }))
}

func main() {
	forum, err := newForum()
	if err != nil {
		log.Fatal(err)
	}
	for range 6 {
		post(os.Stdout, forum, "ada")
	}
	post(os.Stdout, forum, "bob")
}

// post writes a post as user and shows what the forum says.
func post(w io.Writer, forum http.Handler, user string) {
	answer := httptest.NewRecorder()
	forum.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/posts?user="+user, nil))
	fmt.Fprintf(w, "%s posts: %s, %s", user, http.StatusText(answer.Code), answer.Header().Get("RateLimit"))
	if after := answer.Header().Get("Retry-After"); after != "" {
		fmt.Fprintf(w, ", again in %s s", after)
	}
	fmt.Fprintln(w)
}
