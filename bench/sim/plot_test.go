package sim

import (
	"context"
	"testing"
	"time"
)

// A plot is what one server saw of one strategy over time, bin by bin.
type plot struct {
	Name, Strategy    string
	PerBin            float64 // seconds
	Accepted, Refused []int
	Quota             []float64 // what the server allows, per second
	Own               []float64 // what the client allows itself, per second; zero: no limit. Nil: it has none
}

// A view is a situation to plot: jobs without end, for as long as it lasts.
type view struct {
	name       string
	d          dialect
	bin, lasts time.Duration
	quota      func() quota
	change     []change
	strategies []strategy
}

type change struct {
	after time.Duration
	rate  float64
}

func views() []view {
	w, naive := weirWith(patient()), naiveRetry(0, 0, time.Second)
	all := append([]strategy{w, naive, adaptiveRetry()}, libraries(stubborn())...)
	reads := append([]strategy{w}, libraries(stubborn())...)
	fifty := func() quota { return newBucket(50, 50) }
	return []view{
		{"bucket of 50 per second, silent", silent, 250 * time.Millisecond, 30 * time.Second, fifty, nil, all},
		{"bucket of 50 per second, IETF headers", ietf, 250 * time.Millisecond, 30 * time.Second, fifty, nil, reads},
		{"window of 100 per 10 s, Retry-After", retryAfter, 2 * time.Second, time.Minute,
			func() quota { return &fixed{n: 100, per: 10 * time.Second, phase: 3 * time.Second} }, nil, reads},
		{"bucket of 50, then 25, then 100 per second, silent", silent, 2 * time.Second, 4 * time.Minute, fifty,
			[]change{{time.Minute, 25}, {2 * time.Minute, 100}}, all},
	}
}

// plots looks at each view once per strategy.
func plots(t *testing.T) (all []plot) {
	for _, v := range views() {
		for _, st := range v.strategies {
			virtual(t, func(t *testing.T) { all = append(all, v.watch(t, st)) })
		}
	}
	return all
}

func (v view) watch(t *testing.T, st strategy) plot {
	s := newServer(1, v.quota(), v.d)
	s.keep = true
	for _, x := range v.change {
		s.change(s.quota.(*bucket), x.after, x.rate)
	}
	c := st.make(s, 1)
	ctx, cancel := context.WithTimeout(t.Context(), v.lasts)
	defer cancel()
	p := plot{Name: v.name, Strategy: st.name, PerBin: v.bin.Seconds()}
	done := make(chan bool)
	go func() {
		defer close(done)
		for at := time.Duration(0); at < v.lasts; at += v.bin {
			time.Sleep(v.bin)
			s.mu.Lock()
			n, per := s.quota.stated()
			s.mu.Unlock()
			p.Quota = append(p.Quota, float64(n)/per.Seconds())
			if own, ok := ownRate(c); ok {
				p.Own = append(p.Own, own)
			}
		}
	}()
	jobs(ctx, c, 1<<30, 64)
	<-done
	p.Accepted, p.Refused = make([]int, len(p.Quota)), make([]int, len(p.Quota))
	for _, m := range s.log {
		if i := int(m.at / v.bin); i >= len(p.Quota) {
			break
		} else if m.ok {
			p.Accepted[i]++
		} else {
			p.Refused[i]++
		}
	}
	return p
}

// own is the rate that weir has found, per second.
func (c *weirClient) own() (rate float64) {
	for _, h := range c.t.Stats().Throttle.Hosts {
		for _, l := range h.Learned {
			if r := l.Limit / l.Per.Seconds(); l.Per > 0 && l.Unit == "requests" && (rate == 0 || r < rate) {
				rate = r
			}
		}
	}
	return rate
}

// ownRate is the rate that a client has found, if it is one that looks for it.
func ownRate(c client) (float64, bool) {
	switch c := c.(type) {
	case *weirClient:
		return c.own(), true
	case *libraryClient:
		if c.rate != nil {
			return c.rate(), true
		}
	}
	return 0, false
}
