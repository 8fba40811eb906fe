// Package secrets plants canaries in requests and answers and looks for them
// in everything that comes out of weir.
package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/interop/real"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

const canary = "tweetywasherebutmustnotbeseen"

// out collects what weir tells.
type out struct {
	mu   sync.Mutex
	text strings.Builder
	n    int
}

// tell prints x in all the ways that a program may: fmt, slog, JSON.
func (o *out) tell(x any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n++
	fmt.Fprintf(&o.text, "%v\n%+v\n%#v\n", x, x, x)
	slog.New(slog.NewTextHandler(&o.text, nil)).Info("x", "x", x)
	slog.New(slog.NewJSONHandler(&o.text, nil)).Info("x", "x", x)
	if b, err := json.Marshal(x); err == nil {
		o.text.Write(b)
	}
	for err, _ := x.(error); err != nil; err = errors.Unwrap(err) {
		fmt.Fprintf(&o.text, "%+v\n", err)
	}
}

func (o *out) config() weir.Config {
	return weir.Config{
		Throttle: throttle.Config{
			Partition: func(r *http.Request) string { return r.Header.Get("X-Api-Key") },
			Lane:      func(r *http.Request) string { return r.Header.Get("X-Api-Key") },
			OnWait:    func(x throttle.Wait) { o.hook(x.Ctx); x.Ctx = nil; o.tell(x) },
			OnLearn:   func(x throttle.Learned) { o.hook(x.Ctx); x.Ctx = nil; o.tell(x) },
		},
		Retry: retry.Config{OnAttempt: func(x retry.Attempt) {
			if x.Err != nil {
				o.tell(x.Err)
			}
			x.Ctx = nil
			o.tell(x)
		}},
		Breaker: breaker.Config{
			Shard:         func(r *http.Request) string { return r.Header.Get("X-Api-Key") },
			OnStateChange: func(x breaker.Change) { x.Ctx = nil; o.tell(x) },
		},
	}
}

// hook prints a context as slog or fmt would; the caller's values are the
// caller's.
func (o *out) hook(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fmt.Fprintf(&o.text, "%v\n", ctx)
}

// request carries a canary wherever a secret may stand.
func request(ctx context.Context, method, host string) *http.Request {
	path := "/bot123456:AAE" + canary + "/send/" + canary
	r, err := http.NewRequestWithContext(ctx, method, "http://user:"+canary+"@"+host+path+"?key="+canary+"#"+canary, strings.NewReader(canary))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bearer "+canary)
	r.Header.Set("Cookie", "session="+canary)
	r.Header.Set("X-Api-Key", canary)
	r.Header.Set("Idempotency-Key", canary)
	r.Trailer = http.Header{"X-Sum": {canary}}
	return r
}

// TestNothingComesOut: through every way that a request can end.
func TestNothingComesOut(t *testing.T) {
	status := func(code int, set ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			for i := 0; i < len(set); i += 2 {
				w.Header().Set(set[i], set[i+1])
			}
			w.Header().Set("Set-Cookie", "session="+canary)
			w.WriteHeader(code)
			io.WriteString(w, `{"error":{"message":"`+canary+`","type":"requests"}}`)
		}
	}
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		change  func(*weir.Config)
		errors  bool // at least one call must end in an error
	}{
		{"accepted", status(200), nil, false},
		{"stated limits", status(200, "RateLimit", `"a";r=1;t=5`, "RateLimit-Policy", `"a";q=2;w=5;pk=:`+"dHdlZXR5d2FzaGVyZWJ1dG11c3Rub3RiZXNlZW4="+`:`), nil, false},
		{"throttled", status(429, "Retry-After", "2"), nil, false},
		{"throttled for long", status(429, "Retry-After", "3600"), nil, false},
		{"broken", status(500), nil, false},
		{"down", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, nil, true},
		{"silent", func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, func(c *weir.Config) { c.Retry.AttemptTimeout = time.Second }, true},
		{"over budget", status(200), func(c *weir.Config) {
			c.Throttle.Default = throttle.MustParseBudget("1/h")
			c.Throttle.MaxWait = -1
		}, true},
		{"never fits", status(200), func(c *weir.Config) {
			c.Throttle.Default = throttle.MustParseBudget("5 tokens/h")
			c.Throttle.Cost = func(*http.Request) throttle.Cost { return throttle.Cost{"tokens": 50} }
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := new(out)
			c := o.config()
			if tt.change != nil {
				tt.change(&c)
			}
			synctest.Test(t, func(t *testing.T) {
				base, _, stop := testnet.Server(t, tt.handler, false)
				rt, err := weir.New(base, c)
				if err != nil {
					t.Fatal(err)
				}
				failed := 0
				for i := range 30 {
					method := []string{"PUT", "POST", "GET", "DELETE"}[i%4]
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					resp, err := rt.RoundTrip(request(ctx, method, "api.test"))
					if err != nil {
						failed++
						o.tell(err)
					} else {
						io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
					cancel()
				}
				if tt.errors && failed == 0 {
					t.Error("no call failed")
				}
				o.tell(rt.Stats())
				o.tell(rt.Circuits().Stats())
				o.text.WriteString(real.Page(rt))
				rt.Close()
				stop()
			})
			if o.n == 0 {
				t.Error("nothing was told")
			}
			look(t, o.text.String())
		})
	}
}

// TestUserinfoInHosts: a URL.Host that nobody parsed may hold a password. What
// the base says of it is the base's; weir shows it without.
func TestUserinfoInHosts(t *testing.T) {
	o := new(out)
	c := o.config()
	c.Retry.OnAttempt = nil // it passes on the base's errors
	synctest.Test(t, func(t *testing.T) {
		rt := real.Chain(t, real.Func(func(r *http.Request) (*http.Response, error) {
			r.Body.Close()
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("lookup %s: i/o timeout", r.URL.Host)}
		}), c)
		for range 8 {
			r := request(t.Context(), "PUT", "api.test")
			r.URL.User, r.URL.Host = nil, "user:"+canary+"@api.test"
			_, err := rt.RoundTrip(r)
			fmt.Fprintln(&o.text, err)
		}
		o.tell(rt.Stats())
	})
	if text := o.text.String(); !strings.Contains(text, "retry: api.test: ") || !strings.Contains(text, "breaker: api.test") {
		t.Errorf("not what was to be looked at: %.300s", text)
	}
	look(t, o.text.String())
}

// look fails where the canary is, plain or in a usual coating.
func look(t *testing.T, text string) {
	t.Helper()
	for _, form := range []string{canary, url.QueryEscape(canary), "dHdlZXR5d2FzaGVy", fmt.Sprintf("%x", canary)} {
		if i := strings.Index(text, form); i >= 0 {
			t.Errorf("a canary is out: ...%s...", text[max(0, i-200):min(len(text), i+60)])
			return
		}
	}
	if text == "" {
		t.Error("nothing to look at")
	}
}

// TestConfigErrors: what New says about a bad setting names it, and a budget
// or pattern is no secret; a URL that was put there by mistake is.
func TestConfigErrors(t *testing.T) {
	o := new(out)
	for _, c := range []weir.Config{
		{Throttle: throttle.Config{MaxWait: -5, MaxQueue: -1}},
		{Retry: retry.Config{MaxAttempts: -1}},
		{Breaker: breaker.Config{FailureRate: 7}},
	} {
		_, err := weir.New(nil, c)
		if err == nil {
			t.Errorf("accepted: %+v", c)
			continue
		}
		o.tell(err)
	}
	for _, url := range []string{"https://user:" + canary + "@api.test/", "user:" + canary + "@api.test", "GET api.test/v1?key=" + canary, "https://api.test/#" + canary} {
		budget := throttle.MustParseBudget("5/s")
		_, err := weir.New(nil, weir.Config{Throttle: throttle.Config{Budgets: map[string]throttle.Budget{url: budget}}})
		o.tell(err)
		_, err = weir.New(nil, weir.Config{Hosts: map[string]weir.Host{url: {}}})
		o.tell(err)
		rt := real.Chain(t, nil, weir.Config{})
		o.tell(rt.SetHost(url, weir.Host{}))
		o.tell(rt.Throttle().SetBudget(url, budget))
		o.tell(rt.Throttle().SetBudget(url, throttle.Budget{InFlight: -1}))
		o.tell(rt.Throttle().SetHost(url, throttle.HostConfig{}))
		o.tell(rt.Circuits().SetHost(url, breaker.Config{}))
		o.tell(rt.Circuits().Force(url, breaker.HalfOpen))
	}
	look(t, o.text.String())
}

// TestSecretsStayWithTheirHost: over redirects, retries and pauses a header
// that net/http keeps from another host does not get there by our doing.
func TestSecretsStayWithTheirHost(t *testing.T) {
	var leaked []string
	var mu sync.Mutex
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "api.test" {
			http.SetCookie(w, &http.Cookie{Name: "session", Value: canary})
			http.Redirect(w, r, "http://other.test/landing", http.StatusTemporaryRedirect)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, name := range []string{"Authorization", "Cookie"} {
			if v := r.Header.Get(name); v != "" {
				leaked = append(leaked, name+": "+v)
			}
		}
		if r.URL.RawQuery != "" {
			leaked = append(leaked, r.URL.RawQuery)
		}
		w.WriteHeader([]int{503, 429, 200}[len(leaked)%3])
	})
	synctest.Test(t, func(t *testing.T) {
		base, _, stop := testnet.Server(t, h, false)
		rt, err := weir.New(base, weir.Config{})
		if err != nil {
			t.Fatal(err)
		}
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: rt, Jar: jar}
		for range 3 {
			r := request(t.Context(), "GET", "api.test")
			r.Body, r.GetBody, r.ContentLength, r.Trailer = nil, nil, 0, nil
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		rt.Close()
		stop()
	})
	if len(leaked) != 0 {
		t.Errorf("other.test was sent %q", leaked)
	}
}
