package retry

import (
	"context"
	"errors"
	"net/http/httptrace"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func contextOf(parent context.Context) *attemptContext {
	return &attemptContext{Context: parent, clocks: newClocks()}
}

var errOurs = errors.New("ours")

// However and whenever it ends and is asked, it answers as
// context.WithCancelCause would, and so do those that descend from it.
func TestAttemptContextEnds(t *testing.T) {
	theirs := errors.New("theirs")
	for _, tt := range []struct {
		name      string
		do        func(c *attemptContext, cancelParent func())
		err, want error // Err and Cause
	}{
		{"not at all", func(*attemptContext, func()) {}, nil, nil},
		{"by us", func(c *attemptContext, _ func()) { c.end(errOurs) }, context.Canceled, errOurs},
		{"without a cause", func(c *attemptContext, _ func()) { c.end(nil) }, context.Canceled, context.Canceled},
		{"with its parent", func(_ *attemptContext, parent func()) { parent() }, context.Canceled, theirs},
		{"before its parent", func(c *attemptContext, parent func()) { c.end(errOurs); c.Err(); parent() }, context.Canceled, errOurs},
		{"after its parent", func(c *attemptContext, parent func()) { parent(); c.Err(); c.end(errOurs) }, context.Canceled, theirs},
		{"twice", func(c *attemptContext, _ func()) { c.end(errOurs); c.end(theirs) }, context.Canceled, errOurs},
	} {
		for _, asked := range []string{"before", "after"} {
			t.Run(tt.name+", asked "+asked, func(t *testing.T) {
				parent, cancel := context.WithCancelCause(background())
				defer cancel(nil)
				c := contextOf(parent)
				if asked == "before" {
					c.Done()
				}
				tt.do(c, func() { cancel(theirs) })
				child, cancelChild := context.WithCancel(c)
				defer cancelChild()
				for name, ctx := range map[string]context.Context{"itself": c, "child": child, "with a value": With(c, Override{})} {
					if got := ctx.Err(); got != tt.err {
						t.Errorf("%s: Err %v, want %v", name, got, tt.err)
					}
					if got := context.Cause(ctx); got != tt.want {
						t.Errorf("%s: Cause %v, want %v", name, got, tt.want)
					}
					select {
					case <-ctx.Done():
						if tt.err == nil {
							t.Errorf("%s: done", name)
						}
					default:
						if tt.err != nil {
							t.Errorf("%s: not done", name)
						}
					}
				}
			})
		}
	}
}

// Up to Go 1.25 context.Cause asks for the cause before anything else. It must
// not hear the parent's when nobody had asked before.
func TestAttemptContextCauseAskedFirst(t *testing.T) {
	parent, cancel := context.WithCancelCause(background())
	defer cancel(nil)
	spy := keySpy{Context: parent}
	_, stop := context.WithCancel(&spy) // looks for what knows the cause
	stop()
	c := contextOf(parent)
	if c.Value(spy.key) != parent {
		t.Fatal("the key is another")
	}
	c.end(errOurs)
	if knows, ok := c.Value(spy.key).(context.Context); !ok || context.Cause(knows) != errOurs {
		t.Errorf("the cause is asked of %v", knows)
	}
}

// A deadline above is kept, and ends it with that error.
func TestAttemptContextDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithTimeoutCause(background(), time.Minute, errOurs)
		defer cancel()
		c := contextOf(parent)
		if d, ok := c.Deadline(); !ok || time.Until(d) != time.Minute {
			t.Error("the deadline is lost")
		}
		if c.Err() != nil {
			t.Error("ended before its deadline")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !errors.Is(c.Err(), context.DeadlineExceeded) || context.Cause(c) != errOurs {
			t.Errorf("got %v, %v", c.Err(), context.Cause(c))
		}
	})
}

// Descendants and AfterFuncs end with it at once, without a goroutine that
// waits, and one registered when it is over runs too.
func TestAttemptContextDescendants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(background())
		defer cancel()
		c := contextOf(parent)
		before := runtime.NumGoroutine()
		var ran atomic.Int32
		children := make([]context.Context, 20)
		for i := range children {
			var stop context.CancelFunc
			children[i], stop = context.WithCancel(With(c, Override{}))
			defer stop()
			context.AfterFunc(children[i], func() { ran.Add(1) })
		}
		stop := context.AfterFunc(c, func() { t.Error("was stopped, and ran") })
		if !stop() || stop() {
			t.Error("stopping does not tell whether it did")
		}
		if made := runtime.NumGoroutine() - before; made > 0 {
			t.Errorf("%d goroutines wait", made)
		}
		c.end(errOurs)
		for _, child := range children {
			if child.Err() == nil || context.Cause(child) != errOurs {
				t.Error("a descendant goes on")
			}
		}
		context.AfterFunc(c, func() { ran.Add(1) })
		if synctest.Wait(); ran.Load() != 21 {
			t.Errorf("%d functions ran, want 21", ran.Load())
		}
	})
}

// Any number of goroutines may ask while it ends, and all hear the same.
func TestAttemptContextConcurrently(t *testing.T) {
	for range 100 {
		parent, cancel := context.WithCancelCause(background())
		defer cancel(nil)
		c := contextOf(parent)
		var wg sync.WaitGroup
		dones := make([]<-chan struct{}, 64)
		causes := make([]error, 64)
		traces := make([]*httptrace.ClientTrace, 64)
		for g := range 64 {
			wg.Go(func() {
				switch g % 8 {
				case 0:
					c.end(errOurs)
				case 1:
					cancel(errReset)
				case 2:
					if err := c.Err(); err != nil && c.Err() != err {
						t.Error("Err has changed")
					}
				}
				dones[g] = c.Done()
				<-dones[g]
				causes[g] = context.Cause(c)
				traces[g] = httptrace.ContextClientTrace(c)
			})
		}
		wg.Wait()
		for g := range dones {
			if dones[g] != dones[0] || causes[g] != causes[0] || causes[g] == nil || traces[g] != traces[0] {
				t.Fatal("not all heard the same")
			}
		}
	}
}

// Its trace gathers evidence and tells the caller's trace as well; other
// values are the caller's.
func TestAttemptContextTrace(t *testing.T) {
	var asked, written int
	ctx := httptrace.WithClientTrace(background(), &httptrace.ClientTrace{
		GetConn:      func(string) { asked++ },
		WroteHeaders: func() { written++ },
	})
	for _, full := range []bool{false, true} {
		c := contextOf(With(ctx, Override{MaxAttempts: 7}))
		c.full = full
		trace := httptrace.ContextClientTrace(context.WithoutCancel(c))
		trace.GetConn("h:80")
		trace.GotConn(httptrace.GotConnInfo{})
		trace.WroteHeaders()
		if e := c.trail.Load().seen(); !e.asked || !e.got || e.wrote != full {
			t.Errorf("full %v: %+v", full, e)
		}
		if o := overrideOf(c); o == nil || o.MaxAttempts != 7 {
			t.Error("the caller's values are lost")
		}
		c.end(nil)
		if o := overrideOf(c); o == nil || httptrace.ContextClientTrace(c) != trace {
			t.Error("values are lost with the end")
		}
	}
	if asked != 2 || written != 2 {
		t.Errorf("the caller's trace heard of %d connections and %d requests, want 2 and 2", asked, written)
	}
}

// Nobody who does not ask pays.
func TestAttemptContextIsFree(t *testing.T) {
	clocks := newClocks()
	parent, cancel := context.WithCancel(background())
	defer cancel()
	if n := testing.AllocsPerRun(100, func() {
		c := attemptContext{Context: parent, clocks: clocks}
		if c.Err() != nil || c.Value("x") != nil {
			t.Error("not its parent's answers")
		}
		c.end(nil)
	}); n > 1 {
		t.Errorf("%v allocations, want only its own", n)
	}
}
