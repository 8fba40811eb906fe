package outbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/inspect"
	"github.com/weirhttp/weir/internal/testnet"
)

// enqueue keeps one request to url with body for each of bodies.
func enqueue(t *testing.T, o *Transport, url string, bodies ...string) (ids []string) {
	t.Helper()
	for _, b := range bodies {
		id, err := o.Enqueue(must(http.NewRequest("POST", url, strings.NewReader(b))))
		if err != nil {
			t.Error(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// world is a base of many servers: by host, how long each takes (for ever, if
// negative), or that it refuses connections.
type world struct {
	takes map[string]time.Duration
	dead  map[string]bool

	mu    sync.Mutex
	got   map[string][]string  // bodies by host
	last  map[string]time.Time // of these
	now   int                  // requests under way
	most  int                  // of these at a time
	hosts map[string]int       // under way, by host
	clash bool                 // two at a time at one host
}

func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Host
	body := new(strings.Builder)
	if r.Body != nil {
		defer r.Body.Close()
		p := make([]byte, 100)
		n, _ := r.Body.Read(p)
		body.Write(p[:n])
	}
	d, dead := w.enter(host)
	defer w.leave(host)
	if dead {
		return nil, errDown
	}
	if d < 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if err := testnet.Wait(r.Context(), d); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got[host] = append(w.got[host], body.String())
	w.last[host] = time.Now()
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

func (w *world) set(host string, takes time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.takes[host] = takes
}

func (w *world) enter(host string) (takes time.Duration, dead bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now++
	w.most = max(w.most, w.now)
	w.hosts[host]++
	w.clash = w.clash || w.hosts[host] > 1
	return w.takes[host], w.dead[host]
}

func (w *world) leave(host string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now--
	w.hosts[host]--
}

func newWorld() *world {
	return &world{
		takes: map[string]time.Duration{}, dead: map[string]bool{},
		got: map[string][]string{}, last: map[string]time.Time{}, hosts: map[string]int{},
	}
}

// Twelve hosts, of which one hangs, one is dead and two take 3 s: each of the
// others gets all of its 90 events in little more than the time it would need
// alone.
func TestHostsSideBySide(t *testing.T) {
	const each, events = 100 * time.Millisecond, 90
	for _, how := range []string{"Drain", "Run"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			o := box(t, w, Config{Patterns: []string{}, Timeout: time.Hour})
			var want []string
			for i := range events {
				want = append(want, fmt.Sprint(i))
			}
			var wg sync.WaitGroup
			for h := range 12 { // together, to share syncs
				wg.Go(func() { enqueue(t, o, fmt.Sprintf("http://h%d/", h), want...) })
			}
			wg.Wait()
			for h := range 12 {
				w.takes[fmt.Sprintf("h%d", h)] = each
			}
			w.takes["h0"], w.dead["h1"] = -1, true
			w.takes["h2"], w.takes["h3"] = 3*time.Second, 3*time.Second
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			if how == "Drain" {
				if n, err := o.Drain(ctx); n != 10*events || err != context.DeadlineExceeded {
					t.Errorf("Drain = %d, %v", n, err)
				}
			} else if err := o.Run(ctx, time.Second); err != context.DeadlineExceeded {
				t.Error(err)
			}
			for h := 2; h < 12; h++ {
				host, alone := fmt.Sprintf("h%d", h), events*w.takes[fmt.Sprintf("h%d", h)]
				if took := w.last[host].Sub(start); took > alone*6/5 {
					t.Errorf("%s: %s took %v, alone %v", how, host, took, alone)
				}
				if !reflect.DeepEqual(w.got[host], want) {
					t.Errorf("%s: %s got %q", how, host, w.got[host])
				}
			}
			if w.clash || w.most > 16 {
				t.Errorf("%s: up to %d at a time, two at one host: %v", how, w.most, w.clash)
			}
		})
	}
}

// However many hosts hang, those that answered when they were last tried have
// half of the places.
func TestManyHostsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		o := box(t, w, Config{Patterns: []string{}, Concurrency: 4, Timeout: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- o.Run(ctx, time.Second) }()
		for _, good := range []string{"http://a/", "http://b/"} {
			enqueue(t, o, good, "known")
		}
		synctest.Wait()
		for h := range 50 {
			host := fmt.Sprintf("hangs%d", h)
			w.set(host, -1)
			enqueue(t, o, "http://"+host, "x", "y")
		}
		synctest.Wait()
		w.set("a", time.Second)
		w.set("b", time.Second)
		start := time.Now()
		for i := range 30 {
			enqueue(t, o, "http://a/", fmt.Sprint(i))
			enqueue(t, o, "http://b/", fmt.Sprint(i))
		}
		time.Sleep(31 * time.Second)
		synctest.Wait()
		for _, host := range []string{"a", "b"} {
			if n, took := len(w.got[host]), w.last[host].Sub(start); n != 31 || took != 30*time.Second {
				t.Errorf("%s got %d in %v", host, n, took)
			}
		}
		if w.most != 4 {
			t.Errorf("%d at a time, want 4", w.most)
		}
		cancel()
		<-ended
	})
}

// One that runs serves what arrives for other queues while one hangs.
func TestRunServesArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.takes["hangs"] = -1
		o := box(t, w, Config{KeepFirst: true, Patterns: []string{"*"}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- o.Run(ctx, time.Minute) }()
		mustKeep(t, o, "http://hangs/", "x")
		synctest.Wait()
		for i := range 5 {
			start := time.Now()
			mustKeep(t, o, "http://fine/", fmt.Sprint(i))
			synctest.Wait()
			if len(w.got["fine"]) != i+1 || w.last["fine"] != start {
				t.Errorf("event %d was not sent at once: %v", i, w.got["fine"])
			}
			time.Sleep(time.Second)
		}
		cancel()
		<-ended
	})
}

// Entries of one key are in order across hosts; those of another do not wait for
// them at the same host. A key outlives a restart, and a long one is told apart.
func TestKeysAreQueues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox.db")
	long := strings.Repeat("k", 1<<16)
	c := Config{Path: path, Patterns: []string{}, Key: func(r *http.Request) string { return r.Header.Get("Customer") }}
	s := &server{status: func(_ *http.Request, body string) int {
		if body == "stuck" {
			return 503
		}
		return 200
	}}
	o := box(t, s, c)
	put := func(url, customer, body string) {
		t.Helper()
		r := must(http.NewRequest("POST", url, strings.NewReader(body)))
		r.Header.Set("Customer", customer)
		must(o.Enqueue(r))
	}
	put("http://x/", "ann", "a1")
	put("http://y/", "ann", "a2")
	put("http://x/", "ben", "stuck")
	put("http://y/", "ben", "b2")
	put("http://x/", long+"1", "l1")
	put("http://x/", long+"2", "stuck")
	put("http://x/", "", "host")
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	c.Key = nil // what was kept stays where it was
	o = box(t, s, c)
	if n, err := o.Drain(t.Context()); n != 4 || err == nil {
		t.Errorf("Drain = %d, %v", n, err)
	}
	sent := strings.Join(s.bodies(), " ")
	if strings.Index(sent, "a1") > strings.Index(sent, "a2") || strings.Contains(sent, "b2") || !strings.Contains(sent, "l1") || !strings.Contains(sent, "host") {
		t.Errorf("sent %q", sent)
	}
	var names []string
	for _, q := range o.Queues() {
		if q.Pending > 0 {
			names = append(names, q.Queue)
		}
	}
	if len(names) != 2 || names[0] != "ben" || len(names[1]) > longestName+20 {
		t.Errorf("left: %q", names)
	}
}

// The page shows the queues.
var _ inspect.Outbox = (*Transport)(nil)

// What Queues tells of a queue in trouble, one that is drained, and one with the
// dead in it.
func TestQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{status: func(r *http.Request, _ string) int {
			return map[string]int{"bad": 503, "good": 200, "gone": 410}[r.URL.Host]
		}}
		path := filepath.Join(t.TempDir(), "outbox.db")
		o := box(t, s, Config{Path: path, Patterns: []string{}})
		began := time.Now()
		enqueue(t, o, "http://bad/", "1", "2")
		enqueue(t, o, "http://good/", "1", "2", "3")
		enqueue(t, o, "http://gone/", "1")
		time.Sleep(time.Minute)
		stuck := time.Now()
		for range 3 {
			if n, err := o.Drain(t.Context()); err == nil {
				t.Errorf("Drain = %d, %v", n, err)
			}
			time.Sleep(time.Second)
		}
		want := []QueueStats{
			{Queue: "bad", Pending: 2, Oldest: began, Stuck: stuck, Tries: 3, Why: "answer 503"},
			{Queue: "gone", Dead: 1, SetAside: 1},
			{Queue: "good", Delivered: 3},
		}
		same := func(got []QueueStats) {
			t.Helper()
			if len(got) != len(want) {
				t.Fatalf("got %+v", got)
			}
			bytes := int64(0)
			for i := range got {
				bytes += got[i].Bytes
				got[i].Bytes = 0
				if !got[i].Oldest.Equal(want[i].Oldest) || !got[i].Stuck.Equal(want[i].Stuck) {
					t.Errorf("%s: oldest %v, stuck %v", got[i].Queue, got[i].Oldest, got[i].Stuck)
				}
				got[i].Oldest, got[i].Stuck = want[i].Oldest, want[i].Stuck
				if got[i] != want[i] {
					t.Errorf("got  %+v\nwant %+v", got[i], want[i])
				}
			}
			if st := o.Stats(); bytes != st.Bytes {
				t.Errorf("%d bytes in queues, %d in all", bytes, st.Bytes)
			}
		}
		same(o.Queues())
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		o = box(t, s, Config{Path: path, Patterns: []string{}})
		want = []QueueStats{{Queue: "bad", Pending: 2, Oldest: began}, {Queue: "gone", Dead: 1}}
		same(o.Queues())
	})
}

// Queues that are empty are forgotten beyond a bound; none that holds something is.
func TestQueuesAreBounded(t *testing.T) {
	w := newWorld()
	o := box(t, w, Config{Patterns: []string{}, Concurrency: 64})
	enqueue(t, o, "http://dead/", "x")
	w.dead["dead"] = true
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				if _, err := o.Enqueue(must(http.NewRequest("POST", fmt.Sprintf("http://h%d-%d/", g, i), nil))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(o.Queues()); n != 1601 {
		t.Errorf("%d queues, want 1601", n)
	}
	if n, err := o.Drain(t.Context()); n != 1600 || !errors.Is(err, errDown) {
		t.Errorf("Drain = %d, %v", n, err)
	}
	all := o.Queues()
	if all[0].Queue != "dead" || len(all) != maxIdle+1 || o.idle != maxIdle || len(o.order) != 1 {
		t.Errorf("%d queues, %d of them idle, %d in turn", len(all), o.idle, len(o.order))
	}
}

// OnStuck tells of each try in vain, OnDrained of the end of a backlog, also of
// one that New found; neither of what is delivered at the first try.
func TestStuckAndDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		var mu sync.Mutex
		var told []string
		tell := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprintf(format, args...))
		}
		began := time.Now()
		var o *Transport
		c := Config{
			Path: filepath.Join(t.TempDir(), "outbox.db"), Patterns: []string{},
			OnStuck: func(e Stuck) {
				var cause *Error
				if !errors.As(e.Err, &cause) || e.Ctx == nil || e.Entry.Queue != e.Queue {
					t.Errorf("%+v", e)
				}
				o.Stats() // no lock is held
				tell("%s stuck for %v: %d tries, %d pending: %s", e.Queue, time.Since(e.Since), e.Tries, e.Pending, cause.Err)
			},
			OnDrained: func(e Drained) {
				if e.Ctx == nil || o.Stats().Pending != 0 {
					t.Errorf("%+v", e)
				}
				tell("%s drained, behind since %v", e.Queue, e.Since.Sub(began))
			},
		}
		o = box(t, s, c)
		enqueue(t, o, "http://a/", "fine")
		mustDrain(t, o, 1)
		s.set(true)
		enqueue(t, o, "http://a/", "1", "2")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- o.Run(ctx, time.Minute) }()
		time.Sleep(90 * time.Second)
		s.set(false)
		time.Sleep(time.Minute)
		cancel()
		<-ended
		enqueue(t, o, "http://a/", "3")
		o.Close()
		time.Sleep(time.Second)
		o = box(t, s, c)
		mustDrain(t, o, 1)
		want := []string{
			"a stuck for 0s: 1 tries, 2 pending: connection refused",
			"a stuck for 1m0s: 2 tries, 2 pending: connection refused",
			"a drained, behind since 0s",
			"a drained, behind since 2m31s",
		}
		if !reflect.DeepEqual(told, want) {
			t.Errorf("told %q\nwant %q", told, want)
		}
	})
}

// A dead letter that was too old is sent when it is replayed: its age counts
// anew, also after a restart, and it goes before those behind it.
func TestReplayTheOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		c := Config{Path: filepath.Join(t.TempDir(), "outbox.db"), Patterns: []string{}, MaxAge: time.Hour}
		o := box(t, s, c)
		ids := enqueue(t, o, "http://a/", "old", "older")
		time.Sleep(2 * time.Hour)
		mustDrain(t, o, 0)
		letters, err := o.DeadLetters()
		if len(letters) != 2 || err != nil || letters[0].Reason != "older than 1h0m0s" || len(s.requests()) != 0 {
			t.Fatalf("%+v, %v", letters, err)
		}
		enqueue(t, o, "http://a/", "young")
		if err := o.Requeue(ids[0]); err != nil {
			t.Error(err)
		}
		if err := o.Discard(ids[1]); err != nil {
			t.Error(err)
		}
		o.Close()
		time.Sleep(30 * time.Minute)
		o = box(t, s, c)
		mustDrain(t, o, 2)
		if got := s.bodies(); !reflect.DeepEqual(got, []string{"old", "young"}) {
			t.Errorf("sent %q", got)
		}
	})
}

// An entry whose time is up is set aside then, not when its queue is tried next.
func TestMaxAgeInAStuckQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{down: true}
		o := box(t, s, Config{Patterns: []string{}, MaxAge: time.Hour})
		enqueue(t, o, "http://a/", "1")
		time.Sleep(10 * time.Minute)
		enqueue(t, o, "http://a/", "2")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- o.Run(ctx, 0) }()
		time.Sleep(50*time.Minute + time.Second)
		if st := o.Stats(); st.Dead != 1 || st.Pending != 1 {
			t.Errorf("after an hour: %+v", st)
		}
		time.Sleep(10 * time.Minute)
		if st := o.Stats(); st.Dead != 2 || st.Pending != 0 {
			t.Errorf("after an hour and ten minutes: %+v", st)
		}
		cancel()
		<-ended
	})
}

// A panic of the base or a hook reaches who called Drain, and the outbox goes on.
func TestPanic(t *testing.T) {
	s := &server{}
	broken := true
	o := box(t, s, Config{Patterns: []string{}, Prepare: func(*http.Request) error {
		if broken {
			panic("a bug")
		}
		return nil
	}})
	enqueue(t, o, "http://a/", "1")
	func() {
		defer func() {
			if p := recover(); p != "a bug" {
				t.Errorf("recovered %v", p)
			}
		}()
		n, err := o.Drain(t.Context())
		t.Errorf("Drain = %d, %v", n, err)
	}()
	broken = false
	mustDrain(t, o, 1)
	if len(o.flights) != 0 || o.flying != [tries]int{} || o.settling != 0 || len(o.rounds) != 0 {
		t.Errorf("%d on their way, %v, %d settling, %d rounds", len(o.flights), o.flying, o.settling, len(o.rounds))
	}
}

// Drain and Run at once share the queues: order holds, nothing is sent twice.
func TestDrainBesideRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.takes["a"], w.takes["b"] = time.Second, 2*time.Second
		o := box(t, w, Config{Patterns: []string{}})
		var want []string
		for i := range 20 {
			want = append(want, fmt.Sprint(i))
			enqueue(t, o, "http://a/", want[i])
			enqueue(t, o, "http://b/", want[i])
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- o.Run(ctx, time.Minute) }()
		time.Sleep(4500 * time.Millisecond)
		start := time.Now()
		if _, err := o.Drain(ctx); err != nil || time.Since(start) != 35500*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		for _, host := range []string{"a", "b"} {
			if !reflect.DeepEqual(w.got[host], want) {
				t.Errorf("%s got %q", host, w.got[host])
			}
		}
		if w.clash {
			t.Error("two at a time at one host")
		}
		cancel()
		<-ended
	})
}
