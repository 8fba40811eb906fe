package breaker_test

import (
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/trip"
)

// shardsKept is how many shards of a host have circuits.
const shardsKept = 256

func TestEachShardHasACircuit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var saw []breaker.Change
		cs, h, rt := rig(t, breaker.Config{Shard: firstSegment, OnStateChange: func(c breaker.Change) { saw = append(saw, c) }})
		h.set(func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Path, "/bad-token/") {
				return down(r)
			}
			return status(200)(r)
		})
		for range 10 {
			get(rt, site+"bad-token/1")
			if code, err := get(rt, site+"good/1"); code != 200 {
				t.Fatal(err)
			}
		}
		if n := h.calls.Load(); n != 15 {
			t.Errorf("%d calls, want 5 bad and 10 good", n)
		}
		want(t, cs, breaker.Open, "one shard is")
		_, err := get(rt, site+"bad-token/2")
		var e *breaker.Error
		if !errors.As(err, &e) || len(e.Shard) != 8 || strings.Contains(err.Error(), "bad-token") {
			t.Errorf("%v", err)
		}
		list := cs.Stats().Circuits
		if len(list) != 1 || list[0].Shard != e.Shard || len(saw) != 1 || saw[0].Shard != e.Shard {
			t.Errorf("stats %+v, changes %+v", list, saw)
		}
		cs.Force("a.example", breaker.Open) // all of them
		if _, err := get(rt, site+"good/1"); err == nil {
			t.Error("passed")
		}
		cs.Release("a.example")
		if _, err := get(rt, site+"bad-token/1"); !errors.Is(err, errReset) {
			t.Errorf("released: %v", err)
		}
	})
}

// TestShardsAreBounded: beyond 256 shards of a host that have something to
// remember, requests pass; those that have nothing make room.
func TestShardsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Shard: firstSegment})
		h.set(down)
		for i := range 2 * shardsKept {
			for range 6 {
				get(rt, site+strconv.Itoa(i))
			}
		}
		if n := len(cs.Stats().Circuits); n != shardsKept {
			t.Errorf("%d circuits", n)
		}
		if n := h.calls.Load(); n != 5*shardsKept+6*shardsKept {
			t.Errorf("%d calls", n)
		}
		time.Sleep(2 * time.Minute)
		for range 6 {
			get(rt, site+"late")
		}
		if _, err := get(rt, site+"late"); notsent.Refused(err) != notsent.Door {
			t.Errorf("there is room now: %v", err)
		}
		if n := len(cs.Stats().Circuits); n != shardsKept {
			t.Errorf("%d circuits", n)
		}
	})
}

// TestShardDroppedMeanwhile: an attempt of an earlier circuit of its shard
// does not count for the next.
func TestShardDroppedMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Shard: firstSegment, Consecutive: 1, Probes: 1})
		gate := make(chan bool)
		h.set(func(r *http.Request) (*http.Response, error) { <-gate; return down(r) })
		go get(rt, site+"x")
		synctest.Wait()
		h.set(down)
		get(rt, site+"x")
		due(t, cs)
		h.set(status(200))
		get(rt, site+"x")
		want(t, cs, breaker.Closed, "one good probe")
		h.set(down)
		time.Sleep(time.Hour)
		for i := range shardsKept { // pushes x out
			get(rt, site+strconv.Itoa(i))
		}
		for _, c := range cs.Stats().Circuits {
			if c.Trips == 0 {
				t.Fatal("x is still there")
			}
		}
		time.Sleep(time.Hour)
		before := len(cs.Stats().Circuits)
		close(gate)
		synctest.Wait()
		for _, c := range cs.Stats().Circuits {
			if c.State == breaker.Open && c.Since.Equal(time.Now()) {
				t.Errorf("opened by an attempt of an earlier circuit: %+v, %d", c, before)
			}
		}
	})
}

// TestShardNamesAreSecret: what shows of a shard's name depends on a secret that
// each Circuits has for itself.
func TestShardNamesAreSecret(t *testing.T) {
	var shown []string
	for range 2 {
		cs, h, rt := rig(t, breaker.Config{Shard: firstSegment})
		h.set(down)
		for _, shard := range []string{"x", "y"} {
			get(rt, site+shard)
			for _, c := range cs.Stats().Circuits {
				if !slices.Contains(shown, c.Shard) {
					shown = append(shown, c.Shard)
				}
				if text, err := hex.DecodeString(c.Shard); err != nil || len(text) != 4 {
					t.Errorf("a shard shows as %q", c.Shard)
				}
			}
		}
	}
	if len(shown) != 4 {
		t.Errorf("two shards of two Circuits show as %v", shown)
	}
}

// Shards are told apart where they show.
func TestShardsShowApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cs := circuits(t, breaker.Config{Shard: func(r *http.Request) string { return r.URL.Path }})
		rt := cs.Meter(&host{answer: down})
		for range 5 {
			get(rt, site+"a")
			get(rt, site+"b")
		}
		list := cs.Stats().Circuits
		if len(list) != 2 || list[0].Shard == list[1].Shard || len(list[0].Shard) != 8 {
			t.Errorf("stats %+v, want two circuits with names of their own", list)
		}
	})
}

// TestRetriesOnlyLetsFirstAttemptsPass: first attempts pass and probe; retries and hedges do not.
func TestRetriesOnlyLetsFirstAttemptsPass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs := circuits(t, breaker.Config{RetriesOnly: true})
		h := &host{answer: down}
		m := cs.Meter(h)
		table := trip.Below(m).Hosts
		attempt := func(number int, hedge bool) error {
			r, tr, _ := trip.Begin(httptest.NewRequest("GET", site, nil), trip.Retry, table)
			defer tr.End(nil)
			tr.Number, tr.Hedge = int32(number), hedge
			_, err := m.RoundTrip(r)
			return err
		}
		for range 5 {
			attempt(1, false)
		}
		want(t, cs, breaker.Open, "five failures")
		for range 10 {
			if err := attempt(1, false); !errors.Is(err, errReset) {
				t.Fatalf("a first attempt: %v", err)
			}
			if err := attempt(2, false); notsent.Refused(err) != notsent.Meter {
				t.Fatalf("a retry: %v", err)
			}
			if err := attempt(1, true); notsent.Refused(err) != notsent.Meter {
				t.Fatalf("a hedge: %v", err)
			}
		}
		if _, err := get(cs.Door(m), site); !errors.Is(err, errReset) {
			t.Errorf("at the Door: %v", err)
		}
		r, tr, _ := trip.Begin(httptest.NewRequest("GET", site, nil), trip.Retry, table)
		defer tr.End(nil)
		if _, err := trip.Outlook(m, r); notsent.Refused(err) != notsent.Meter {
			t.Errorf("outlook of a retry: %v", err)
		}
		due(t, cs)
		h.set(status(200))
		if err := attempt(2, false); notsent.Refused(err) != notsent.Meter {
			t.Errorf("a retry is no probe: %v", err)
		}
		for range 3 {
			attempt(1, false)
		}
		want(t, cs, breaker.Closed, "three good first attempts")
		if err := attempt(2, false); err != nil {
			t.Errorf("a retry: %v", err)
		}
		for range 5 {
			h.set(down)
			attempt(1, false)
		}
		due(t, cs)
		hung := make(chan bool)
		h.set(func(r *http.Request) (*http.Response, error) { <-hung; return status(200)(r) })
		go attempt(1, false)
		synctest.Wait()
		for _, a := range []answer{down, status(200), status(200), status(200)} {
			h.set(a)
			attempt(1, false)
			want(t, cs, breaker.HalfOpen, "only the probe counts")
		}
		close(hung)
	})
}
