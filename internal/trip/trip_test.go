package trip

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/notsent"
)

func request(t testing.TB) *http.Request {
	r, err := http.NewRequest("GET", "https://API.example.com/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOneTripPerRequest(t *testing.T) {
	tab := hosts.New(10)
	r := request(t)
	r1, t1, made := Begin(r, Retry, tab)
	if !made || r1 == r || t1.Entry.Key != "api.example.com" || t1.Caller != r.Context() {
		t.Fatal("the first layer makes the trip and a copy")
	}
	if r.Context() != context.Background() {
		t.Error("the caller's request was changed")
	}
	r2, t2, made := Begin(r1, Throttle, tab)
	if made || r2 != r1 || t2 != t1 {
		t.Error("an inner layer does not find the trip")
	}
	if _, t3, made := Begin(r1, Throttle, tab); !made || t3 == t1 {
		t.Error("a second throttle took the trip of the first for its own")
	}
	t1.At(Retry)
	if _, _, made := Begin(r1, Throttle, tab); made {
		t.Error("a loop's next attempt is another request")
	}
	if _, t4, made := Begin(r1, Wire, hosts.New(10)); !made || t4 == t1 {
		t.Error("a chain with another table shares the trip")
	}
}

func TestNestedRequestIsItsOwn(t *testing.T) {
	tab := hosts.New(10)
	r1, t1, _ := Begin(request(t), Door, tab)
	Begin(r1, Wire, tab) // now at the base, which asks for a token with our context
	nested := request(t).WithContext(r1.Context())
	if _, t2, made := Begin(nested, Door, tab); !made || t2.Request == t1.Request {
		t.Error("a request made below shares the trip of the one above")
	}
}

func TestEndSaysNotSent(t *testing.T) {
	tab := hosts.New(1)
	_, trip, _ := Begin(request(t), Door, tab)
	if err := trip.End(io.EOF); !errors.Is(err, notsent.Err) || !errors.Is(err, io.EOF) {
		t.Errorf("%v: nothing was sent", err)
	}
	_, trip, _ = Begin(request(t), Door, tab)
	trip.MarkSent()
	if err := trip.End(io.EOF); errors.Is(err, notsent.Err) {
		t.Error("something was sent")
	}
	_, trip, _ = Begin(request(t), Door, tab)
	if err := trip.End(nil); err != nil {
		t.Error(err)
	}
	other := request(t)
	other.URL.Host = "other"
	if _, trip, _ = Begin(other, Door, tab); trip.Entry.Overflow {
		t.Error("End does not free the record")
	}
}

func TestForkSharesTheRequest(t *testing.T) {
	tab := hosts.New(10)
	r1, t1, _ := Begin(request(t), Retry, tab)
	t1.Next()
	t1.SetCause(AttemptTimeout)
	ctx, cancel := context.WithCancel(r1.Context())
	defer cancel()
	t2 := t1.Fork()
	t2.Bound(NewTimeouts(1, 2))
	if a, s := t2.Timeouts(); a != 1 || s != 2 {
		t.Errorf("timeouts %v and %v, want 1 and 2", a, s)
	}
	r2 := t2.Dress(r1.WithContext(ctx))
	if From(r2.Context()) != t2 || t2.Request != t1.Request || !t2.Hedge || t2.Number != 1 || t2.Cause() != NoCause {
		t.Errorf("fork %+v", t2)
	}
	if _, t3, made := Begin(r2, Throttle, tab); made || t3 != t2 {
		t.Error("the layer below does not find the fork")
	}
	t2.MarkSent()
	if !t1.Sent() {
		t.Error("a hedge that was sent is forgotten")
	}
}

// A trip is the context of all attempts that have no context of their own, and is in that of
// those that race.
func TestEachAttemptHasTheTripInItsContext(t *testing.T) {
	r, trip, _ := Begin(request(t), Retry, hosts.New(10))
	for range 2 {
		trip.Next()
		if ctx := trip.Over(r.Context()); ctx != context.Context(trip) {
			t.Errorf("the context is %v, want the trip", ctx)
		}
	}
	trip.Raced = true
	ctx, cancel := context.WithCancel(r.Context())
	own := trip.Over(ctx)
	if cancel(); own.Err() == nil || From(own) != trip || trip.Err() != nil {
		t.Errorf("an attempt that was ended alone: %v, %p, %v", own.Err(), From(own), trip.Err())
	}
	if trip.Next(); trip.Over(r.Context()) != context.Context(trip) {
		t.Error("the next attempt has a context of its own")
	}
}

// Timeouts are those of many trips: what one of them notes is its own.
func TestTimeoutsDoNotChange(t *testing.T) {
	both := NewTimeouts(time.Second, time.Minute)
	for i := range 3 {
		_, trip, _ := Begin(request(t), Retry, hosts.New(10))
		if i == 1 {
			trip.Wait(time.Hour) // before they are known
		}
		trip.Bound(both)
		trip.Follow("broken")
		trip.Keep(nil, nil)
		trip.Wait(time.Second)
		trip.Bound(both)
		if a, s := trip.Timeouts(); a != time.Second || s != time.Minute || trip.After() != "broken" || trip.Waited() < time.Second {
			t.Errorf("trip %d: timeouts %v, %v, after %q, waited %v", i, a, s, trip.After(), trip.Waited())
		}
		_, other, _ := Begin(request(t), Retry, hosts.New(10))
		if other.Bound(both); other.After() != "" || other.Waited() != 0 {
			t.Errorf("another trip knows what trip %d noted", i)
		}
	}
}

func TestTheNextAttemptBeginsAnew(t *testing.T) {
	_, trip, _ := Begin(request(t), Retry, hosts.New(10))
	trip.SetCause(AttemptTimeout)
	trip.SetCause(CallerDone)
	if trip.Cause() != AttemptTimeout {
		t.Error("the first cause does not stand")
	}
	trip.Throttled = true
	trip.Depart()
	trip.Next()
	if trip.Number != 1 || trip.Cause() != NoCause || trip.Throttled || !trip.OnWire().IsZero() {
		t.Errorf("after Next: %+v", trip)
	}
}

// Depart takes a reading that was noted, unless something was waited for since.
func TestDepartTakesTheNotedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := hosts.New(10)
		_, trip, _ := Begin(request(t), Retry, tab)
		for _, waits := range []bool{false, true} {
			trip.Next()
			noted := time.Now()
			trip.Clock(noted.Sub(tab.Epoch))
			time.Sleep(time.Second) // stands for what takes no time
			if waits {
				trip.Unread()
			}
			if !trip.OnWire().IsZero() {
				t.Error("on the wire too early")
			}
			want := noted
			if waits {
				want = time.Now()
			}
			if got := tab.Epoch.Add(trip.Depart()); !got.Equal(want) || !trip.OnWire().Equal(want) {
				t.Errorf("waits %v: left at %v, want %v", waits, got, want)
			}
		}
	})
}

// A table that was made outside of a bubble, or in another one, counts by another clock: times are
// right, but are not taken for those of the table's clock.
func TestTimesOfAnotherBubble(t *testing.T) {
	outside := hosts.New(10)
	times := func(t *testing.T, tab *hosts.Table, steady bool) {
		_, trip, _ := Begin(request(t), Retry, tab)
		before := time.Now()
		trip.Depart()
		if got := trip.OnWire(); got.Sub(before) < 0 || time.Since(got) > time.Minute || trip.Steady() != steady {
			t.Errorf("left %v after it began, steady %v, want %v", got.Sub(before), trip.Steady(), steady)
		}
		if got, since := trip.Reading(), trip.OnWire(); !got.Equal(since) {
			t.Errorf("it is %v, and it left at %v", got, since)
		}
	}
	times(t, outside, true)
	var inside *hosts.Table
	synctest.Test(t, func(t *testing.T) {
		inside = hosts.New(10)
		times(t, inside, true)
		times(t, outside, false)
	})
	times(t, inside, false)
}

func TestBeginCost(t *testing.T) {
	tab := hosts.New(10)
	r := request(t)
	Begin(r, Door, tab)
	r.URL.Host = "api.example.com"
	if n := testing.AllocsPerRun(100, func() {
		_, trip, _ := Begin(r, Door, tab)
		trip.End(nil)
	}); n > 1 {
		t.Errorf("%v allocations, want 1", n)
	}
}

func TestCancelledParentCancels(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r, _, _ := Begin(request(t).WithContext(ctx), Door, hosts.New(10))
	child, stop := context.WithTimeout(r.Context(), time.Hour)
	defer stop()
	cancel()
	<-child.Done()
	if child.Err() != context.Canceled {
		t.Error(child.Err())
	}
}

func BenchmarkBegin(b *testing.B) {
	tab := hosts.New(10)
	r := request(b)
	b.ReportAllocs()
	for b.Loop() {
		_, trip, _ := Begin(r, Door, tab)
		trip.End(nil)
	}
}
