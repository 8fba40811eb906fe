package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
)

// inMemory serves each request by h on the caller's goroutine, so that the
// whole program runs in virtual time.
type inMemory struct{ h http.Handler }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	m.h.ServeHTTP(w, r)
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

func job(t *testing.T, name string, client func(http.RoundTripper) call) result {
	t.Helper()
	a := new(api)
	var p progress
	took := run(t.Context(), "http://api.example/", client(inMemory{a}), &p)
	if got := p.done.Load(); got != calls {
		t.Errorf("%s: %d calls done, want %d", name, got, calls)
	}
	return result{name: name, took: took, failed: int(p.failed.Load()), arrivals: a.seen()}
}

// The claim of the example: the retry loop is refused again and again and
// fails; weir, told nothing, completes every call in about the ideal time.
func TestWeirCompletesWhatNaiveRetriesLose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain := job(t, "plain", func(base http.RoundTripper) call { return naive(&http.Client{Transport: base}) })
		polite := job(t, "weir", func(base http.RoundTripper) call {
			transport, err := weir.New(base, weir.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { transport.Close() })
			return once(&http.Client{Transport: transport})
		})
		t.Logf("plain: %v, %d failed, %d requests, %d refused", plain.took, plain.failed, len(plain.arrivals), plain.refused())
		t.Logf("weir:  %v, %d failed, %d requests, %d refused", polite.took, polite.failed, len(polite.arrivals), polite.refused())
		if plain.failed == 0 || plain.refused() == 0 {
			t.Errorf("plain: %d calls failed, %d refused: the loop should suffer", plain.failed, plain.refused())
		}
		if polite.failed != 0 {
			t.Errorf("weir: %d calls failed, want none", polite.failed)
		}
		if got := polite.refused(); got*10 >= plain.refused() {
			t.Errorf("weir was refused %d times, the plain client %d: want less than a tenth", got, plain.refused())
		}
		if least := ideal(calls); polite.took < least || polite.took > least*3/2 {
			t.Errorf("weir took %v, want from %v to half as much again", polite.took, least)
		}
	})
}

func TestAPIKeepsItsQuotaAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := new(api)
		var last *http.Response
		for i := range 21 {
			resp, err := inMemory{a}.RoundTrip(httptest.NewRequest("GET", "http://api.example/", nil))
			if err != nil {
				t.Fatal(err)
			}
			if want := i < quota; (resp.StatusCode == 200) != want {
				t.Errorf("request %d: %s", i+1, resp.Status)
			}
			last = resp
		}
		for name, want := range map[string]string{
			"RateLimit-Policy": `"default";q=20;w=1`,
			"RateLimit":        `"default";r=0;t=1`,
			"Retry-After":      "1",
		} {
			if got := last.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		time.Sleep(window)
		if ok, _, _ := a.admit(time.Now()); !ok {
			t.Error("refused in the next window")
		}
	})
}

func TestReport(t *testing.T) {
	arrivals := []arrival{{at: 0}, {at: 10 * time.Millisecond}, {at: 20 * time.Millisecond, refused: true}, {at: 250 * time.Millisecond}, {at: 5100 * time.Millisecond}}
	var b strings.Builder
	report(&b, result{name: "one", took: 5200 * time.Millisecond, failed: 3, arrivals: arrivals}, result{name: "two"})
	want := `                          one                   two
time                      5.2 s                 0.0 s
ideal time                9.0 s                 9.0 s
calls that failed         3 of 200              0 of 200
requests sent             5                     0
answered 429              1                     0

requests per 100 ms, · none, █ 2

one
   0 s  served  █·▄···············································
        429     ▄·················································
   5 s  served  ·▄
        429     ··

two
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestIdeal(t *testing.T) {
	for n, want := range map[int]time.Duration{1: 0, 20: 0, 21: time.Second, 200: 9 * time.Second, 201: 10 * time.Second} {
		if got := ideal(n); got != want {
			t.Errorf("ideal(%d) = %v, want %v", n, got, want)
		}
	}
}
