package throttle_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
)

// What is under way while learning is switched off or on is given back, and counts only once: else a
// host that was known to bear a few at a time would get fewer ever after, or more.
func TestLearningIsSwitchedWhileRequestsAreUnderWay(t *testing.T) {
	for _, off := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			serve, hold := holding(10 * time.Second)
			tr := newTransport(t, serve, throttle.Config{})
			findParts(t, tr, 10*time.Second)
			set := func(off bool) {
				if err := tr.SetHost("h", throttle.HostConfig{DisableLearning: off}); err != nil {
					t.Fatal(err)
				}
			}
			var wg sync.WaitGroup
			for i := range 5 {
				time.Sleep(time.Minute)
				set(!off)
				release := hold()
				for base := range 4 {
					wg.Go(func() { mustGet(t, tr, fmt.Sprintf("http://h/v0/app%d/s%d", base, i)) })
				}
				wg.Go(func() { mustGet(t, tr, "http://h/other/a") })
				synctest.Wait()
				set(off)
				release()
				wg.Wait()
			}
			set(false)
			noneUnderWay(t, tr, fmt.Sprintf("off %t", off))
			time.Sleep(time.Minute)
			release := hold()
			wg.Go(func() { mustGet(t, tr, "http://h/v0/app0/z") })
			synctest.Wait()
			if _, places, evidence := throttle.PartsUnderWay(tr, "h"); places != 1 || evidence != 1 {
				t.Errorf("off %t: %d requests to parts are under way, and %d by the evidence, want 1", off, places, evidence)
			}
			release()
			wg.Wait()
			if all := throttle.EvidenceUnderWay(tr, "h"); all != 0 {
				t.Errorf("off %t: %d requests are under way by the evidence, want none", off, all)
			}
		})
	}
}

// What was found by refusals, of all requests or of a part of a kind, holds nobody up while learning is
// switched off, and is not shown. Afterwards it counts again.
func TestWhatWasFoundDoesNotCountWhileLearningIsOff(t *testing.T) {
	for name, find := range map[string]func(t *testing.T, tr *throttle.Transport){
		"parts": func(t *testing.T, tr *throttle.Transport) { findParts(t, tr, 10*time.Second) },
		"all": func(t *testing.T, tr *throttle.Transport) {
			for i := range 40 {
				mustGet(t, tr, fmt.Sprintf("http://h/v0/app0/%d", i))
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := newTransport(t, oneEach(10*time.Second), throttle.Config{})
			find(t, tr)
			took := func(path string) time.Duration {
				start := time.Now()
				mustGet(t, tr, "http://h/v0/app0/"+path)
				return time.Since(start)
			}
			took("a")
			if d := took("b"); d < 9*time.Second {
				t.Fatalf("%s: the second call of a row took %v, want 10s, as that was found", name, d)
			}
			if err := tr.SetHost("h", throttle.HostConfig{DisableLearning: true}); err != nil {
				t.Fatal(err)
			}
			if d := took("c"); d > time.Second {
				t.Errorf("%s: a call took %v, want it sent at once", name, d)
			}
			for _, l := range statsOf(t, tr).Learned {
				if l.Kind == throttle.LearnedRate {
					t.Errorf("%s: %q is shown", name, l.Why)
				}
			}
			time.Sleep(time.Minute)
			if err := tr.SetHost("h", throttle.HostConfig{}); err != nil {
				t.Fatal(err)
			}
			took("d")
			if d := took("e"); d < 9*time.Second {
				t.Errorf("%s: the second call of a row took %v, want 10s again", name, d)
			}
		})
	}
}
