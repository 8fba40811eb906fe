package throttle_test

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// A busyMachine runs a server with a token bucket of 50 a second and 10 beside
// the client. Now and then it stands still, and everything with it.
type busyMachine struct {
	bucket policed
	start  time.Time
	stalls [][2]time.Duration // from, to; in order

}

func newBusyMachine(seed uint64) *busyMachine {
	m := &busyMachine{bucket: policed{rate: 50, size: 10}, start: time.Now()}
	r := rand.New(rand.NewPCG(seed, 77))
	for at := time.Duration(0); at < 5*time.Minute; {
		at += time.Duration(r.ExpFloat64() * float64(100*time.Millisecond))
		stall := time.Duration(r.Float64() * float64(300*time.Millisecond))
		m.stalls = append(m.stalls, [2]time.Duration{at, at + stall})
		at += stall
	}
	return m
}

// run returns when the machine runs.
func (m *busyMachine) run() {
	now := time.Since(m.start)
	for _, s := range m.stalls {
		if s[0] <= now && now < s[1] {
			time.Sleep(s[1] - now)
			return
		}
	}
}

func (m *busyMachine) RoundTrip(r *http.Request) (*http.Response, error) {
	m.run()
	time.Sleep(time.Millisecond)
	m.run()
	status := m.bucket.decide()
	time.Sleep(time.Millisecond)
	m.run()
	h := http.Header{}
	if status == http.StatusTooManyRequests {
		h.Set("Retry-After", "1")
	}
	return testnet.Answer(r, status, h, http.NoBody), nil
}

// On a busy machine a bucket that was told is refused now and then, because
// requests bunch. Each time costs the second that the server asks for; what is
// learned from it must not cost more.
func TestBusyMachineIsNotTakenForASlowServer(t *testing.T) {
	const calls, seeds = 300, 8
	took, refused := time.Duration(0), 0
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			m := newBusyMachine(seed)
			tr := newTransport(t, m, throttle.Config{Default: throttle.MustParseBudget("50/s bucket 10")})
			if failed := swarm(tr, calls, "http://a/"); failed > 0 {
				t.Errorf("%d failed", failed)
			}
			took, refused = took+time.Since(m.start), refused+m.bucket.refused
		})
	}
	const ideal = seeds * (calls - 10) * time.Second / 50
	t.Logf("%.2f times the ideal, %d refusals", float64(took)/float64(ideal), refused)
	if refused == 0 || took > ideal*3 {
		t.Errorf("took %v with %d refusals, want some and at most 3 times %v", took, refused, ideal)
	}
}
