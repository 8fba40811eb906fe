package throttle

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/store"
)

// slowAnswers is a base whose answers come after d.
func slowAnswers(d time.Duration) http.RoundTripper {
	return answers(func(*http.Request) *http.Response {
		time.Sleep(d)
		return answer(200)
	})
}

func tokens(t *testing.T, tr *Transport, n int64, wait time.Duration) (*http.Response, error) {
	t.Helper()
	ctx := WithCost(WithMaxWait(t.Context(), wait), Cost{"tokens": n})
	r, err := http.NewRequestWithContext(ctx, "GET", "https://api.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return tr.RoundTrip(r)
}

// TestFleetSettlesWhatCameLate: what an answer says that it cost goes back from
// where the late units are kept by then.
func TestFleetSettlesWhatCameLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		ts := sharedTransports(t, s, Config{Default: MustParseBudget("60 tokens/m burst 60")}, 2, slowAnswers(5*time.Second))
		resp, err := tokens(t, ts[0], 30, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tokens(t, ts[0], 1, time.Second); err != nil { // takes the news along
			t.Fatal(err)
		}
		if err := Settle(resp, Cost{"tokens": 10}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := tokens(t, ts[1], 50, time.Second); err == nil {
			t.Error("50 tokens of 60 were let in beside 11")
		}
		if _, err := tokens(t, ts[1], 49, time.Second); err != nil {
			t.Errorf("49 tokens of 60 beside 11: %v", err)
		}
		time.Sleep(time.Minute)
		told := s.Books()
		if time.Sleep(time.Hour); s.Books() != told {
			t.Errorf("%d calls after all was told", s.Books()-told)
		}
	})
}

// TestFleetTellsLateAnswersOnClose: another process learns how long to wait,
// also of a request that is still open.
func TestFleetTellsLateAnswersOnClose(t *testing.T) {
	for _, open := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := farstore.New(time.Millisecond)
			answer := 20 * time.Second
			if open {
				answer += 5 * time.Second
			}
			ts := sharedTransports(t, s, Config{Default: MustParseBudget("1/m burst 1"), MaxWait: time.Second}, 2, slowAnswers(answer))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				r, _ := http.NewRequestWithContext(ctx, "GET", "https://api.example/", nil)
				_, _ = ts[0].RoundTrip(r)
			}()
			time.Sleep(20*time.Second + time.Millisecond*10)
			ts[0].Close()
			synctest.Wait()
			var e *Error
			if err := visit(t, ts[1], "https://api.example/"); !errors.As(err, &e) || e.RetryAfter < 59*time.Second || e.RetryAfter > time.Minute+time.Second {
				t.Errorf("open=%t: got %v, want a wait of a minute from the answer", open, err)
			}
			synctest.Wait()
			time.Sleep(time.Minute) // the answer comes, to nobody's surprise
		})
	}
}

// TestFleetKeepsLateAnswersForLater: a store that is gone when an answer comes
// late hears of it when it is back.
func TestFleetKeepsLateAnswersForLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		ts := sharedTransports(t, s, Config{Default: MustParseBudget("2/m burst 2"), MaxWait: time.Second}, 2, slowAnswers(30*time.Second))
		time.AfterFunc(20*time.Second, func() { s.Fail(errors.New("connection refused"), false) })
		time.AfterFunc(45*time.Second, func() { s.Fail(nil, false) })
		if err := visit(t, ts[0], "https://api.example/"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(35 * time.Second) // 65 s after the grant, 35 s after the answer
		r, err := s.Book(t.Context(), store.Booking{Draws: []store.Draw{{Key: "api.example",
			Limits: []store.Limit{{ID: "1m", Kind: store.LogLimit, Size: 1, Per: time.Minute}}, Units: []store.UnitCost{{Unit: requests, First: 1, All: 1}}}}})
		if err != nil || r.Outcome != store.Refused || r.Wait < 24*time.Second || r.Wait > 26*time.Second {
			t.Errorf("got %+v, %v, want the unit to count until a minute after its answer", r, err)
		}
	})
}
