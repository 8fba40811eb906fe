package inspect

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/json"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/throttle"
)

// assets is the page. It is a variable because that is how files are embedded;
// nothing writes to it.
//
//go:embed assets
var assets embed.FS

// Config says what [Handler] serves. The zero Config is a page about the
// transport alone, for this machine, that only reads.
type Config struct {
	// AllowHosts are names under which the page may be asked for, without port,
	// besides the loopback names: localhost, *.localhost and loopback addresses.
	AllowHosts []string

	// Controls adds POST /pause, /resume, /open and /release, and their buttons:
	// an operator's pause of a host and the switch of its circuit. Requests from
	// other origins are refused (net/http.CrossOriginProtection).
	Controls bool

	// Limiters adds the keys of Limiters, by a name for each, to the list: each key
	// as a host whose name is that of the Limiter, a colon and the key. Keys are
	// shown as they are, so they must not be secret.
	Limiters map[string]*throttle.Limiter

	// Outbox adds the queues of an outbox around the transport. nil: none.
	Outbox Outbox
}

type handler struct {
	t        *weir.Transport
	watch    *watch
	controls bool
	allowed  map[string]bool
	mux      *http.ServeMux
}

// Handler returns the page and its data for t. It is safe for concurrent use.
func Handler(t *weir.Transport, c Config) http.Handler {
	h := &handler{t: t, watch: newWatch(t), controls: c.Controls, allowed: make(map[string]bool), mux: http.NewServeMux()}
	for _, n := range c.AllowHosts {
		h.allowed[strings.ToLower(strings.TrimSuffix(n, "."))] = true
	}
	for _, name := range slices.Sorted(maps.Keys(c.Limiters)) {
		if l := c.Limiters[name]; l != nil {
			h.watch.limiters = append(h.watch.limiters, limiter{name, l})
		}
	}
	h.watch.outbox = c.Outbox
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // assets is compiled in
	}
	h.mux.Handle("GET /", typed(http.FileServerFS(files)))
	h.mux.HandleFunc("GET /stats.json", h.stats)
	h.mux.HandleFunc("GET /events", h.events)
	if h.controls {
		h.control()
	}
	return h
}

// policy allows what the page is made of and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	if reason := h.refuse(r); reason != "" {
		http.Error(w, reason, http.StatusForbidden)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// refuse says why a request is not served; "" if it is.
func (h *handler) refuse(r *http.Request) string {
	for name := range r.Header {
		if name == "Forwarded" || name == "Via" || name == "X-Real-Ip" || strings.HasPrefix(name, "X-Forwarded") {
			return "inspect: not served through a proxy"
		}
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || h.allowed[host] {
		return ""
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return ""
	}
	return "inspect: not served under this host name; see Config.AllowHosts"
}

// typed names the types of the page's files: what the system says about their
// endings may be wrong, and browsers are told not to guess.
func typed(files http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path.Ext(r.URL.Path) {
		case ".js":
			w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		case ".css":
			w.Header().Set("Content-Type", "text/css; charset=utf-8")
		case ".svg":
			w.Header().Set("Content-Type", "image/svg+xml")
		}
		files.ServeHTTP(w, r)
	})
}

// stats answers with all hosts, one after the other, of which few are copied at a
// time: a hundred thousand need no hundred megabytes. Its form is that of a Snapshot.
func (h *handler) stats(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	now := time.Now()
	frame, err := json.Marshal(Snapshot{At: now, Bounds: bounds(), Hosts: []*Host{}, Outbox: kept(h.watch.outbox, now)})
	if err != nil {
		http.Error(w, "inspect: "+err.Error(), http.StatusInternalServerError)
		return
	}
	const list = `"hosts":[`
	before, after, _ := bytes.Cut(frame, []byte(list))
	out := bufio.NewWriterSize(w, 32<<10)
	out.Write(before)
	out.WriteString(list)
	comma := ""
	h.watch.all(now, atOnce, func(host *Host) bool {
		var text []byte
		if text, err = json.Marshal(host); err != nil {
			return false // a text that ends early is no JSON
		}
		out.WriteString(comma)
		comma = ","
		_, err = out.Write(text) // an error: nobody reads it
		return err == nil
	})
	if err != nil {
		return
	}
	out.Write(after)
	out.WriteByte('\n')
	out.Flush()
}
