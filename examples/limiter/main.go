// Limiter limits what users do rather than what a client sends: each user may
// write five posts a minute. The limit itself is three lines.
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
	"strconv"
	"time"

	"github.com/weirhttp/weir/throttle"
)

// newForum returns a handler that takes posts, each user's at most five in any
// minute.
func newForum() (http.Handler, error) {
	posts, err := throttle.NewLimiter(throttle.LimiterConfig{ // one: say what a user may do
		Default: throttle.MustParseBudget("5/m burst 5"),
	})
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := posts.Try(r.FormValue("user"), nil) // two: ask
		w.Header().Set("X-Posts-Left", strconv.FormatInt(d.Remaining, 10))
		if !d.Allowed { // three: say no
			w.Header().Set("Retry-After", strconv.Itoa(int((d.RetryAfter+time.Second-1)/time.Second)))
			http.Error(w, "too many posts", http.StatusTooManyRequests)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}), nil
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
	fmt.Fprintf(w, "%s posts: %s, %s left", user, http.StatusText(answer.Code), answer.Header().Get("X-Posts-Left"))
	if after := answer.Header().Get("Retry-After"); after != "" {
		fmt.Fprintf(w, ", again in %s s", after)
	}
	fmt.Fprintln(w)
}
