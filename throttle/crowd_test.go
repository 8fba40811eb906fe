package throttle

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
)

// TestCrowdOfHosts: routes, pools, partitions, more hosts than are kept, and
// budgets that change meanwhile. The log is the server's, by account.
func TestCrowdOfHosts(t *testing.T) {
	waits, refusals := 0, 0
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			w, r := hosts64(t, seed)
			waits, refusals = waits+w, refusals+r
		})
	}
	if waits < 100 || refusals < 20 {
		t.Errorf("%d waits, %d refusals, want many: the test has no teeth", waits, refusals)
	}
}

// book is the server's log.
type book struct {
	mu    sync.Mutex
	rnd   *rand.Rand
	start time.Time
	log   map[string][]arrived
}

// count notes r under the accounts it draws on.
func (b *book) count(r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	part := r.Header.Get("Key")
	accounts := []string{"host " + r.URL.Host + part}
	if r.URL.Host == "p" || r.URL.Host == "q" {
		accounts = []string{"pool " + part}
	}
	if r.Method == "POST" && r.URL.Path == "/slow" {
		accounts = append(accounts, "slow "+r.URL.Host+part)
	}
	for _, name := range accounts {
		b.log[name] = append(b.log[name], arrived{time.Since(b.start), 1})
	}
}

// RoundTrip answers a little later, and counts at some time in between.
func (b *book) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	before, after, refuse := b.rnd.IntN(30), b.rnd.IntN(200), b.rnd.IntN(12) == 0
	b.mu.Unlock()
	if refuse {
		return nil, meterRefusal{errors.New("open")}
	}
	time.Sleep(time.Duration(before) * time.Millisecond)
	b.count(r)
	time.Sleep(time.Duration(after) * time.Millisecond)
	return testnet.Answer(r, 200, nil, testnet.NewBody("x")), nil
}

func hosts64(t *testing.T, seed uint64) (waits, refusals int) {
	b := &book{rnd: rand.New(rand.NewPCG(seed, 1)), start: time.Now(), log: make(map[string][]arrived)}
	var mu sync.Mutex
	tr := newTransport(t, metered{b}, Config{
		MaxKeys: 6, MaxWait: 4 * time.Second, DisableLearning: true,
		Budgets: map[string]Budget{
			"*.x":         MustParseBudget("9/2s burst 3"),
			"p":           MustParseBudget("70/3s, pool both"),
			"q":           MustParseBudget("70/3s, pool both"),
			"POST */slow": MustParseBudget("4/s burst 4"),
		},
		Partition: func(r *http.Request) string { return r.Header.Get("Key") },
		OnWait: func(w Wait) {
			mu.Lock()
			defer mu.Unlock()
			if !w.Over {
				waits++
			}
		},
	})
	var wg sync.WaitGroup
	for i := range uint64(64) {
		rnd := rand.New(rand.NewPCG(seed, i))
		wg.Go(func() {
			for range 15 {
				time.Sleep(time.Duration(rnd.IntN(800)) * time.Millisecond)
				err := wander(t, tr, rnd)
				var e *Error
				switch {
				case errors.As(err, &e):
					mu.Lock()
					refusals++
					mu.Unlock()
				case err != nil && notsent.Refused(err) != notsent.Meter:
					t.Error(err)
				}
			}
		})
	}
	time.Sleep(4 * time.Second)
	if err := tr.SetBudget("*.x", MustParseBudget("5/2s burst 5")); err != nil {
		t.Error(err)
	}
	changed := time.Since(b.start)
	wg.Wait()
	b.judge(t, changed)
	return waits, refusals
}

// wander makes one request somewhere.
func wander(t *testing.T, tr *Transport, rnd *rand.Rand) error {
	host := []string{"p", "q", "h" + strconv.Itoa(rnd.IntN(10)) + ".x"}[rnd.IntN(3)]
	r, err := http.NewRequestWithContext(t.Context(), []string{"GET", "POST"}[rnd.IntN(2)], "http://"+host+[]string{"/", "/slow"}[rnd.IntN(2)], nil)
	if err != nil {
		return err
	}
	if n := rnd.IntN(4); n > 0 {
		r.Header.Set("Key", "k"+strconv.Itoa(n))
	}
	resp, err := tr.RoundTrip(r)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// judge looks at every account's log: windows that began before the budget
// changed may be as full as the older one allowed.
func (b *book) judge(t *testing.T, changed time.Duration) {
	for name, log := range b.log {
		switch name[:4] {
		case "pool":
			judge(t.Errorf, MustParseBudget("70/3s").Rates[0], log)
		case "slow":
			judge(t.Errorf, MustParseBudget("4/s").Rates[0], log)
		case "host":
			judge(t.Errorf, MustParseBudget("9/2s").Rates[0], log)
			var late []arrived
			for _, a := range log {
				if a.at > changed+300*time.Millisecond {
					late = append(late, a)
				}
			}
			judge(t.Errorf, MustParseBudget("5/2s").Rates[0], late)
		}
	}
}
