package outbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// A server dies and comes back. Every request made meanwhile is kept, an open
// circuit sends none of them, and when it closes its hook wakes Run, which
// delivers them in order, each once.
func TestWithWeir(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		base, network, stop := testnet.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			got = append(got, string(b))
		}), false)
		defer stop()
		var o *Transport
		transport, err := weir.New(base, weir.Config{Breaker: breaker.Config{OnStateChange: func(c breaker.Change) {
			if c.To == breaker.Closed {
				o.Wake()
			}
		}}})
		if err != nil {
			t.Fatal(err)
		}
		defer transport.Close()
		o = box(t, transport, Config{Patterns: []string{"POST api.example"}})

		network.Refuse.Store(true)
		var want []string
		for i := range 40 {
			want = append(want, fmt.Sprint(i))
			mustKeep(t, o, "http://api.example/", want[i])
			if resp, err := transport.RoundTrip(httptest.NewRequest("GET", "http://api.example/", nil)); err == nil {
				resp.Body.Close()
			}
		}
		if s := transport.Circuits().State("api.example"); s == breaker.Closed {
			t.Fatal("the circuit is closed")
		}
		transport.Circuits().Force("api.example", breaker.Open)
		var refused *breaker.Error
		if n, err := o.Drain(t.Context()); n != 0 || !errors.As(err, &refused) {
			t.Errorf("Drain = %d, %v", n, err)
		}
		transport.Circuits().Release("api.example")

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- o.Run(ctx, 0) }()
		synctest.Wait()
		network.Refuse.Store(false)
		client := &http.Client{Transport: o}
		for range 100 { // live traffic finds the way, as a program's would
			time.Sleep(time.Second)
			if resp, err := client.Get("http://api.example/"); err == nil {
				resp.Body.Close()
			}
		}
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Errorf("Run = %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Fields(strings.Join(got, " ")); !reflect.DeepEqual(got, want) {
			t.Errorf("delivered %q, want %q", got, want)
		}
		if s := o.Stats(); s.Pending != 0 || s.Dead != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// Replays keep to weir's budgets and to what the server says, queues of other
// hosts go on meanwhile, and all attempts at an entry, live ones and replays,
// carry one key.
func TestReplaysThroughWeir(t *testing.T) {
	for _, keepFirst := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			keys, bodies, times := map[string]string{}, map[string][]string{}, map[string][]time.Time{}
			paused, refusals, down, live, failures := time.Time{}, 0, true, 0, 0
			base, _, stop := testnet.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				event, key := r.Host+" "+string(b), r.Header.Get("Idempotency-Key")
				if keys[event] == "" {
					keys[event] = key
				}
				if key == "" || keys[event] != key {
					t.Errorf("%s came with the key %q, before with %q", event, key, keys[event])
				}
				switch {
				case down:
					live++
					w.WriteHeader(502)
					return
				case r.Host == "quota.example" && time.Now().Before(paused):
					t.Errorf("%s came during the pause", event)
				case r.Host == "quota.example" && len(bodies[r.Host]) == 3 && refusals == 0:
					refusals++
					paused = time.Now().Add(20 * time.Second)
					w.Header().Set("Retry-After", "20")
					w.WriteHeader(429)
					return
				case r.Host == "flaky.example" && failures < 3*len(bodies[r.Host]):
					failures++ // three for each event: more attempts than weir makes at one go
					w.WriteHeader(502)
					return
				}
				bodies[r.Host] = append(bodies[r.Host], string(b))
				times[r.Host] = append(times[r.Host], time.Now())
			}), false)
			defer stop()
			transport, err := weir.New(base, weir.Config{Throttle: throttle.Config{
				Budgets: map[string]throttle.Budget{"slow.example": throttle.MustParseBudget("2/s burst 1")},
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer transport.Close()
			o := box(t, transport, Config{Patterns: []string{"POST *"}, KeepFirst: keepFirst, FailedStatus: []int{502}})
			hosts := []string{"slow.example", "quota.example", "flaky.example", "fine.example"}
			var want []string
			for i := range 20 {
				want = append(want, fmt.Sprint(i))
				for _, host := range hosts {
					mustKeep(t, o, "http://"+host+"/", want[i])
				}
			}
			mu.Lock()
			down = false
			mu.Unlock()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- o.Run(ctx, 5*time.Second) }()
			time.Sleep(10 * time.Minute)
			cancel()
			<-ended
			mu.Lock()
			defer mu.Unlock()
			for _, host := range hosts {
				if !reflect.DeepEqual(bodies[host], want) {
					t.Errorf("%s got %q", host, bodies[host])
				}
			}
			slow, fine := times["slow.example"], times["fine.example"]
			for i := 2; i < len(slow); i++ {
				if d := slow[i].Sub(slow[i-2]); d < time.Second {
					t.Errorf("three at slow.example within %v", d)
				}
			}
			if (live == 0) != keepFirst || failures != 3*19 {
				t.Errorf("%d attempts before the first was kept, %d failures later", live, failures)
			}
			if refusals != 1 || fine[len(fine)-1].After(slow[1]) {
				t.Errorf("%d refusals; the host without limits was done at %v, the second at slow.example came at %v", refusals, fine[len(fine)-1], slow[1])
			}
		})
	}
}
