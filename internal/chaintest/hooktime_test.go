package chaintest

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// However long the program's own functions take, an attempt's time counts from
// when it was handed on: a timeout is not shorter, a call not slower.
func TestSlowFunctionsAreNotSlowCalls(t *testing.T) {
	slow := func() { time.Sleep(7 * time.Second) }
	word := func(*http.Request) string { slow(); return "x" }
	for name, c := range map[string]weir.Config{
		"Partition":      {Throttle: throttle.Config{Partition: word}},
		"Lane":           {Throttle: throttle.Config{Lane: word, Default: throttle.MustParseBudget("1/m burst 1")}},
		"Cost":           {Throttle: throttle.Config{Cost: func(*http.Request) throttle.Cost { slow(); return nil }}},
		"OnWait":         {Throttle: throttle.Config{OnWait: func(throttle.Wait) { slow() }, Default: throttle.MustParseBudget("1/m burst 1")}},
		"Shard":          {Breaker: breaker.Config{Shard: word}},
		"IdempotencyKey": {Retry: retry.Config{IdempotencyKey: word}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { slowFunctions(t, c) })
		})
	}
}

func slowFunctions(t *testing.T, c weir.Config) {
	const works = 5 * time.Second
	c.Retry.AttemptTimeout = works + time.Second
	c.Retry.OnAttempt = func(a retry.Attempt) {
		if a.Took != works && c.Breaker.Shard == nil { // which is asked after the answer, too
			t.Errorf("an attempt took %v, want %v", a.Took, works)
		}
	}
	c.Breaker.SlowCall, c.Breaker.SlowRate, c.Breaker.MinCalls, c.Breaker.FailureRate = works+time.Second, 0.1, 2, 0.9
	status := http.StatusInternalServerError // the first, so that the host has a circuit
	w, err := weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
		time.Sleep(works)
		defer func() { status = http.StatusOK }()
		return testnet.Answer(r, status, nil, testnet.NewBody("x")), nil
	}), c)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for range 3 {
		time.Sleep(time.Second)
		r, _ := http.NewRequest("POST", "http://a.test/", nil)
		resp, err := w.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if s := w.Circuits().State("a.test"); s != breaker.Closed {
		t.Errorf("the circuit is %v", s)
	}
}
