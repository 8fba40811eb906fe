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
