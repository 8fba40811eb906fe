package weir_test

import (
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func get(t testing.TB, url string) *http.Request {
	t.Helper()
	return must(http.NewRequest("GET", url, nil))(t)
}

// stub is a base that answers every request with status 200 and "ok".
func stub(r *http.Request) (*http.Response, error) {
	return testnet.Answer(r, 200, nil, testnet.NewBody("ok")), nil
}

// TestNewClientKeepsConnections: one host may have as many idle connections as
// all may have, also where there is no limit to that.
func TestNewClientKeepsConnections(t *testing.T) {
	const calls = 10
	d := http.DefaultTransport.(*http.Transport)
	defer func(was int) { d.MaxIdleConns = was }(d.MaxIdleConns)
	for most, want := range map[int]int64{100: calls, 0: calls, 4: 2*calls - 4} {
		d.MaxIdleConns = most
		client := must(weir.NewClient(weir.Config{Throttle: throttle.Config{DisableLearning: true}}))(t)
		var made atomic.Int64
		all := make(chan *sync.WaitGroup, 1) // that are under way in this wave
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			wave := <-all
			all <- wave
			wave.Done()
			wave.Wait()
		}))
		server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				made.Add(1)
			}
		}
		server.Start()
		for range 2 {
			var wave, done sync.WaitGroup
			wave.Add(calls)
			all <- &wave
			for range calls {
				done.Go(func() {
					if resp, err := client.Get(server.URL); err != nil || resp.Body.Close() != nil {
						t.Error(err)
					}
				})
			}
			done.Wait()
			<-all
		}
		if made.Load() != want {
			t.Errorf("MaxIdleConns %d: %d connections for two waves of %d calls, want %d", most, made.Load(), calls, want)
		}
		client.CloseIdleConnections()
		server.Close()
	}
}

// TestTransport: one call through all layers. The request is the caller's and stays
// as it was, its body is read whole by each attempt, what the server asks for is
// waited for, and the caller gets the last answer. All else that the layers promise
// together stands in internal/chaintest.
func TestTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bodies []string
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			data, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			bodies = append(bodies, string(data))
			resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}
			if len(bodies) == 1 {
				resp.StatusCode = 429
				resp.Header.Set("Retry-After", "7")
			}
			return resp, nil
		})
		rt := must(weir.New(base, weir.Config{}))(t)
		r := must(http.NewRequest("PUT", "http://api.example.com/item", strings.NewReader("data")))(t)
		begun := time.Now()
		resp := must(rt.RoundTrip(r))(t)
		resp.Body.Close()
		if took := time.Since(begun); resp.StatusCode != 200 || took < 7*time.Second || took > 10*time.Second {
			t.Errorf("%d after %v, want 200 after the 7 s that were asked for", resp.StatusCode, took)
		}
		if !slices.Equal(bodies, []string{"data", "data"}) || len(r.Header) != 0 || r.Method != "PUT" {
			t.Errorf("sent %q; the caller's request is %v", bodies, r)
		}
	})
}

// TestStatsOfSomeHosts: StatsOf has of the hosts that are wanted what Stats has of them, in
// each layer, and nothing of the others.
func TestStatsOfSomeHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 503, nil, nil), nil
		}), weir.Config{Retry: retry.Config{MaxAttempts: 2}}))(t)
		for _, host := range []string{"a.example", "b.example"} {
			must(rt.RoundTrip(get(t, "http://"+host+"/")))(t).Body.Close()
		}
		got := rt.StatsOf(func(host, _ string, _ uint64) bool { return host == "b.example" })
		if len(got.Throttle.Hosts) != 1 || got.Throttle.Hosts[0].Host != "b.example" || got.Throttle.Hosts[0].Granted == 0 {
			t.Errorf("of the throttle: %+v", got.Throttle.Hosts)
		}
		if len(got.Retry.Hosts) != 1 || got.Retry.Hosts[0].Host != "b.example" {
			t.Errorf("of retry: %+v", got.Retry.Hosts)
		}
		if none := rt.StatsOf(func(string, string, uint64) bool { return false }); len(none.Throttle.Hosts)+len(none.Retry.Hosts) != 0 {
			t.Errorf("of no host: %+v", none)
		}
	})
}

// TestAnOpenCircuitIsRefusing: a host whose circuit is open is not "ok" in Stats, whether
// failures or an operator opened it, and is again when the circuit is closed.
func TestAnOpenCircuitIsRefusing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			code := 200
			if r.URL.Host == "down.example" {
				code = 500
			}
			return testnet.Answer(r, code, nil, nil), nil
		}), weir.Config{}))(t)
		for range 40 {
			for _, host := range []string{"down.example", "up.example", "held.example"} {
				if resp, err := rt.RoundTrip(get(t, "http://"+host+"/")); err == nil {
					resp.Body.Close()
				}
			}
		}
		states := func() map[string]throttle.State {
			all := make(map[string]throttle.State)
			for _, h := range rt.Stats().Throttle.Hosts {
				all[h.Host] = h.State
			}
			return all
		}
		if err := rt.Circuits().Force("held.example", breaker.Open); err != nil {
			t.Fatal(err)
		}
		want := map[string]throttle.State{"down.example": throttle.StateRefusing, "up.example": throttle.StateOK, "held.example": throttle.StateRefusing}
		if got := states(); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		rt.Circuits().Release("held.example")
		if got := states()["held.example"]; got != throttle.StateOK {
			t.Errorf("released: %s", got)
		}
	})
}
