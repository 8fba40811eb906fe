package redisstore

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle"
)

// narrow serves most requests at a time, and says of more that they are too many.
type narrow struct {
	mu                          sync.Mutex
	most, busy, served, refused int
}

func (s *narrow) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy == s.most {
		s.refused++
		resp.StatusCode, resp.ContentLength = 429, -1
		resp.Header.Set("Content-Type", "application/json")
		resp.Body = io.NopCloser(strings.NewReader(`{"error":{"code":"too_many_concurrent_requests"}}`))
		return resp, nil
	}
	s.busy++
	s.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
	s.mu.Lock()
	s.busy--
	s.served++
	return resp, nil
}

// Eight processes learn together that a host serves three requests at a time, though none has
// more than two under way.
func TestProcessesLearnRequestsAtATime(t *testing.T) {
	s, b := startServer(t), &narrow{most: 3}
	const processes, requests = 8, 500
	var all sync.WaitGroup
	var trs []*throttle.Transport
	var left atomic.Int64
	left.Store(requests)
	for range processes {
		c := throttle.Config{Store: s.store(t), Fleet: throttle.FleetConfig{Members: processes, Deadline: time.Second}, MaxWait: time.Hour}
		tr, err := throttle.New(b, c)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		trs = append(trs, tr)
		for range 2 {
			all.Go(func() {
				for left.Add(-1) >= 0 {
					for status := 0; status != 200; {
						r, _ := http.NewRequest("GET", "https://api.example/items", nil)
						resp, err := tr.RoundTrip(r)
						if err != nil {
							t.Error(err)
							return
						}
						resp.Body.Close()
						status = resp.StatusCode
					}
				}
			})
		}
	}
	all.Wait()
	know := 0
	for _, tr := range trs {
		for _, l := range tr.Stats().Hosts[0].Learned {
			if l.Kind == throttle.LearnedConcurrency && l.Limit >= 3 && l.Limit <= 5 { // or more, where that is tried
				know++
			}
		}
	}
	if b.served != requests || b.refused > b.served/4 || know <= processes/2 {
		t.Errorf("%d were served, %d refused, %d processes know how many may be under way", b.served, b.refused, know)
	}
}
