package retry

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// These tests are in the package because a clock that is kept for nobody is memory
// that is lost slowly, and callers see nothing else of it. Nor do they see which attempt has
// which hooks.

// A body that is read on after its end, as by whoever drains it to be sure,
// takes no clock: nobody would give it back, and its timer would keep the whole
// attempt.
func TestReadAfterTheEndTakesNoClock(t *testing.T) {
	for name, end := range map[string]func(io.ReadCloser){
		"end":    func(b io.ReadCloser) { io.Copy(io.Discard, b) },
		"closed": func(b io.ReadCloser) { b.Close() },
	} {
		w := Wire(testnet.Func(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 200, nil, testnet.NewBody("x")), nil
		}), Config{})
		resp, err := testnet.Get(t, context.Background(), w, "http://a.example/")
		if err != nil {
			t.Fatal(err)
		}
		end(resp.Body)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.Body.(*flight).ctx.clock != nil {
			t.Errorf("%s: an attempt that is over has a clock", name)
		}
	}
}

// A timeout that is as good as none neither strikes at once nor spoils the clock
// for those that have it later.
func TestEndlessTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newClocks()
		time.Sleep(time.Second)
		f := newFlight(p, true)
		f.start(p.now(), math.MaxInt64)
		c := f.ctx.clock
		c.ring()
		if f.release(); f.ctx.expired {
			t.Error("an endless timeout is over")
		}
		f = taker(t, p, c)
		f.start(p.now(), time.Second)
		select {
		case <-f.ctx.Done():
		case <-time.After(time.Hour):
			t.Error("a timeout of 1 s has not struck after 1 h")
		}
		f.release()
	})
}

// Clocks that idle are dropped, however long their timers have still to run.
func TestIdleClocksAreDropped(t *testing.T) {
	p := newClocks()
	var flights [100]*flight
	for i := range flights {
		flights[i] = newFlight(p, true)
		flights[i].start(p.now(), 1000*time.Hour)
	}
	for _, f := range flights {
		f.release()
	}
	live := func() (n int) {
		for _, w := range p.all {
			if w.Value() != nil {
				n++
			}
		}
		return n
	}
	for range 100 { // pools drop what nobody takes from one collection to the one after the next
		if runtime.GC(); live() == 0 {
			return
		}
	}
	t.Errorf("%d of %d clocks are kept for weeks", live(), len(p.all))
}

// newTracked is a flight over an http.Transport with a clock, and the clock.
func newTracked(p *clocks, full bool) (*flight, *clock) {
	both := &tracked{}
	f := &both.flight
	both.shown.lines = linesOf(nil)
	f.ctx.again, f.r = true, &http.Request{URL: new(url.URL)}
	f.ctx.Context, f.ctx.clocks, f.ctx.shown, f.ctx.full = context.Background(), p, &both.shown, full
	f.start(p.now(), time.Hour)
	return f, f.ctx.clock
}

// An attempt leaves its hooks to others only if nobody can call them any more. Who calls them
// all the same tells nobody.
func TestHooksAreLeftIfNobodyCanCallThem(t *testing.T) {
	got := func(tr *httptrace.ClientTrace) { tr.GetConn(""); tr.GotConn(httptrace.GotConnInfo{}) }
	for _, tt := range []struct {
		name   string
		full   bool
		traced bool // the caller has a trace
		calls  func(*httptrace.ClientTrace)
		failed bool // there is no answer
		want   bool
	}{
		{name: "a connection", calls: got, want: true},
		{name: "interim answers", calls: func(tr *httptrace.ClientTrace) { got(tr); tr.Got1xxResponse(103, nil) }, want: true},
		{name: "headers written", full: true, calls: func(tr *httptrace.ClientTrace) { got(tr); tr.WroteHeaders() }, want: true},
		{name: "answer before the headers were written", full: true, calls: got},
		{name: "no answer", calls: got, failed: true},
		{name: "a second connection", calls: func(tr *httptrace.ClientTrace) { got(tr); got(tr) }},
		{name: "no connection told", calls: func(tr *httptrace.ClientTrace) { tr.GetConn("") }},
		{name: "nothing told", calls: func(*httptrace.ClientTrace) {}},
		{name: "a caller who traces", traced: true, calls: got},
	} {
		p := directClocks()
		f, c := newTracked(p, tt.full)
		if tt.traced {
			f.ctx.Context = httptrace.WithClientTrace(f.ctx.Context, &httptrace.ClientTrace{GetConn: func(string) {}})
		}
		trace := httptrace.ContextClientTrace(&f.ctx)
		tt.calls(trace)
		f.ctx.answered = !tt.failed
		f.release()
		i := 0
		if tt.full {
			i = 1
		}
		if left := c.hooks[i] != nil; left != tt.want {
			t.Errorf("%s: the next attempt gets these hooks: %v, want %v", tt.name, left, tt.want)
		}
		if late := httptrace.ContextClientTrace(&f.ctx); tt.want && late != nil || !tt.want && late != trace {
			t.Errorf("%s: after the end the trace is %p, was %p", tt.name, late, trace)
		}
		lines := f.ctx.shown.lines.moves()
		got(trace)
		trace.Got1xxResponse(103, nil)
		if f.ctx.shown.lines.moves() != lines {
			t.Errorf("%s: a late call counted a connection", tt.name)
		}
	}
}

// net/http calls no hooks that were left to others, whatever has become of the attempt. All
// hooks of this test complain of that.
func TestNetHTTPCallsNoHooksThatWereLeft(t *testing.T) {
	for _, version := range []string{"HTTP/1", "HTTP/2"} {
		t.Run(version, func(t *testing.T) { lateHooks(t, version == "HTTP/2") })
	}
}

func lateHooks(t *testing.T, http2 bool) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(oddly))
	if srv.EnableHTTP2 = http2; http2 {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	defer srv.Close()
	base := srv.Client().Transport.(*http.Transport).Clone()
	base.MaxConnsPerHost, base.MaxIdleConnsPerHost = 5, 3
	base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		trace := httptrace.ContextClientTrace(ctx)
		time.Sleep(rand.N(2 * time.Millisecond))
		if trace != nil && trace.ConnectStart != nil {
			trace.ConnectStart(network, addr)
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	defer base.CloseIdleConnections()
	w := Wire(base, Config{AttemptTimeout: 30 * time.Millisecond, StallTimeout: 30 * time.Millisecond}).(*wire)
	var left, used atomic.Int64
	w.clocks.idle.New = func() any {
		c := newClock(w.clocks)
		c.hooks = [2]*hooks{complaining(t, false, &used), complaining(t, true, &used)}
		left.Add(1)
		return c
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				hurried(t, w, srv.URL, !http2)
			}
		})
	}
	wg.Wait()
	t.Logf("%d calls of %d hooks", used.Load(), 2*left.Load())
	if used.Load() == 0 {
		t.Error("the hooks were not used")
	}
}

// complaining returns hooks that complain to t if they are called while nobody has them.
func complaining(t *testing.T, full bool, used *atomic.Int64) *hooks {
	h := newHooks(full, true)
	h.lent = true
	mine := h.trace
	note := func(name string) {
		if used.Add(1); h.of.Load() == nil {
			t.Errorf("%s was called when nobody had the hooks", name)
		}
	}
	h.trace.GetConn = func(s string) { note("GetConn"); mine.GetConn(s) }
	h.trace.GotConn = func(i httptrace.GotConnInfo) { note("GotConn"); mine.GotConn(i) }
	h.trace.Got1xxResponse = func(code int, header textproto.MIMEHeader) error {
		note("Got1xxResponse")
		return mine.Got1xxResponse(code, header)
	}
	if full {
		h.trace.WroteHeaders = func() { note("WroteHeaders"); mine.WroteHeaders() }
	}
	return h
}

// oddly answers in one of many ways.
func oddly(w http.ResponseWriter, r *http.Request) {
	switch rand.N(10) {
	case 0:
		panic(http.ErrAbortHandler)
	case 1:
		time.Sleep(rand.N(60 * time.Millisecond))
	case 2, 3:
		io.Copy(io.Discard, r.Body)
	case 4, 5:
		w.WriteHeader(http.StatusEarlyHints)
	case 6:
		w.Header().Set("Connection", "close")
	}
	w.WriteHeader(http.StatusOK)
	if rand.N(4) == 0 {
		return
	}
	io.WriteString(w, strings.Repeat("x", rand.N(5000)))
}

// hurried makes a call, and may leave it at any time. Over HTTP/2 net/http reads a body while it
// looks whether it has to send it again, which is a data race, so there calls have none.
func hurried(t *testing.T, rt http.RoundTripper, target string, bodies bool) {
	ctx := context.Background()
	if rand.N(4) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rand.N(3*time.Millisecond))
		defer cancel()
	}
	method, body := "GET", io.Reader(nil)
	if rand.N(2) == 0 {
		if method = "POST"; bodies {
			body = strings.NewReader(strings.Repeat("y", rand.N(200000)))
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		t.Error(err)
		return
	}
	resp, err := rt.RoundTrip(r)
	if err != nil {
		return
	}
	if rand.N(4) > 0 {
		io.Copy(io.Discard, resp.Body)
	}
	resp.Body.Close()
}
