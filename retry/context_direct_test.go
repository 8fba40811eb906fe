package retry

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// These tests are in the package because only an http.Transport as the base makes an
// attempt's context end without another one, and that cannot be held up at will. And the
// count of allocations, which a caller can see, does not show their size.

// The runtime gives out memory by sizes, of which 112 and 224 are two: with more, each
// attempt that has a timeout costs 128 bytes, or 240 over an http.Transport.
func TestAFlightTakesNoLargerSizeOfMemory(t *testing.T) {
	if n, m := unsafe.Sizeof(flight{}), unsafe.Sizeof(tracked{}); n > 112 || m > 224 {
		t.Errorf("%d bytes, and %d over an http.Transport", n, m)
	}
}

// directContext is the context of an attempt whose base is an http.Transport.
func directContext(parent context.Context) *attemptContext {
	return &attemptContext{Context: parent, clocks: directClocks()}
}

func directClocks() *clocks {
	p := newClocks()
	p.direct = true
	return p
}

// detached has the values of a context, and does not end with it.
type detached struct{ context.Context }

func (detached) Done() <-chan struct{}            { return nil }
func (detached) Err() error                       { return nil }
func (detached) Deadline() (_ time.Time, ok bool) { return }

// A context above which nothing ends answers as context.WithCancelCause would, however
// and whenever it is asked, and so do those that descend from it.
func TestADirectContextEnds(t *testing.T) {
	theirs := errors.New("theirs")
	above, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, parent := range map[string]context.Context{"background": context.Background(), "detached": detached{above}} {
		for _, cause := range []error{nil, theirs} {
			for _, asked := range []string{"before", "after", "never by itself"} {
				c := directContext(parent)
				var before context.Context
				if asked == "before" {
					var stop context.CancelFunc
					before, stop = context.WithCancel(c)
					defer stop()
					if c.Err() != nil || before.Err() != nil || context.Cause(c) != nil {
						t.Errorf("%s: it ended too early", name)
					}
				}
				c.end(cause)
				c.end(errors.New("late"))
				after, stop := context.WithCancel(c)
				defer stop()
				all := []context.Context{after, context.WithValue(c, theirs, 1)}
				if asked != "never by itself" {
					all = append(all, c)
				}
				if before != nil {
					all = append(all, before)
				}
				want := cause
				if want == nil {
					want = context.Canceled
				}
				for i, ctx := range all {
					select {
					case <-ctx.Done():
					default:
						t.Errorf("%s, %v, asked %s: %d is not done", name, cause, asked, i)
					}
					if ctx.Err() != context.Canceled || context.Cause(ctx) != want {
						t.Errorf("%s, asked %s: %d: Err %v, Cause %v, want %v", name, asked, i, ctx.Err(), context.Cause(ctx), want)
					}
				}
			}
		}
	}
}

// There is place for one descendant, others get a context of package context to descend
// from. All are told, unless they left, and a place that was left is given away again.
func TestADirectContextTellsAllThatDescend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := directContext(context.Background())
		c.Done()
		var told [4]atomic.Bool
		tell := func(i int) func() { return func() { told[i].Store(true) } }
		first := c.AfterFunc(tell(0))
		second := c.AfterFunc(tell(1))
		if !first() || first() || !second() {
			t.Error("stop does not say whether it stopped what it should")
		}
		c.AfterFunc(tell(2))
		if first() {
			t.Error("a stop that came before stops another")
		}
		c.AfterFunc(tell(3))
		c.end(nil)
		synctest.Wait()
		if told[0].Load() || told[1].Load() || !told[2].Load() || !told[3].Load() {
			t.Error("told were, in this order:", told[0].Load(), told[1].Load(), told[2].Load(), told[3].Load())
		}
		late := make(chan struct{})
		if stop := c.AfterFunc(func() { close(late) }); stop() {
			t.Error("who comes after the end is not told")
		}
		<-late
	})
}

// A descendant costs less than one of a context of package context.
func TestADirectContextCostsLess(t *testing.T) {
	cost := func(direct bool) float64 {
		clocks := newClocks()
		clocks.direct = direct
		return testing.AllocsPerRun(100, func() {
			c := &attemptContext{Context: context.Background(), clocks: clocks}
			ctx, stop := context.WithCancel(c)
			ctx.Done()
			stop()
			c.end(nil)
		})
	}
	if less, more := cost(true), cost(false); less >= more {
		t.Errorf("%v allocations, and %v by package context", less, more)
	}
}

// Whoever sees that the context is done sees the cause, while others come and go.
func TestADirectContextEndsAtOnce(t *testing.T) {
	theirs := errors.New("theirs")
	for range 300 {
		c := directContext(context.Background())
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				child, stop := context.WithCancel(c)
				defer stop()
				if i == 0 {
					stop()
				}
				<-c.Done()
				if c.Err() != context.Canceled || context.Cause(c) != theirs {
					t.Errorf("Err %v, Cause %v", c.Err(), context.Cause(c))
				}
				if <-child.Done(); i > 0 && context.Cause(child) != theirs {
					t.Errorf("Cause of a descendant %v", context.Cause(child))
				}
			})
		}
		c.end(theirs)
		wg.Wait()
	}
}

// net/http makes the contexts that it needs directly of an attempt's. If a version does not,
// package context starts a goroutine for each request.
func TestNetHTTPDescendsDirectly(t *testing.T) {
	arrived, leave := make(chan struct{}), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-leave
	}))
	defer srv.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	w := Wire(base, Config{})
	done := make(chan error)
	go func() {
		r, err := http.NewRequest("GET", srv.URL, nil)
		if err != nil {
			done <- err
			return
		}
		resp, err := w.RoundTrip(r)
		if err == nil {
			err = resp.Body.Close()
		}
		done <- err
	}()
	<-arrived
	var stacks strings.Builder
	pprof.Lookup("goroutine").WriteTo(&stacks, 2)
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if strings.Contains(stacks.String(), "context.(*cancelCtx).propagateCancel") {
		t.Error("a goroutine waits for the end of the attempt")
	}
}

// An attempt leaves its channel to others if only descendants, which it told, have waited for it.
func TestAChannelIsLeftIfNobodyElseHasIt(t *testing.T) {
	theirs := errors.New("theirs")
	for _, tt := range []struct {
		name string
		asks func(context.Context)
		end  error
		want bool
	}{
		{"nobody asks", func(context.Context) {}, nil, false},
		{"a descendant", func(ctx context.Context) { context.WithCancelCause(ctx) }, nil, true},
		{"a descendant that left", func(ctx context.Context) { _, stop := context.WithCancel(ctx); stop() }, nil, true},
		{"a channel", func(ctx context.Context) { ctx.Done() }, nil, false},
		{"two", func(ctx context.Context) { ctx.Done(); ctx.Done() }, nil, false},
		{"a descendant and a channel", func(ctx context.Context) { context.WithCancelCause(ctx); ctx.Done() }, nil, false},
		{"two descendants", func(ctx context.Context) { context.WithCancelCause(ctx); context.WithCancelCause(ctx) }, nil, false},
		{"a cause", func(ctx context.Context) { context.WithCancelCause(ctx) }, theirs, false},
	} {
		f, c := newTracked(directClocks(), false)
		tt.asks(&f.ctx)
		if tt.end != nil {
			f.ctx.end(tt.end)
		}
		f.release()
		if left := c.done != nil; left != tt.want {
			t.Errorf("%s: the next attempt gets the channel: %v, want %v", tt.name, left, tt.want)
		}
		select {
		case <-f.ctx.Done():
		default:
			t.Errorf("%s: it has not ended", tt.name)
		}
		if c.done == nil {
			continue
		}
		select {
		case <-c.done:
			t.Errorf("%s: the next attempt gets a channel that is closed", tt.name)
		default:
		}
	}
}
