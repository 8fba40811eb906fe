// Proxy is a reverse proxy for programs in other languages, and for several
// programs on one machine that share an API: they call the proxy's base URL in
// place of the API's, and the proxy keeps the budgets, waits, retries and circuits.
//
//	go run ./examples/proxy -route /github=https://api.github.com \
//		-budget 'api.github.com=5000/h, 20 in flight' -inspect localhost:6060
//	curl http://localhost:8080/github/rate_limit
//
// Anybody who can reach the proxy can call the APIs through it, so it listens on this
// machine only, unless -listen says otherwise. It adds no credentials.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/inspect"
	"github.com/weirhttp/weir/throttle"
)

// route sends what is below a path to an API.
type route struct {
	prefix string // "/github"
	target *url.URL
}

// settings are the flags.
type settings struct {
	listen, page string
	routes       []route
	config       weir.Config
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s, err := parse(os.Args[1:])
	if err == nil {
		err = run(ctx, s, os.Stdout)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		log.Fatal("proxy: ", err)
	}
}

func parse(args []string) (*settings, error) {
	s := &settings{}
	s.config.Throttle.Budgets = map[string]throttle.Budget{}
	s.config.Retry.BufferBody = 1 << 20 // a POST can be sent again after a 429 only if its body is kept
	f := flag.NewFlagSet("proxy", flag.ContinueOnError)
	f.StringVar(&s.listen, "listen", "localhost:8080", "where programs call")
	f.StringVar(&s.page, "inspect", "", "where the live page is, for example localhost:6060 (default: nowhere)")
	f.DurationVar(&s.config.Throttle.MaxWait, "max-wait", 0, "how long a request may wait for budget (default 75s)")
	f.Func("route", "/PATH=URL, may be given more than once", s.addRoute)
	f.Func("budget", "PATTERN=BUDGET, may be given more than once", s.addBudget)
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if len(s.routes) == 0 {
		return nil, errors.New("no -route is given")
	}
	slices.SortStableFunc(s.routes, func(a, b route) int { return cmp.Compare(len(b.prefix), len(a.prefix)) })
	return s, nil
}

func (s *settings) addRoute(text string) error {
	prefix, target, _ := strings.Cut(text, "=")
	u, err := url.Parse(target)
	if err != nil || !strings.HasPrefix(prefix, "/") || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%q: want /PATH=URL", text)
	}
	s.routes = append(s.routes, route{strings.TrimRight(prefix, "/"), u})
	return nil
}

func (s *settings) addBudget(text string) error {
	i := strings.LastIndexByte(text, '=')
	if i < 0 {
		return fmt.Errorf("%q: want PATTERN=BUDGET", text)
	}
	b, err := throttle.ParseBudget(strings.TrimSpace(text[i+1:]))
	s.config.Throttle.Budgets[strings.TrimSpace(text[:i])] = b
	return err
}

// run serves until ctx ends and prints where.
func run(ctx context.Context, s *settings, w io.Writer) error {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.DisableCompression = true // answers pass as they are
	transport, err := weir.New(base, s.config)
	if err != nil {
		return err
	}
	defer transport.Close()
	ended := make(chan error, 2)
	serve := func(name, address string, h http.Handler) {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			ended <- err
			return
		}
		fmt.Fprintf(w, "%s: http://%s\n", name, listener.Addr())
		server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
		context.AfterFunc(ctx, func() { server.Close() })
		go func() { ended <- server.Serve(listener) }()
	}
	if s.page != "" {
		serve("page", s.page, inspect.Handler(transport, inspect.Config{}))
	}
	serve("proxy", s.listen, handler(s.routes, transport))
	if err = <-ended; errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// handler hands each request to the longest route that it is below.
func handler(routes []route, transport http.RoundTripper) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, route := range routes {
			if below(r.URL.Path, route.prefix) {
				proxy := &httputil.ReverseProxy{
					Transport:      transport,
					Rewrite:        func(p *httputil.ProxyRequest) { p.SetURL(route.target) },
					ModifyResponse: route.comeBack,
					ErrorHandler:   refuse,
				}
				http.StripPrefix(route.prefix, proxy).ServeHTTP(w, r)
				return
			}
		}
		http.Error(w, "proxy: no -route is above this path", http.StatusNotFound)
	})
}

func below(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '?')
}

// comeBack lets a redirect within the API lead through the proxy again.
func (r route) comeBack(resp *http.Response) error {
	to, err := resp.Location()
	path := strings.TrimRight(r.target.EscapedPath(), "/")
	if err == nil && to.Scheme == r.target.Scheme && to.Host == r.target.Host && below(to.RequestURI(), path) {
		resp.Header.Set("Location", r.prefix+to.RequestURI()[len(path):])
	}
	return nil
}

// refuse answers for an API that did not: 429 if the budget has no room in time,
// 503 if the circuit is open, both with the time to come back, and 502 or 504.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	status, after := http.StatusBadGateway, time.Duration(0)
	if e, ok := errors.AsType[*throttle.Error](err); ok {
		status, after = http.StatusTooManyRequests, e.RetryAfter
	} else if e, ok := errors.AsType[*breaker.Error](err); ok {
		status, after = http.StatusServiceUnavailable, e.RetryAfter
	} else if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		status = http.StatusGatewayTimeout
	}
	if after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
	http.Error(w, "proxy: "+err.Error(), status)
}
