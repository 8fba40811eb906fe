package throttle_test

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// TestWaitersHaveSmallStacks: a goroutine that waits has a stack of 4 kB, as those that
// are larger double. Some have had a larger one before they came here.
func TestWaitersHaveSmallStacks(t *testing.T) {
	const callers = 5000
	synctest.Test(t, func(t *testing.T) {
		l := limiterOf(t, throttle.LimiterConfig{MaxWait: 1000 * time.Hour, MaxQueue: callers, Default: throttle.MustParseBudget("1/m bucket 1")})
		ctx, cancel := context.WithCancel(t.Context())
		l.Take(ctx, "k", nil)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range callers {
			go l.Take(ctx, "k", nil)
		}
		synctest.Wait()
		runtime.ReadMemStats(&after)
		most := uint64(5 << 10) // 4 kB and what chance adds
		if testnet.Race {
			most = 9 << 10
		}
		if n := (after.StackInuse - before.StackInuse) / callers; n > most {
			t.Errorf("a waiter has %d bytes of stack, want at most %d", n, most)
		}
		cancel()
	})
}

// player is a Limiter under a schedule, and what came of that.
type player struct {
	l      *throttle.Limiter
	full   bool // its keys are never small
	grants []throttle.Grant
	begin  time.Time
	ctx    context.Context
	mu     sync.Mutex
	waits  map[int]string // by step: what came of a call that may wait
}

var playedKeys = []string{"a", "b", "c"}

func (p *player) grant(g throttle.Grant, err error) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.grants = append(p.grants, g); err != nil {
		return err.Error()
	}
	return "granted"
}

// play makes one step and returns what can be seen of it at once.
func (p *player) play(i int, s step) string {
	key, cost := playedKeys[s.which%len(playedKeys)], throttle.Cost{"requests": s.cost % 5}
	if p.l.Look(key, nil); p.full {
		enlarge(p.l, key)
	}
	wait := func(call func(ctx context.Context) string) string {
		go func() {
			ctx, cancel := context.WithTimeout(p.ctx, time.Duration(s.which)*time.Second/4+time.Millisecond)
			defer cancel()
			got := call(ctx)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.waits[i] = fmt.Sprint(got, " at ", time.Since(p.begin))
		}()
		return ""
	}
	last := len(p.grants) - 1 - s.which%4
	switch s.op {
	case 0, 1:
		return wait(func(ctx context.Context) string { return p.grant(p.l.Take(ctx, key, cost)) })
	case 2:
		g, d := p.l.TryTake(key, nil)
		return fmt.Sprint(p.grant(g, nil), d)
	case 3:
		return fmt.Sprint(p.l.Look(key, cost), p.l.Try(key, cost))
	case 4:
		return wait(func(ctx context.Context) string {
			n, err := p.l.TakeUpTo(ctx, key, "requests", s.cost)
			return fmt.Sprint(n, err)
		})
	case 5:
		if last >= 0 {
			p.grants[last].Cancel()
		}
	case 6:
		if last >= 0 {
			p.grants[last].Settle(cost)
		}
	case 7:
		return wait(func(ctx context.Context) string { return p.grant(p.l.TakeAll(ctx, []string{key, "a"}, cost)) })
	case 8:
		p.l.Pause(key, time.Now().Add(time.Duration(s.cost%7-2)*time.Second/8))
	case 9:
		switch s.which % 3 {
		case 0:
			p.l.SetBudget(key, throttle.Budget{Rates: []throttle.Rate{{Limit: int(s.cost), Per: time.Second << (s.cost % 3), Bucket: int(s.cost % 2)}}})
		case 1:
			p.l.Refill(key, cost)
		default:
			p.l.Try(key, throttle.Cost{"requests": -1})
		}
	}
	return ""
}

// stats is what Stats says, in words.
func (p *player) stats() string {
	s := p.l.Stats().Keys
	slices.SortFunc(s, func(a, b throttle.HostStats) int { return strings.Compare(a.Host, b.Host) })
	return fmt.Sprintf("%+v", s)
}

// A key that is small decides as one that is not, whatever happens to it: of two
// Limiters that see the same, one of which has no small keys, nobody can tell which
// that is.
func TestSmallKeysDecideAsOthersDo(t *testing.T) {
	small, grown := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		r := genRate(rt, 5)
		steps := rapid.SliceOfN(genStep(), 1, 40).Draw(rt, "steps")
		calls := rapid.SampledFrom([][]int{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {2, 3, 5, 6}, {0, 2, 4, 5}}).Draw(rt, "calls")
		bubble(t, rt, func(fail func(string, ...any)) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var both [2]*player
			for i := range both {
				l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.Budget{Rates: []throttle.Rate{r}}})
				if err != nil {
					fail("%v", err)
					return
				}
				both[i] = &player{l: l, full: i == 1, begin: time.Now(), ctx: ctx, waits: make(map[int]string)}
			}
			for i, s := range steps {
				time.Sleep(s.sleep/tick*tick + 1017) // never when something granted by another step is due
				synctest.Wait()
				s.op = calls[s.op%len(calls)]
				var got [2]string
				for k, p := range both {
					got[k] = p.play(i, s)
					synctest.Wait()
					got[k] += p.stats()
				}
				if got[0] != got[1] {
					fail("%v, step %d, %+v:\nsmall %s\nfull  %s", r, i, s, got[0], got[1])
					break
				}
			}
			for _, key := range playedKeys {
				switch {
				case isSmall(both[0].l, key):
					small++
				case isKept(both[0].l, key):
					grown++
				}
			}
			time.Sleep(time.Minute) // which ends all waits
			synctest.Wait()
			if !reflect.DeepEqual(both[0].waits, both[1].waits) {
				fail("%v: waits\nsmall %v\nfull  %v", r, both[0].waits, both[1].waits)
			}
		})
	})
	if small == 0 || grown == 0 {
		t.Errorf("%d keys were small in the end, %d were not: want both", small, grown)
	}
}

// A key takes what it has spent along when it grows: 64 goroutines, of which some
// are refused just then, never get more than the limit.
func TestAKeyThatGrowsForgetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "40/m burst 40")
		for round := range 30 {
			key, other := fmt.Sprint("key", round), fmt.Sprint("other", round)
			var granted atomic.Int64
			var all sync.WaitGroup
			for i := range 64 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					var ok bool
					switch i % 8 {
					case 0:
						_, err := l.TakeAll(ctx, []string{key, other}, nil)
						ok = err == nil
					case 1:
						g, d := l.TryTake(key, nil)
						g.Cancel()
						ok = d.Allowed && l.Try(key, nil).Allowed
					case 2:
						l.Pause(key, time.Now())
						ok = l.Try(key, nil).Allowed
					case 3:
						n, _ := l.TakeUpTo(ctx, key, "requests", 1)
						ok = n == 1
					case 4:
						l.Stats()
						_, err := l.Take(ctx, key, nil)
						ok = err == nil
					default:
						ok = l.Try(key, nil).Allowed
					}
					if ok {
						granted.Add(1)
					}
				})
			}
			all.Wait()
			if n := granted.Load(); n != 40 {
				t.Fatalf("round %d: %d were let through, want 40", round, n)
			}
		}
	})
}

// A key with one plain rate is small until somebody is refused, waits or pauses it,
// and again once it was forgotten.
func TestWhatKeysAreSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOf(t, throttle.LimiterConfig{MaxKeys: 1000, Default: throttle.MustParseBudget("2/s burst 2"), Budgets: budgetsOf(map[string]string{
			"bucket": "2/s bucket 2", "two": "2/s, 100/h burst 10", "flight": "2/s, 1 in flight", "day": "2/d align UTC", "warm": "2/s warmup 4s", "free": "unlimited",
		})})
		for key, want := range map[string]bool{"k": true, "bucket": true, "two": false, "flight": false, "day": false, "warm": false, "free": false} {
			if l.Try(key, nil); isSmall(l, key) != want {
				t.Errorf("%s: small is %t, want %t", key, !want, want)
			}
		}
		for what, do := range map[string]func(key string){
			"Stats":   func(string) { l.Stats() },
			"Look":    func(key string) { l.Look(key, nil) },
			"Cancel":  func(key string) { g, _ := l.TryTake(key, nil); g.Cancel() },
			"Settle":  func(key string) { g, _ := l.TryTake(key, nil); g.Settle(throttle.Cost{"requests": 5}) },
			"a rule":  func(key string) { l.SetBudget("another", throttle.MustParseBudget("1/s")); l.Look(key, nil) },
			"no part": func(key string) { l.TakeUpTo(t.Context(), key, "bytes", 5) },
		} {
			if do(what); !isSmall(l, what) && what != "Stats" {
				t.Errorf("%s: the key is not small", what)
			}
		}
		for what, do := range map[string]func(key string){
			"refused": func(key string) { allowed(l, key, 3) },
			"waits":   func(key string) { sendsTo(t, l, key, 3) },
			"pause":   func(key string) { l.Pause(key, time.Now().Add(time.Hour)) },
			"budget":  func(key string) { l.SetBudget(key, throttle.MustParseBudget("1/s")); l.Look(key, nil) },
			"all":     func(key string) { l.TakeAll(t.Context(), []string{key, "k"}, nil) },
		} {
			l.Look(what, nil)
			if !isSmall(l, what) {
				t.Errorf("%s: the key is not small at first", what)
			}
			if do(what); isSmall(l, what) {
				t.Errorf("%s: the key is small", what)
			}
		}
		time.Sleep(time.Minute)
		for i := range 3000 {
			l.Look(fmt.Sprint(i), nil)
		}
		if l.Look("waits", nil); !isSmall(l, "waits") {
			t.Error("a key that was forgotten is not small again")
		}
	})
}

// sendsTo takes n units of a key one after the other.
func sendsTo(t *testing.T, l *throttle.Limiter, key string, n int) {
	t.Helper()
	for range n {
		if _, err := l.Take(t.Context(), key, nil); err != nil {
			t.Error(err)
		}
	}
}
