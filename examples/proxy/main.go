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
	defer base.CloseIdleConnections()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	serve := func(name, address string, h http.Handler) error {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
		context.AfterFunc(ctx, func() { server.Close() })
		go func() { cancel(server.Serve(listener)) }()
		_, err = fmt.Fprintf(w, "%s: http://%s\n", name, listener.Addr())
		return err
	}
	if s.page != "" {
		if err := serve("page", s.page, inspect.Handler(transport, inspect.Config{})); err != nil {
			return err
		}
	}
	if err := serve("proxy", s.listen, handler(s.routes, transport)); err != nil {
		return err
	}
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler hands each request to the longest route that it is below.
func handler(routes []route, transport http.RoundTripper) http.Handler {
	handlers := make([]http.Handler, len(routes))
	for i, r := range routes {
		handlers[i] = http.StripPrefix(r.prefix, &httputil.ReverseProxy{
			Transport:      transport,
			Rewrite:        func(p *httputil.ProxyRequest) { p.SetURL(r.target) },
			ModifyResponse: r.comeBack,
			ErrorHandler:   refuse,
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i, route := range routes {
			if rest, ok := strings.CutPrefix(r.URL.Path, route.prefix); ok && (rest == "" || rest[0] == '/') {
				handlers[i].ServeHTTP(w, r)
				return
			}
		}
		http.Error(w, "proxy: no -route is above this path", http.StatusNotFound)
	})
}

// comeBack lets a redirect within the API lead through the proxy again.
func (r route) comeBack(resp *http.Response) error {
	to, err := resp.Location()
	if err != nil || to.Scheme != r.target.Scheme || to.Host != r.target.Host {
		return nil
	}
	rest, ok := strings.CutPrefix(to.EscapedPath(), strings.TrimRight(r.target.EscapedPath(), "/"))
	if !ok || rest != "" && rest[0] != '/' {
		return nil
	}
	there := r.prefix + rest
	if to.RawQuery != "" {
		there += "?" + to.RawQuery
	}
	resp.Header.Set("Location", there)
	return nil
}

// refuse answers for an API that did not: 429 if the budget has no room in time,
// 503 if the circuit is open, both with the time to come back, and 502 or 504.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	var budget *throttle.Error
	var circuit *breaker.Error
	var timeout interface{ Timeout() bool }
	status, after := http.StatusBadGateway, time.Duration(0)
	switch {
	case errors.As(err, &budget):
		status, after = http.StatusTooManyRequests, budget.RetryAfter
	case errors.As(err, &circuit):
		status, after = http.StatusServiceUnavailable, circuit.RetryAfter
	case errors.As(err, &timeout) && timeout.Timeout():
		status = http.StatusGatewayTimeout
	}
	if after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
	http.Error(w, "proxy: "+err.Error(), status)
}
