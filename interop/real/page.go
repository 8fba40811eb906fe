package real

import (
	"context"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/inspect"
)

// Page is all that the live page of rt serves: itself, its numbers, and what
// it streams in three seconds. Call it in a bubble.
func Page(rt *weir.Transport) string {
	h := inspect.Handler(rt, inspect.Config{})
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	var all string
	for _, path := range []string{"/", "/stats.json", "/events"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil))
		all += w.Result().Status + "\n" + w.Body.String() + "\n"
	}
	return all
}
