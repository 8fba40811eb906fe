package throttle

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle/internal/queue"
	"github.com/weirhttp/weir/throttle/store"
)

// An answer usually comes within its mean time and twice the mean distance from
// it; a deadline is for that, too.
func TestUsualTimeOfAnAnswer(t *testing.T) {
	if got := (&slowStart{rtt: 5 * sec, off: sec}).usual(); got != 7*sec {
		t.Errorf("got %v", got)
	}
	if got := (&slowStart{}).usual(); got != 0 {
		t.Errorf("of a fresh host: %v", got)
	}
}

// A kind without a pause is not held up, and one whose question was answered is
// asked for again.
func TestKindAsAMeter(t *testing.T) {
	l := learning1()
	k := l.kindOf(kindKey{"GET", "x"}, hourIn)
	if k.At(hourIn, 1) != hourIn {
		t.Error("a fresh kind is held up")
	}
	k.hold = &hold{since: at0(-sec), until: at0(sec), asking: true}
	if got := k.At(hourIn, 1).Until(hourIn); got != sec {
		t.Errorf("paused for %v", got)
	}
	later := hourIn.Add(sec)
	m := k.Take(later, 1, true)
	if m&markAsks == 0 || k.At(later, 1) != never {
		t.Error("more than one asks")
	}
	k.Return(later, 1, m&^markAsks, later, 0)
	if k.At(later, 1) != never {
		t.Error("another one's end is no answer to who asks")
	}
	k.Return(later, 1, m, later, 0)
	if k.At(later, 1) != later {
		t.Error("who asked is gone, and the next one may not")
	}
	l.other = newKind(l, kindKey{rest: otherRequests})
	n := 0
	l.each(func(*queue.Account) { n++ })
	if n != 2 {
		t.Errorf("%d accounts of two kinds", n)
	}
	if l.waited() {
		t.Error("nobody waits")
	}
	defer waitFor(&k.account)()
	if !l.waited() {
		t.Error("somebody waits for the first of two")
	}
}

// A pause by hand reaches the host's partitions in other processes that share
// the Store.
func TestSharedPauseOfPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Config{Default: MustParseBudget("100/s burst 100"), Partition: func(r *http.Request) string { return r.URL.Path }}
		base := testnet.Func(func(r *http.Request) (*http.Response, error) { return testnet.Answer(r, 200, nil, nil), nil })
		ts := sharedTransports(t, store.NewMemory(), c, 2, base)
		for _, tr := range ts {
			defer tr.Close()
			mustGet(t, tr, "http://h/a")
		}
		ts[0].Pause("h", time.Now().Add(time.Hour))
		time.Sleep(sec)
		var e *Error
		if _, err := get(t, police(t), ts[1], "http://h/a"); !errors.As(err, &e) || e.RetryAfter < 59*time.Minute {
			t.Errorf("got %v", err)
		}
		ts[0].Resume("h")
		time.Sleep(sec)
		if _, err := get(t, police(t), ts[1], "http://h/a"); err != nil {
			t.Error(err)
		}
	})
}
