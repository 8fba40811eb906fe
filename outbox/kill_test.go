package outbox

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	childEnv = "WEIR_OUTBOX_CHILD"
	kills    = 240
)

// child is a process that lives until it is killed. Its base fails every
// request of its callers and takes every drained one. Each line it prints is
// one write to a pipe, so what it has said is not lost with it:
//
//	start            New is about to be called
//	new              it returned
//	kept KEY ID      a caller got the 202 for a request first sent with KEY
//	delivered KEY    the server got KEY from Drain
//	wrong ...        anything that must not happen
func child(path string) {
	say := func(format string, args ...any) {
		if _, err := fmt.Fprintf(os.Stdout, format+"\n", args...); err != nil {
			os.Exit(3) // the parent is gone
		}
	}
	server := tripper(func(r *http.Request) (*http.Response, error) {
		defer r.Body.Close()
		key := r.Header.Get("Idempotency-Key")
		if first, ok := r.Context().Value(firstKey{}).(*string); ok {
			*first = key
			return nil, errDown
		}
		if body, err := io.ReadAll(r.Body); err != nil || string(body) != "for "+r.URL.Path {
			say("wrong body %q for %s: %v", body, r.URL.Path, err)
		}
		say("delivered %s", key)
		status := http.StatusOK
		if strings.HasSuffix(r.URL.Path, "7") { // set aside
			status = http.StatusGone
		}
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})
	say("start")
	o, err := New(server, Config{Path: path, Patterns: []string{"h"}, MaxEntries: 40})
	if err != nil {
		say("wrong New: %v", err)
		os.Exit(2)
	}
	say("new")
	for range 3 {
		go func() {
			for i := 0; ; i++ {
				childPost(o, i, say)
			}
		}()
	}
	for {
		if _, err := o.Drain(context.Background()); err != nil {
			say("wrong Drain: %v", err)
		}
		if o.Stats().Dead > 10 {
			bury(o, say)
		}
	}
}

// bury discards the dead, which have been delivered.
func bury(o *Transport, say func(string, ...any)) {
	entries, err := o.List()
	if err != nil {
		say("wrong List: %v", err)
	}
	for _, e := range entries {
		if !e.Dead {
			continue
		}
		if err := o.Discard(e.ID); err != nil || e.Reason != "answer 410" {
			say("wrong Discard of %+v: %v", e, err)
		}
	}
}

// firstKey leads to where the base puts the key of a request's first sending.
type firstKey struct{}

func childPost(o *Transport, i int, say func(string, ...any)) {
	var key string
	path := fmt.Sprintf("/%d", i)
	ctx := context.WithValue(context.Background(), firstKey{}, &key)
	r, err := http.NewRequestWithContext(ctx, "POST", "http://h"+path, strings.NewReader("for "+path))
	if err != nil {
		panic(err)
	}
	resp, err := o.RoundTrip(r)
	if err != nil { // full: nothing was promised
		time.Sleep(time.Millisecond)
		return
	}
	say("kept %s %s", key, resp.Header.Get(IDHeader))
}

// ledger is what the parent knows of all children.
type ledger struct {
	kept      map[string]string // ids by key
	ids       map[string]string // keys by id
	delivered map[string]int    // how often, by key
	turn      []string          // keys in the order of their delivery by the child that lives
}

func (l *ledger) line(t *testing.T, s string) {
	t.Helper()
	f := strings.Fields(s)
	switch {
	case f[0] == "start":
		l.turn = nil
	case f[0] == "new":
	case f[0] == "kept" && len(f) == 3:
		if other, twice := l.ids[f[2]]; twice || l.kept[f[1]] != "" {
			t.Errorf("id %s was given to %s and to %s", f[2], other, f[1])
		}
		l.kept[f[1]], l.ids[f[2]] = f[2], f[1]
	case f[0] == "delivered" && len(f) == 2:
		l.delivered[f[1]]++
		l.turn = append(l.turn, f[1])
	default:
		t.Errorf("child: %s", s)
	}
}

// ordered checks that one child delivered in the order of the ids it promised.
func (l *ledger) ordered(t *testing.T) {
	t.Helper()
	last := ""
	for _, key := range l.turn {
		id := l.kept[key]
		if id != "" && id <= last {
			t.Errorf("entry %s was delivered after %s", id, last)
		}
		last = max(last, id)
	}
}

// killOne starts a child, kills it after it has said lines lines and a moment
// more, and hears it out.
func (l *ledger) killOne(t *testing.T, path string, lines int, moment time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(out)
	for n := 0; ; n++ {
		if n == lines {
			time.Sleep(moment) // a point in the child's life, not a wait for anything
			if err := cmd.Process.Kill(); err != nil {
				t.Errorf("the child ended by itself: %v", err)
			}
		}
		s, err := in.ReadString('\n')
		if err != nil {
			break // what was not ended with a newline was not said
		}
		l.line(t, s)
	}
	_ = cmd.Wait() // "signal: killed"
	l.ordered(t)
}

// Killed at any point, the outbox opens again, loses nothing it promised, gives
// no id twice, keeps the order, and sends every entry under its first key.
func TestKill(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	l := &ledger{kept: map[string]string{}, ids: map[string]string{}, delivered: map[string]int{}}
	path := filepath.Join(t.TempDir(), "outbox.db")
	var young []string
	for i := range kills {
		moment := time.Duration(random.Int64N(int64(2 * time.Millisecond)))
		if i%10 == 9 { // a file of its own, killed while New makes it
			fresh := filepath.Join(t.TempDir(), "young.db")
			young = append(young, fresh)
			other := &ledger{kept: map[string]string{}, ids: map[string]string{}, delivered: map[string]int{}}
			other.killOne(t, fresh, 1, moment)
			continue
		}
		l.killOne(t, path, 1+random.IntN(24), moment)
		if t.Failed() {
			t.Fatalf("after %d kills", i+1)
		}
	}
	for _, path := range young {
		box(t, &server{}, Config{Path: path})
	}
	l.reckon(t, path)
}

// reckon opens the file a last time: every promise was kept, or still is.
func (l *ledger) reckon(t *testing.T, path string) {
	s := &server{}
	o := box(t, s, Config{Path: path, Patterns: []string{"h"}})
	pending, ids := map[string]bool{}, map[string]bool{}
	for _, e := range mustList(t, o) {
		if ids[e.ID] {
			t.Errorf("entry %s is on the list twice", e.ID)
		}
		ids[e.ID] = true
		if !e.Dead {
			pending[e.Key] = true
		} else if l.delivered[e.Key] == 0 {
			t.Errorf("entry %s is dead, but nobody refused it", e.ID)
		}
		if id := l.kept[e.Key]; id != "" && id != e.ID {
			t.Errorf("entry %s was promised as %s", e.ID, id)
		}
	}
	for key, id := range l.kept {
		if !pending[key] && l.delivered[key] == 0 {
			t.Errorf("entry %s is lost", id)
		}
	}
	if len(l.kept) == 0 || len(l.delivered) == 0 {
		t.Errorf("%d promises, %d deliveries: nothing was tested", len(l.kept), len(l.delivered))
	}
	mustDrain(t, o, len(pending))
	for _, r := range s.requests() {
		if !pending[r.key] {
			t.Errorf("key %s was not on the list", r.key)
		}
	}
	again := 0
	for _, n := range l.delivered {
		again += n - 1
	}
	t.Logf("%d kills, %d promises, %d keys delivered before the end, %d of them again, %d at the end",
		kills, len(l.kept), len(l.delivered), again, len(pending))
}
