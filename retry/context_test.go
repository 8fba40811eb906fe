package retry_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// attemptTime is the AttemptTimeout of the attempts in this file.
const attemptTime = time.Minute

// underWay makes a request with the context parent. It returns the context of its
// attempt, as a base has it, and what ends the attempt with an answer. The test runs
// in a bubble.
func underWay(t *testing.T, parent context.Context) (c context.Context, over func()) {
	t.Helper()
	leave, left := make(chan struct{}), make(chan struct{})
	w := retry.Wire(testnet.Func(func(r *http.Request) (*http.Response, error) {
		c = r.Context()
		<-leave
		return testnet.Answer(r, 200, nil, nil), nil
	}), retry.Config{AttemptTimeout: attemptTime})
	go func() {
		defer close(left)
		w.RoundTrip(request(t, "GET", "http://a.example/", "").WithContext(parent))
	}()
	synctest.Wait()
	over = sync.OnceFunc(func() {
		close(leave)
		<-left
	})
	t.Cleanup(over)
	return c, over
}

// timeOut lets AttemptTimeout end an attempt that began just now.
func timeOut() {
	time.Sleep(attemptTime)
	synctest.Wait()
}

// timedOut reports that a cause is an AttemptTimeout.
func timedOut(cause error) bool {
	var late *retry.TimeoutError
	return errors.As(cause, &late) && late.Limit == attemptTime
}

// However and whenever the context of an attempt ends and is asked, it answers as
// context.WithCancelCause would, and so do those that descend from it.
func TestAttemptContextEnds(t *testing.T) {
	theirs := errors.New("theirs")
	is := func(want error) func(error) bool { return func(got error) bool { return got == want } }
	for _, tt := range []struct {
		name string
		do   func(c context.Context, over, cancelParent func())
		err  error
		want func(cause error) bool
	}{
		{"not at all", func(context.Context, func(), func()) {}, nil, is(nil)},
		{"by its timeout", func(context.Context, func(), func()) { timeOut() }, context.Canceled, timedOut},
		{"with its answer", func(_ context.Context, over, _ func()) { over() }, context.Canceled, is(context.Canceled)},
		{"with its parent", func(_ context.Context, _, parent func()) { parent() }, context.Canceled, is(theirs)},
		{"before its parent", func(c context.Context, _, parent func()) { timeOut(); c.Err(); parent() }, context.Canceled, timedOut},
		{"after its parent", func(c context.Context, _, parent func()) { parent(); c.Err(); timeOut() }, context.Canceled, is(theirs)},
		{"twice", func(_ context.Context, over, _ func()) { timeOut(); over() }, context.Canceled, timedOut},
	} {
		for _, asked := range []string{"before", "after"} {
			bubble(t, tt.name+", asked "+asked, func(t *testing.T) {
				parent, cancel := context.WithCancelCause(background())
				defer cancel(nil)
				c, over := underWay(t, parent)
				if asked == "before" {
					c.Done()
				}
				tt.do(c, over, func() { cancel(theirs) })
				child, cancelChild := context.WithCancel(c)
				defer cancelChild()
				for name, ctx := range map[string]context.Context{"itself": c, "child": child, "with a value": retry.With(c, retry.Override{})} {
					if got := ctx.Err(); got != tt.err {
						t.Errorf("%s: Err %v, want %v", name, got, tt.err)
					}
					if got := context.Cause(ctx); !tt.want(got) {
						t.Errorf("%s: Cause %v", name, got)
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

// askedFor is a context that notes what it is asked for.
type askedFor struct {
	context.Context
	key any
}

func (s *askedFor) Value(key any) any {
	s.key = key
	return nil
}

// Up to Go 1.25 context.Cause asks for the cause before anything else. It must
// not hear the parent's when nobody had asked before.
func TestAttemptContextCauseAskedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancelCause(background())
		defer cancel(nil)
		spy := askedFor{Context: parent}
		_, stop := context.WithCancel(&spy) // looks for what knows the cause
		stop()
		c, _ := underWay(t, parent)
		if c.Value(spy.key) != parent {
			t.Fatal("the key is another")
		}
		timeOut()
		if knows, ok := c.Value(spy.key).(context.Context); !ok || !timedOut(context.Cause(knows)) {
			t.Errorf("the cause is asked of %v", knows)
		}
	})
}

// A deadline above is kept, and ends it with that error.
func TestAttemptContextDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs := errors.New("theirs")
		parent, cancel := context.WithTimeoutCause(background(), attemptTime/2, theirs)
		defer cancel()
		c, _ := underWay(t, parent)
		if d, ok := c.Deadline(); !ok || time.Until(d) != attemptTime/2 {
			t.Error("the deadline is lost")
		}
		if c.Err() != nil {
			t.Error("ended before its deadline")
		}
		time.Sleep(attemptTime / 2)
		synctest.Wait()
		if !errors.Is(c.Err(), context.DeadlineExceeded) || context.Cause(c) != theirs {
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
		c, _ := underWay(t, parent)
		before := testnet.Goroutines()
		var ran atomic.Int32
		children := make([]context.Context, 20)
		for i := range children {
			var stop context.CancelFunc
			children[i], stop = context.WithCancel(retry.With(c, retry.Override{}))
			defer stop()
			context.AfterFunc(children[i], func() { ran.Add(1) })
		}
		stop := context.AfterFunc(c, func() { t.Error("was stopped, and ran") })
		if !stop() || stop() {
			t.Error("stopping does not tell whether it did")
		}
		if made := testnet.Goroutines() - before; made > 0 {
			t.Errorf("%d goroutines wait", made)
		}
		timeOut()
		for _, child := range children {
			if child.Err() == nil || !timedOut(context.Cause(child)) {
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
		var c context.Context
		resp, err := retry.Wire(testnet.Func(func(r *http.Request) (*http.Response, error) {
			c = r.Context()
			return testnet.Answer(r, 200, nil, testnet.NewBody("x")), nil
		}), retry.Config{}).RoundTrip(request(t, "GET", "http://a.example/", "").WithContext(parent))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		dones := make([]<-chan struct{}, 64)
		causes := make([]error, 64)
		traces := make([]*httptrace.ClientTrace, 64)
		for g := range 64 {
			wg.Go(func() {
				switch g % 8 {
				case 0:
					resp.Body.Close() // which ends the attempt
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

// Its trace tells the caller's trace as well; other values are the caller's, also
// when the attempt is over.
func TestAttemptContextTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		var asked, written int
		parent := httptrace.WithClientTrace(context.WithValue(background(), key{}, "theirs"), &httptrace.ClientTrace{
			GetConn:      func(string) { asked++ },
			WroteHeaders: func() { written++ },
		})
		for _, method := range []string{"GET", "POST"} {
			var c context.Context
			var trace *httptrace.ClientTrace
			if _, err := retry.Wire(testnet.Func(func(r *http.Request) (*http.Response, error) {
				c = r.Context()
				trace = httptrace.ContextClientTrace(context.WithoutCancel(c))
				trace.GetConn("h:80")
				trace.GotConn(httptrace.GotConnInfo{})
				trace.WroteHeaders()
				if c.Value(key{}) != "theirs" {
					t.Errorf("%s: the caller's values are lost", method)
				}
				return testnet.Answer(r, 200, nil, nil), nil
			}), retry.Config{}).RoundTrip(request(t, method, "http://a.example/", "").WithContext(parent)); err != nil {
				t.Fatal(err)
			}
			if c.Value(key{}) != "theirs" || httptrace.ContextClientTrace(c) != trace {
				t.Errorf("%s: values are lost with the end", method)
			}
		}
		if asked != 2 || written != 2 {
			t.Errorf("the caller's trace heard of %d connections and %d requests, want 2 and 2", asked, written)
		}
	})
}
