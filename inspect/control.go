package inspect

import (
	"net/http"
	"time"

	"github.com/weirhttp/weir/breaker"
)

// longestPause bounds what a button can do.
const longestPause = 24 * time.Hour

// control mounts what changes something. The form value "host" names the
// host; /pause takes "for", a duration.
func (h *handler) control() {
	guard := http.NewCrossOriginProtection()
	post := func(path string, do func(host string, r *http.Request) string) {
		h.mux.Handle("POST "+path, guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, 4096)
			host := r.PostFormValue("host")
			if host == "" {
				http.Error(w, "inspect: no host", http.StatusBadRequest)
				return
			}
			if wrong := do(host, r); wrong != "" {
				http.Error(w, "inspect: "+wrong, http.StatusBadRequest)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		})))
	}
	post("/pause", func(host string, r *http.Request) string {
		d, err := time.ParseDuration(r.PostFormValue("for"))
		if err != nil || d <= 0 || d > longestPause {
			return "for is not a duration of at most 24h"
		}
		h.t.Throttle().Pause(host, time.Now().Add(d))
		return ""
	})
	post("/resume", func(host string, _ *http.Request) string {
		h.t.Throttle().Resume(host)
		return ""
	})
	post("/open", func(host string, _ *http.Request) string {
		if err := h.t.Circuits().Force(host, breaker.Open); err != nil {
			return err.Error()
		}
		return ""
	})
	post("/release", func(host string, _ *http.Request) string {
		h.t.Circuits().Release(host)
		return ""
	})
}
