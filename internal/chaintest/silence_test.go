package chaintest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
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

// hang is the time of an answer that never comes.
const hang = time.Duration(1) << 60

// answering is a host that takes as long for an answer as takes says.
func answering(takes func(r *http.Request) time.Duration) http.RoundTripper {
	return testnet.Func(func(r *http.Request) (*http.Response, error) {
		if err := testnet.Wait(r.Context(), takes(r)); err != nil {
			return nil, err
		}
		return stub(r)
	})
}

// watchOpen counts how often circuits open.
func watchOpen(c weir.Config, n *atomic.Int64) weir.Config {
	c.Breaker.OnStateChange = func(ch breaker.Change) {
		if ch.To == breaker.Open {
			n.Add(1)
		}
	}
	return c
}

// poll asks for news for ever, one request after the other, and a second after
// each failure.
func poll(t *testing.T, rt http.RoundTripper, url string, stop *atomic.Bool) {
	for !stop.Load() {
		resp, err := rt.RoundTrip(get(t, url))
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		resp.Body.Close()
	}
}

// TestQuickCallsBesideLongPolls: a long poll that asks for a longer time than
// an attempt may take ends by our own clock each time. Quick calls to the same
// host are all served, and at once, however many poll and however rarely the
// quick ones come; and once the host has answered one, no poll is refused. If polls of two kinds
// have met with silence, and only one of them was under way then, the other is told apart from
// a dead host by the next quick call.
func TestQuickCallsBesideLongPolls(t *testing.T) {
	for _, tt := range []struct {
		name    string
		pollers int
		kinds   int           // of polls
		every   time.Duration // a quick call
	}{
		{"a poll and a call every 3 min", 1, 1, 3 * time.Minute},
		{"three polls and a call every 3 min", 3, 1, 3 * time.Minute},
		{"a poll and a call every 10 s", 1, 1, 10 * time.Second},
		{"twenty polls and a call every 10 s", 20, 1, 10 * time.Second},
		{"twenty polls of three kinds and a call every second", 20, 3, time.Second},
		{"polls of two kinds and a call every 3 min", 2, 2, 3 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var opened atomic.Int64
				c := weir.Config{}
				if tt.pollers > 3 { // who polls has places that a fresh host has not shown yet
					c.Throttle = throttle.Config{DisableLearning: true}
				}
				rt := must(weir.New(answering(func(r *http.Request) time.Duration {
					if r.URL.Path == "/bot1:x/sendMessage" {
						return 50 * time.Millisecond
					}
					return 50 * time.Second
				}), watchOpen(c, &opened)))(t)
				var stop atomic.Bool
				var all sync.WaitGroup
				for i := range tt.pollers {
					url := fmt.Sprintf("http://h/bot1:x/get%s?timeout=50", words(i%tt.kinds))
					all.Go(func() { poll(t, rt, url, &stop) })
				}
				served, early := 0, int64(0)
				for i := range 40 {
					time.Sleep(tt.every)
					start := time.Now()
					resp, err := rt.RoundTrip(must(http.NewRequest("POST", "http://h/bot1:x/sendMessage", nil))(t))
					if err != nil {
						t.Log(err)
						continue
					}
					resp.Body.Close()
					if i == 0 {
						early = opened.Load() // nobody knew until now that the host lives
					}
					if time.Since(start) < time.Second {
						served++
					}
				}
				if served != 40 {
					t.Errorf("%d quick calls were served within a second, want all 40", served)
				}
				again := int64(0)
				if tt.kinds == 2 {
					again = 1
				}
				if n := opened.Load(); n > early+again || early > 0 && tt.every < time.Minute {
					t.Errorf("the circuit opened %d times, %d before the host had answered anything else", n, early)
				}
				stop.Store(true)
				all.Wait()
			})
		})
	}
}

// TestDeadHostIsLeftAlone: from a moment on, no answer comes, and every call
// ends by our own clock. After a second the host gets one in a hundred or two of what
// is asked of it, whatever it is, and as soon as the first five have ended the others
// are refused.
func TestDeadHostIsLeftAlone(t *testing.T) {
	for name, path := range map[string]func(i int) string{
		"one route":            func(int) string { return "/" },
		"three routes":         func(i int) string { return "/" + string(rune('a'+i%3)) },
		"twenty routes":        func(i int) string { return "/" + string(rune('a'+i%20)) },
		"ever another route":   func(i int) string { return "/x" + strconv.Itoa(i) },
		"ever another thing":   func(i int) string { return "/things/" + strconv.Itoa(i) },
		"a rare one among few": func(i int) string { return []string{"/a", "/a", "/a", "/b/" + strconv.Itoa(i/400)}[min(i%400, 3)] },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var dead atomic.Bool
				var sent, refused atomic.Int64
				rt := must(weir.New(answering(func(*http.Request) time.Duration {
					sent.Add(1)
					if dead.Load() {
						return hang
					}
					return 40 * time.Millisecond
				}), weir.Config{Throttle: throttle.Config{DisableLearning: true}}))(t)
				var all sync.WaitGroup
				i := 0
				load := func(lasts time.Duration) {
					for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
						r := must(http.NewRequest("POST", "http://h"+path(i), nil))(t)
						i++
						all.Go(func() {
							resp, err := rt.RoundTrip(r)
							if err == nil {
								resp.Body.Close()
							} else if e := (*breaker.Error)(nil); errors.As(err, &e) {
								refused.Add(1)
							}
						})
					}
				}
				load(10 * time.Second)
				dead.Store(true)
				load(time.Second)
				before := sent.Load()
				load(29*time.Second - 50*time.Millisecond)
				if n := sent.Load() - before; n > 60 { // of many routes, not all are known after ten seconds
					t.Errorf("of 2895 calls to a host that answers nobody %d were sent, want at most 60", n)
				}
				if n := refused.Load(); n > 0 {
					t.Errorf("%d calls were refused before the first one had ended, want none", n)
				}
				load(300 * time.Millisecond) // the calls of routes of which nothing was known yet end, too
				if refused.Load() == 0 {
					t.Error("five calls ended by our own clock, but no other is refused")
				}
				before = sent.Load()
				load(90 * time.Second)
				if n := sent.Load() - before; n > 90 {
					t.Errorf("of 9000 calls to a dead host %d were sent, want at most 90", n)
				}
				all.Wait()
			})
		})
	}
}

// TestOverloadOpensTheCircuit: if most calls of most routes get no answer in time, the circuit
// opens, though a few calls do.
func TestOverloadOpensTheCircuit(t *testing.T) {
	for _, routes := range []int{1, 3, 10, 1000} {
		t.Run(strconv.Itoa(routes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(1, uint64(routes)))
				var mu sync.Mutex
				rt := must(weir.New(answering(func(*http.Request) time.Duration {
					mu.Lock()
					defer mu.Unlock()
					if random.IntN(10) > 0 {
						return hang
					}
					return time.Second
				}), weir.Config{Throttle: throttle.Config{DisableLearning: true}}))(t)
				var all sync.WaitGroup
				for i := range 50 * 32 {
					r := must(http.NewRequest("POST", "http://h/"+words(i%routes), nil))(t)
					all.Go(func() {
						if resp, err := rt.RoundTrip(r); err == nil {
							resp.Body.Close()
						}
					})
					time.Sleep(20 * time.Millisecond)
				}
				if s := rt.Stats().Breaker.Circuits; len(s) != 1 || s[0].Trips == 0 {
					t.Errorf("circuits %+v, want one that has opened", s)
				}
				all.Wait()
			})
		})
	}
}

// words spells a number in letters.
func words(n int) string {
	b := []byte(strconv.Itoa(n))
	for i := range b {
		b[i] += 'a' - '0'
	}
	return string(b)
}

// TestQuickCallsBesideStalledUploads: uploads to a part of a host that reads
// nothing end by our own clock. The rest of the host is served all the while.
func TestQuickCallsBesideStalledUploads(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			over := make(chan bool)
			base, _, stop := testnet.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == "PUT" {
					<-over // HTTP/1 does not see its client leave
				}
			}), http2)
			defer stop()
			defer func() { close(over); time.Sleep(time.Second) }() // for which the server lingers
			var opened atomic.Int64
			c := watchOpen(weir.Config{Throttle: throttle.Config{DisableLearning: true}}, &opened)
			rt := must(weir.New(base, c))(t)
			defer rt.CloseIdleConnections()
			var all sync.WaitGroup
			for i := range 12 {
				all.Go(func() {
					body := strings.NewReader(strings.Repeat("x", 1<<20))
					r := must(http.NewRequest("PUT", "http://h/files/"+strconv.Itoa(i), body))(t)
					if resp, err := rt.RoundTrip(r); err == nil {
						resp.Body.Close()
						t.Error("a stalled upload was answered")
					}
				})
			}
			for range 120 {
				time.Sleep(time.Second)
				if resp, err := rt.RoundTrip(get(t, "http://h/")); err != nil {
					t.Error(err)
				} else {
					resp.Body.Close()
				}
			}
			all.Wait()
			if n := opened.Load(); n != 0 {
				t.Errorf("HTTP/2 %v: the circuit opened %d times, want never", http2, n)
			}
		})
	}
}

// TestUnreachableHostIsLeftAlone: where there is no connection, no route is to
// blame: five attempts of one close the host for all.
func TestUnreachableHostIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		rt := must(weir.New(base, weir.Config{Retry: retry.Config{MaxAttempts: 1}}))(t)
		for range 5 {
			rt.RoundTrip(get(t, "http://h/a"))
		}
		_, err := rt.RoundTrip(get(t, "http://h/b"))
		var refused *breaker.Error
		if !errors.As(err, &refused) {
			t.Errorf("another route: %v", err)
		}
		rt.CloseIdleConnections()
	})
}
