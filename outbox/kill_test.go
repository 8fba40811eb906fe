package outbox

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	childEnv = "WEIR_OUTBOX_CHILD" // the file
	keepEnv  = "WEIR_OUTBOX_KEEP_FIRST"
	kills    = 240
)

// childConfig is that of a child, and of who opens its file afterwards.
func childConfig(path string) Config {
	return Config{Path: path, Patterns: []string{"*"}, MaxEntries: 40, KeepFirst: os.Getenv(keepEnv) != ""}
}

// child is a process that lives until it is killed. Its base fails every request
// of its callers and takes every drained one. Each line it prints is one write
// to a pipe, so what it has said is not lost with it:
//
//	start                      New is about to be called
//	new                        it returned
//	tried EVENT KEY            the base got EVENT from its caller, and failed
//	kept EVENT ID              the caller got the id
//	delivered EVENT KEY HOST   the base got EVENT from Drain or Run
//	wrong ...                  anything that must not happen
func child(path string) {
	say := func(format string, args ...any) {
		if _, err := fmt.Fprintf(os.Stdout, format+"\n", args...); err != nil {
			os.Exit(3) // the parent is gone
		}
	}
	c := childConfig(path)
	say("start")
	o, err := New(childBase(c, say), c)
	if err != nil {
		say("wrong New: %v", err)
		os.Exit(2)
	}
	say("new")
	for g := range 3 {
		go func() {
			for i := 0; ; i++ {
				childPost(o, g == 0, i, say)
			}
		}()
	}
	if c.KeepFirst {
		go func() { say("wrong end of Run: %v", o.Run(context.Background(), time.Millisecond)) }()
	}
	for {
		if !c.KeepFirst {
			if _, err := o.Drain(context.Background()); err != nil {
				say("wrong Drain: %v", err)
			}
		}
		if o.Stats().Dead > 10 {
			bury(o, say)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// live marks the contexts of a child's callers.
type live struct{}

func childBase(c Config, say func(string, ...any)) http.RoundTripper {
	return tripper(func(r *http.Request) (*http.Response, error) {
		defer r.Body.Close()
		event, key := r.URL.Path[1:], r.Header.Get("Idempotency-Key")
		if r.Context().Value(live{}) != nil {
			if c.KeepFirst {
				say("wrong: %s was sent before it was kept", event)
			}
			say("tried %s %s", event, key)
			return nil, errDown
		}
		if body, err := io.ReadAll(r.Body); err != nil || strings.TrimRight(string(body), "x") != "for "+event {
			say("wrong body %.40q for %s: %v", body, event, err)
		}
		say("delivered %s %s %s", event, key, r.URL.Host)
		return &http.Response{StatusCode: fate(event), Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})
}

// fate is what servers answer: to a few that they are gone, so that they are
// set aside.
func fate(event string) int {
	if strings.HasSuffix(event, "7") {
		return http.StatusGone
	}
	return http.StatusOK
}

// bury discards the dead, which have been delivered.
func bury(o *Transport, say func(string, ...any)) {
	entries, err := o.DeadLetters()
	if err != nil {
		say("wrong DeadLetters: %v", err)
	}
	for _, e := range entries {
		if err := o.Discard(e.ID); err != nil || e.Reason != "answer 410" {
			say("wrong Discard of %+v: %v", e, err)
		}
	}
}

// childPost sends or enqueues one event to one of three hosts.
func childPost(o *Transport, enqueue bool, i int, say func(string, ...any)) {
	event := rand.Text()
	ctx := context.WithValue(context.Background(), live{}, true)
	r, err := http.NewRequestWithContext(ctx, "POST", fmt.Sprintf("http://h%d/%s", i%3, event), strings.NewReader("for "+event))
	if err != nil {
		panic(err)
	}
	var id string
	if enqueue {
		id, err = o.Enqueue(r)
	} else if resp, e := o.RoundTrip(r); e == nil {
		id = resp.Header.Get(IDHeader)
	} else {
		err = e
	}
	if err != nil { // full: nothing was promised
		time.Sleep(time.Millisecond)
		return
	}
	say("kept %s %s", event, id)
}

// ledger is what the parent knows of all children.
type ledger struct {
	kept      map[string]string   // ids by event
	ids       map[string]string   // events by id
	keys      map[string]string   // by event
	delivered map[string]int      // how often, by event
	turn      map[string][]string // events by host, as the child that lives delivered them
}

func newLedger() *ledger {
	return &ledger{kept: map[string]string{}, ids: map[string]string{}, keys: map[string]string{}, delivered: map[string]int{}}
}

func (l *ledger) line(t *testing.T, s string) {
	t.Helper()
	f := strings.Fields(s)
	switch {
	case f[0] == "start":
		l.turn = map[string][]string{}
	case f[0] == "new":
	case f[0] == "tried" && len(f) == 3:
		l.key(t, f[1], f[2])
	case f[0] == "kept" && len(f) == 3:
		if other, twice := l.ids[f[2]]; twice || l.kept[f[1]] != "" {
			t.Errorf("id %s was given to %s and to %s", f[2], other, f[1])
		}
		l.kept[f[1]], l.ids[f[2]] = f[2], f[1]
	case f[0] == "delivered" && len(f) == 4:
		l.key(t, f[1], f[2])
		l.delivered[f[1]]++
		l.turn[f[3]] = append(l.turn[f[3]], f[1])
	default:
		t.Errorf("child: %s", s)
	}
}

// key checks that an event goes by one key, whenever and by whom it is sent.
func (l *ledger) key(t *testing.T, event, key string) {
	t.Helper()
	if known := l.keys[event]; key == "" || known != "" && known != key {
		t.Errorf("event %s was sent with the key %q, before with %q", event, key, known)
	}
	l.keys[event] = key
}

// ordered checks that one child delivered to each host in the order of the ids
// it promised.
func (l *ledger) ordered(t *testing.T) {
	t.Helper()
	for host, events := range l.turn {
		last := ""
		for _, event := range events {
			id := l.kept[event]
			if id != "" && id <= last {
				t.Errorf("%s got entry %s after %s", host, id, last)
			}
			last = max(last, id)
		}
	}
}

// killOne starts a child, kills it after it has said lines lines and a moment
// more, and hears it out.
func (l *ledger) killOne(t *testing.T, path string, keepFirst bool, lines int, moment time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	if keepFirst {
		cmd.Env = append(cmd.Env, keepEnv+"=1")
	}
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

// Killed at any point, in either mode, the outbox opens again, loses nothing it
// promised, gives no id twice, keeps the order of each queue, and sends every
// entry under its first key.
func TestKill(t *testing.T) {
	random := mathrand.New(mathrand.NewPCG(7, 7))
	l := newLedger()
	path := filepath.Join(t.TempDir(), "outbox.db")
	var young []string
	for i := range kills {
		moment := time.Duration(random.Int64N(int64(2 * time.Millisecond)))
		keepFirst := i%2 == 0
		if i%10 == 9 { // a file of its own, killed while New makes it
			fresh := filepath.Join(t.TempDir(), "young.db")
			young = append(young, fresh)
			newLedger().killOne(t, fresh, keepFirst, 1, moment)
			continue
		}
		l.killOne(t, path, keepFirst, 1+random.IntN(40), moment)
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
	t.Helper()
	s := &server{}
	o := box(t, s, Config{Path: path, Patterns: []string{"*"}})
	left, ids := map[string]bool{}, map[string]bool{}
	for _, e := range mustList(t, o) {
		event := e.URL[strings.LastIndexByte(e.URL, '/')+1:]
		if ids[e.ID] {
			t.Errorf("entry %s is on the list twice", e.ID)
		}
		ids[e.ID] = true
		if !e.Dead {
			left[event] = true
		} else if l.delivered[event] == 0 {
			t.Errorf("entry %s is dead, but nobody refused it", e.ID)
		}
		if id := l.kept[event]; id != "" && id != e.ID {
			t.Errorf("entry %s was promised as %s", e.ID, id)
		}
		l.key(t, event, e.Key)
	}
	for event, id := range l.kept {
		if !left[event] && l.delivered[event] == 0 {
			t.Errorf("entry %s is lost", id)
		}
	}
	if len(l.kept) == 0 || len(l.delivered) == 0 {
		t.Errorf("%d promises, %d deliveries: nothing was tested", len(l.kept), len(l.delivered))
	}
	mustDrain(t, o, len(left))
	for _, r := range s.requests() {
		event := r.url[strings.LastIndexByte(r.url, '/')+1:]
		if l.key(t, event, r.key); !left[event] {
			t.Errorf("%s was not on the list", event)
		}
	}
	again := 0
	for n := range maps.Values(l.delivered) {
		again += n - 1
	}
	t.Logf("%d promises, %d events delivered before the end, %d times again, %d at the end",
		len(l.kept), len(l.delivered), again, len(left))
}
