package redisstore

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle"
)

// stating is a server that states a limit of 40 an hour, without a network.
type stating struct{ served, refused int }

func (s *stating) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Body: io.NopCloser(strings.NewReader("")), Request: r}
	if s.served++; s.served > 40 {
		s.served, resp.StatusCode = 40, http.StatusTooManyRequests
		s.refused++
	}
	resp.Header.Set("X-RateLimit-Limit", "40")
	resp.Header.Set("X-RateLimit-Remaining", fmt.Sprint(40-s.served))
	resp.Header.Set("X-RateLimit-Reset", "3600")
	return resp, nil
}

// What a server states is spent by all processes together, in a real Redis: none sends
// what another one has spent meanwhile.
func TestStatedLimitsAreSharedWithoutABudget(t *testing.T) {
	s, server := startServer(t), new(stating)
	var ts []*throttle.Transport
	for range 4 {
		tr, err := throttle.New(server, throttle.Config{
			Store: s.store(t), MaxWait: time.Second, Fleet: throttle.FleetConfig{WhenDown: throttle.FailClosed, Deadline: patience},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		ts = append(ts, tr)
	}
	turnedAway := 0
	for i := 0; i < 60 && turnedAway < len(ts); i++ {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "https://api.example/items", nil)
		resp, err := ts[i%len(ts)].RoundTrip(r)
		var e *throttle.Error
		switch {
		case errors.As(err, &e) && e.Reason == throttle.WaitTooLong:
			turnedAway++
			continue
		case err != nil:
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if server.served < 36 || server.refused > 0 || turnedAway == 0 {
		t.Errorf("%d served of 40, %d refused by the server, %d turned away", server.served, server.refused, turnedAway)
	}
}
