package throttle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/learn"
	"github.com/weirhttp/weir/throttle/internal/queue"
	"github.com/weirhttp/weir/throttle/internal/stated"
)

// What tests inside the package have in common, of which those of throttle_test have
// their own in surface_test.go.
const sec = time.Second

var (
	newBase = testnet.NewStub
	mustGet = testnet.MustGet
)

func newTransport(t testing.TB, b http.RoundTripper, c Config) *Transport {
	t.Helper()
	tr, err := New(b, c)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// waiting is how many requests wait in tr, in all domains, each of which is as it
// should be when its lock is free.
func waiting(t testing.TB, tr *Transport) (n int) {
	t.Helper()
	seen := make(map[*queue.Domain]bool)
	tr.each(func(r *record) {
		e := r.lock()
		defer e.Unlock()
		if seen[e] {
			return
		}
		seen[e] = true
		if n += int(e.Waiting); e.Check() != nil {
			t.Error(r.key, e.Check())
		}
	})
	return n
}

// homeOf is the record of a host that is known.
func homeOf(tr *Transport, host string) *record {
	entry := tr.hosts.Acquire(host, time.Time{})
	defer entry.Release()
	return tr.of(entry, host)
}

// waitFor lets somebody wait for a, until left is called.
func waitFor(a *queue.Account) (leave func()) {
	paused := a.Paused
	defer func() { a.Paused = paused }()
	return crowdAt(a)()
}

// crowdAt is a domain in which any number wait for a, which is paused for ever: each call
// lets one more, until what it returns is called.
func crowdAt(a *queue.Account) (join func() (leave func())) {
	all, g := queue.NewDomains(), new(queue.Group)
	d := all.Shared
	g.Gate = all.NewGate()
	return func() func() {
		a.Paused = never
		p := &queue.Patience{Ctx: context.Background(), Most: time.Hour, Queue: 1 << 20}
		d.Lock()
		defer d.Unlock()
		w, _, _ := d.Queue(d.Now(), &queue.Request{Group: g}, []queue.Need{{Account: a, N: 1}}, p)
		return func() {
			d.Lock()
			defer d.Unlock()
			d.Abandon(d.Now(), w)
		}
	}
}

// quiet returns what is wrong with l, if nothing happens and so many wait.
func quiet(l *Limiter, waiting int) error {
	var err error
	wait, joint := 0, 0
	domains := make(map[*queue.Domain]bool)
	l.keys.All(func(entry *table.Entry[kept]) {
		s := entry.Value.subject.Load()
		if s == nil {
			return
		}
		e := s.lock()
		defer e.Unlock()
		if joint += len(s.joint); !domains[e] {
			domains[e], wait, err = true, wait+int(e.Waiting), errors.Join(err, e.Check())
		}
	})
	if wait != waiting || waiting == 0 && joint != 0 {
		return fmt.Errorf("%d wait, %d groups for several keys, want %d", wait, joint, waiting)
	}
	return err
}

// isSmall reports whether a key is kept and small.
func isSmall(l *Limiter, key string) bool {
	entry := l.keys.Find(key)
	if entry == nil {
		return false
	}
	defer entry.Release()
	return entry.Value.subject.Load() == nil
}

// enlarge sees to it that a key is not small.
func enlarge(l *Limiter, key string) {
	e, _ := l.lock(key)
	e.Unlock()
}

// isKept reports whether a key is kept.
func isKept(l *Limiter, key string) bool { return l.keys.Seen(key) != nil }

// at0 is an instant of pure tests.
func at0(d time.Duration) instant { return instant(time.Hour + d) }

// pausedUntil is a pause that began a second before and is over then.
func pausedUntil(until instant) *cooldown.Cooldown {
	c := new(cooldown.Cooldown)
	c.Recall(until.Add(-sec), until, time.Hour, "")
	return c
}

// askedUntil is that, and a request asks whether it is over.
func askedUntil(until instant) *cooldown.Cooldown {
	c := pausedUntil(until)
	c.Start(until)
	return c
}

func stating(left, size float64, reset time.Duration, m headers.ResetMeans) headers.Limit {
	return headers.Limit{Quota: known(size), Remaining: known(left), Reset: known(reset), ResetMeans: m, Source: "x"}
}

func known[T any](v T) headers.Opt[T] { return headers.Opt[T]{Value: v, Known: true} }

// learning1 is a learner of one credential at one host, without a server.
func learning1() *learner {
	s := &scope{}
	t := &learnTerms{Terms: stated.Terms{MaxPause: 5 * time.Minute}, words: newLearnWords(), jitter: func() float64 { return 0 }}
	return newLearner(t, s, newHostStart(t.words))
}

const hourIn = instant(time.Hour)

// believing is evidence of one limit, as of hourIn; without a burst it may be one of
// windows. It was found ten seconds ago.
func believing(units float64, per time.Duration, burst float64) *evidence {
	e := new(evidence)
	e.last = hourIn
	e.Recall(hourIn-instant(10*time.Second), learn.Limit{Units: units, Per: per, Burst: burst})
	return e
}
