package outbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle"
)

// Both bounds hold exactly, across a restart too, and give room back. When they
// are reached, a request is sent only where it overtakes nothing.
func TestBounds(t *testing.T) {
	s := &server{down: true}
	probe := box(t, s, Config{})
	mustKeep(t, probe, "http://api.example/", strings.Repeat("x", 1000))
	size := probe.Stats().Bytes // of each of these: ids and keys are of one length, times almost
	if size < 1000 || size > 2000 {
		t.Fatalf("a body of 1000 bytes takes %d", size)
	}
	for name, c := range map[string]Config{"count": {MaxEntries: 5}, "bytes": {MaxBytes: 5*size + size/2}} {
		c.Path = filepath.Join(t.TempDir(), "outbox.db")
		o := box(t, s, c)
		var ids []string
		for i := range 8 {
			id, err := post(t, o, "http://api.example/", strings.Repeat("x", 1000))
			if (err == nil) != (i < 5) || err != nil && !errors.Is(err, ErrFull) {
				t.Errorf("%s: request %d: %v", name, i, err)
			}
			ids = append(ids, id)
		}
		if got := o.Stats(); got.Pending != 5 || got.Kept != 5 || got.Full != 3 || got.Bytes < 4*size {
			t.Errorf("%s: %+v", name, got)
		}
		bytes := o.Stats().Bytes
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		o = box(t, s, c)
		if got := o.Stats(); got != (Stats{Pending: 5, Bytes: bytes}) {
			t.Errorf("%s: reopened with %+v", name, got)
		}
		if err := o.Discard(ids[2]); err != nil {
			t.Error(err)
		}
		mustKeep(t, o, "http://api.example/", strings.Repeat("x", 1000))
		if _, err := post(t, o, "http://api.example/", strings.Repeat("x", 1000)); !errors.Is(err, ErrFull) {
			t.Errorf("%s: full again: %v", name, err)
		}
		if _, err := post(t, o, "http://other.api.example/", strings.Repeat("x", 1000)); err != errDown {
			t.Errorf("%s: full, and nothing to overtake: %v", name, err)
		}
	}
}

// 64 goroutines keep, one drains, some discard: the counts come out right, every
// promise is kept once, and the bounds hold throughout.
func TestConcurrency(t *testing.T) {
	s := &server{}
	drains := func(r *http.Request) bool { return r.Context().Value(live{}) == nil }
	o := box(t, tripper(func(r *http.Request) (*http.Response, error) {
		if drains(r) {
			return s.RoundTrip(r)
		}
		r.Body.Close()
		return nil, errDown
	}), Config{MaxEntries: 100})
	var mu sync.Mutex
	kept, gone := map[string]bool{}, 0
	done := make(chan struct{})
	var drainer, keepers sync.WaitGroup
	drainer.Go(func() {
		for {
			if _, err := o.Drain(context.Background()); err != nil {
				t.Error(err)
			}
			if got := o.Stats(); got.Pending+got.Dead > 100 || got.Bytes < 0 {
				t.Errorf("%+v", got)
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for g := range 64 {
		keepers.Go(func() {
			for i := range 10 {
				ctx := context.WithValue(context.Background(), live{}, true)
				r, _ := http.NewRequestWithContext(ctx, "POST", "http://api.example/", strings.NewReader(fmt.Sprint(g, i)))
				resp, err := o.RoundTrip(r)
				if err != nil {
					continue
				}
				id := resp.Header.Get(IDHeader)
				mu.Lock()
				if kept[id] {
					t.Errorf("%s was given twice", id)
				}
				kept[id] = true
				mu.Unlock()
				if i == 5 {
					err := o.Discard(id)
					if err != nil && !errors.Is(err, ErrUnknown) {
						t.Error(err)
					}
					mu.Lock()
					if err == nil {
						gone++
					}
					mu.Unlock()
				}
			}
		})
	}
	keepers.Wait()
	close(done)
	drainer.Wait()
	if _, err := o.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	got := o.Stats()
	if int(got.Kept) != len(kept) || got.Pending != 0 || got.Bytes != 0 || int(got.Delivered)+gone != len(kept) || len(kept) == 0 {
		t.Errorf("%+v; %d promised, %d discarded", got, len(kept), gone)
	}
	bodies := map[string]int{}
	for _, b := range s.bodies() {
		if bodies[b]++; bodies[b] > 1 {
			t.Errorf("%q was delivered twice", b)
		}
	}
}

// Hooks run outside locks: they may ask and change the outbox.
func TestHooksCallBack(t *testing.T) {
	s := &server{down: true}
	var o *Transport
	o = box(t, s, Config{
		Prepare: func(*http.Request) error { _, err := o.List(); return err },
		Verdict: func(e Entry, _ *http.Response, _ error) Verdict {
			o.Wake()
			if o.Stats().Pending == 2 {
				if err := o.Discard(e.ID); err != nil {
					t.Error(err)
				}
			}
			return Default
		},
	})
	mustKeep(t, o, "http://api.example/", "x")
	mustKeep(t, o, "http://api.example/", "y")
	s.set(false)
	if n, err := o.Drain(t.Context()); n != 2 || err != nil {
		t.Errorf("Drain = %d, %v", n, err)
	}
	if got := o.Stats(); got.Pending != 0 || got.Bytes != 0 || got.Delivered != 1 {
		t.Errorf("%+v", got)
	}
}

// What can never be sent is not promised, and does not block those behind it.
func TestNeverFits(t *testing.T) {
	refusal := &throttle.Error{Key: "api.example", Reason: throttle.QueueFull}
	o := box(t, tripper(func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, fmt.Errorf("wrapped: %w", refusal)
	}), Config{})
	mustKeep(t, o, "http://api.example/", "x")
	mustKeep(t, o, "http://api.example/", "y")
	refusal.Reason = throttle.NeverFits
	if _, err := post(t, o, "http://other.api.example/", "z"); !errors.Is(err, refusal) {
		t.Errorf("%v, want %v", err, refusal)
	}
	mustDrain(t, o, 0)
	if got := o.Stats(); got.Dead != 2 || got.Kept != 2 {
		t.Errorf("%+v", got)
	}
}

// Requests that a transport would refuse each time are not kept either.
func TestUnsendable(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"value": func(r *http.Request) { r.Header.Set("X", "a\nb") },
		"name":  func(r *http.Request) { r.Header["a b"] = []string{"x"} },
		"host":  func(r *http.Request) { r.URL.Host = "api.example:80:80" },
	} {
		o := box(t, &server{down: true}, Config{Patterns: []string{"*"}})
		r, _ := http.NewRequest("POST", "http://api.example/", nil)
		change(r)
		if _, err := o.RoundTrip(r); err != errDown {
			t.Errorf("%s: %v, want %v", name, err, errDown)
		}
		if got := o.Stats(); got.Unfit != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Settings that make no sense name their field and value.
func TestConfig(t *testing.T) {
	good := Config{Path: filepath.Join(t.TempDir(), "x"), Patterns: []string{"h"}}
	tests := map[string]func(*Config){
		"Path":                       func(c *Config) { c.Path = "" },
		"Patterns":                   func(c *Config) { c.Patterns = nil },
		`pattern "a b c"`:            func(c *Config) { c.Patterns = []string{"a b c"} },
		"MaxBody is negative: -1":    func(c *Config) { c.MaxBody = -1 },
		"MaxEntries is negative: -2": func(c *Config) { c.MaxEntries = -2 },
		"MaxBytes is negative: -3":   func(c *Config) { c.MaxBytes = -3 },
		"MaxAge is negative: -1s":    func(c *Config) { c.MaxAge = -time.Second },
		"Timeout is negative: -1s":   func(c *Config) { c.Timeout = -time.Second },
		"FailedStatus: 200":          func(c *Config) { c.FailedStatus = []int{503, 200} },
		`KeyHeader "a b"`:            func(c *Config) { c.KeyHeader = "a b" },
		`KeyHeader "X-Own" is a header that is not kept`: func(c *Config) { c.KeyHeader, c.Secrets = "x-own", []string{"X-OWN"} },
		`Secrets: ""`: func(c *Config) { c.Secrets = []string{""} },
		`KeepCredentials is set, and so are Secrets ["x"`: func(c *Config) { c.KeepCredentials, c.Secrets = true, []string{"x"} },
	}
	for want, change := range tests {
		c := good
		change(&c)
		if _, err := New(nil, c); err == nil || !strings.HasPrefix(err.Error(), "outbox: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	o, err := New(nil, good)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if o.base != http.DefaultTransport {
		t.Errorf("base is %T", o.base)
	}
	if s := o.s; s.MaxBody != 1<<20 || s.MaxEntries != 10000 || s.MaxBytes != 64<<20 || s.MaxTries != 10 || s.Timeout != 5*time.Minute || s.KeyHeader != "Idempotency-Key" {
		t.Errorf("defaults: %+v", s)
	}
}
