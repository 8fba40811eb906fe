package inspect_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/inspect"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// The first frame comes at once, the others one a second; the stream ends
// with the client.
func TestAFrameASecondUntilTheClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := transport(t, answers{}, weir.Config{Throttle: budget("100/s burst 100")})
		send(t, w, "api.example", 1)
		base, _, stop := testnet.Server(t, inspect.Handler(w, inspect.Config{}), false)
		defer stop()
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://localhost/events?host=api.example", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := base.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
			t.Errorf("Content-Type %q", got)
		}
		start := time.Now()
		lines := bufio.NewReader(resp.Body)
		for n := range 4 {
			f := nextFrame(t, lines)
			if since := time.Since(start); since != time.Duration(n)*time.Second {
				t.Errorf("frame %d after %v", n, since)
			}
			if f.Total != 1 || f.Detail == nil || f.Detail.Granted != int64(n+1) || f.Controls {
				t.Errorf("frame %d: %+v", n, f)
			}
			send(t, w, "api.example", 1)
		}
	})
}

func nextFrame(t *testing.T, r *bufio.Reader) frame {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	text, found := strings.CutPrefix(line, "data: ")
	if end, err := r.ReadString('\n'); !found || end != "\n" || err != nil {
		t.Fatalf("%q %q %v", line, end, err)
	}
	var f frame
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// Names of hosts are for the page to show as text; they cannot end the line
// of an event or a script either.
func TestHostileNames(t *testing.T) {
	names := []string{`"><img src=x onerror=alert(1)>`, "a\ndata: {}\n\nb", "</script>", "\u2028"}
	w := transport(t, answers{}, weir.Config{})
	for _, name := range names {
		send(t, w, name, 1)
	}
	h := inspect.Handler(w, inspect.Config{})
	text := event(t, h, question{host: names[0]})
	if strings.ContainsAny(text, "<>\n\u2028") {
		t.Errorf("not escaped: %s", text)
	}
	for _, name := range names {
		hostNamed(t, snapshot(t, h), name)
	}
}

func names(rows []*inspect.Host) string {
	var all []string
	for _, r := range rows {
		all = append(all, r.Name)
	}
	return strings.Join(all, " ")
}

func TestWorstHostsComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan bool)
		broken := true
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			header := http.Header{}
			if r.URL.Path == "/held" {
				<-gate
			}
			switch {
			case r.URL.Host == "e" && broken:
				return nil, errors.New("connection refused")
			case r.URL.Host == "d":
				header.Set("RateLimit-Policy", `"q";q=10;w=3600`)
				header.Set("RateLimit", `"q";r=1;t=3000`)
			}
			return testnet.Answer(r, 200, header, http.NoBody), nil
		})
		var c weir.Config
		c.Retry.MaxAttempts = 1
		c.Throttle.Budgets = map[string]throttle.Budget{
			"a": throttle.MustParseBudget("40/h burst 40"), "c": throttle.MustParseBudget("3 in flight"),
		}
		w := transport(t, base, c)
		h := inspect.Handler(w, inspect.Config{})
		var all sync.WaitGroup
		call := func(host, path string, n int, limit time.Duration) {
			for range n {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					r := request(ctx, host)
					r.URL.Path = path
					if resp, err := w.RoundTrip(r); err == nil {
						resp.Body.Close()
					}
				})
				synctest.Wait()
			}
		}
		call("e", "/", 5, time.Hour) // which opens its circuit
		call("d", "/", 1, time.Hour)
		call("d", "/held", 4, time.Hour)
		w.Throttle().Pause("d", time.Now().Add(time.Minute))
		call("d", "/", 3, time.Hour)
		time.Sleep(7 * time.Second)
		call("c", "/", 16, time.Hour)
		call("c", "/held", 3, time.Hour)
		call("c", "/", 7, time.Hour)
		call("d", "/", 1, 10*time.Second) // which is refused
		time.Sleep(2 * time.Second)
		call("a", "/", 20, time.Hour)
		call("a", "/held", 4, time.Hour)
		call("b", "/", 30, time.Hour)
		w.Circuits().Force("b", breaker.Open)
		call("b", "/", 9, time.Hour)
		broken = false
		call("e", "/held", 1, time.Hour) // the probe
		call("e", "/", 3, time.Hour)
		tests := map[string]string{
			"":          "a b c d e",
			"host":      "a b c d e",
			"-host":     "e d c b a",
			"nonsense":  "a b c d e",
			"-state":    "b e d c a",
			"state":     "a c d e b",
			"-queue":    "c d a b e",
			"queue":     "a b e d c",
			"-wait":     "d c a b e",
			"-inflight": "a d c e b",
			"granted":   "d e c a b",
			"-refused":  "b e d a c",
			"left":      "c d a b e",
		}
		for order, want := range tests {
			if got := names(look(t, h, question{sort: order}).Rows); got != want {
				t.Errorf("%q: %s, want %s", order, got, want)
			}
		}
		w.Circuits().Release("b")
		close(gate)
		all.Wait()
	})
}

// However many hosts there are, the pages together are all of them in the order of a
// sort of all.
func TestPagesAreInOrder(t *testing.T) {
	const many, each = 1500, 100
	r := rand.New(rand.NewPCG(1, 2))
	w := transport(t, answers{}, weir.Config{})
	for i := range many {
		name := fmt.Sprintf("h%d-%d.example", r.IntN(1e6), i)
		send(t, w, name, 1+r.IntN(3))
		switch i % 3 {
		case 0:
			w.Throttle().Pause(name, time.Now().Add(time.Hour))
		case 1:
			w.Circuits().Force(name, breaker.Open)
		}
	}
	h := inspect.Handler(w, inspect.Config{})
	all := snapshot(t, h).Hosts // by name
	rank := map[string]int{ok: 0, paused: 1, "open": 2}
	for order, compare := range map[string]func(a, b *inspect.Host) int{
		"-state":   func(a, b *inspect.Host) int { return cmp.Compare(rank[b.State], rank[a.State]) },
		"state":    func(a, b *inspect.Host) int { return cmp.Compare(rank[a.State], rank[b.State]) },
		"-granted": func(a, b *inspect.Host) int { return cmp.Compare(b.Granted, a.Granted) },
		"queue":    func(a, b *inspect.Host) int { return 0 },
		"":         func(a, b *inspect.Host) int { return 0 },
		"-host":    func(a, b *inspect.Host) int { return cmp.Compare(b.Name, a.Name) },
	} {
		want := slices.Clone(all)
		slices.SortStableFunc(want, compare)
		for page := range len(all)/each + 1 {
			f := look(t, h, question{sort: order, page: page})
			part := want[min(page*each, len(want)):min((page+1)*each, len(want))]
			if got := names(f.Rows); len(part) > 0 && got != names(part) {
				t.Errorf("%q, page %d: others", order, page)
				break
			}
		}
	}
}

func TestHostsAreFoundByAPartOfTheirName(t *testing.T) {
	w := transport(t, answers{}, weir.Config{})
	for _, name := range []string{"api.example", "API.other", "cdn.example"} {
		send(t, w, strings.ToLower(name), 1)
	}
	w.Throttle().Pause("cdn.example", time.Now().Add(time.Hour))
	h := inspect.Handler(w, inspect.Config{})
	tests := []struct {
		ask  question
		want string
	}{
		{question{}, "api.example api.other cdn.example"},
		{question{q: " API "}, "api.example api.other"},
		{question{q: ".example"}, "api.example cdn.example"},
		{question{q: "nowhere"}, ""},
		{question{state: paused}, "cdn.example"},
		{question{state: ok, q: "example"}, "api.example"},
	}
	for _, tt := range tests {
		f := look(t, h, tt.ask)
		if got := names(f.Rows); got != tt.want || f.Total != 3 || f.Found != len(f.Rows) || f.Counts[paused] != 1 || f.Counts[ok] != 2 {
			t.Errorf("%+v: %s of %+v, want %s", tt.ask, got, f, tt.want)
		}
	}
}

// What changes between two looks is told in words, the newest first.
func TestEventsInWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := transport(t, answers{"api.example": always(500)}, weir.Config{})
		h := inspect.Handler(w, inspect.Config{})
		look(t, h, question{}) // history begins
		next := func() { time.Sleep(time.Second); look(t, h, question{}) }
		next()
		send(t, w, "api.example", 1)
		send(t, w, "other.example", 1)
		next()
		w.Throttle().Pause("api.example", time.Now().Add(time.Hour))
		next()
		w.Throttle().Resume("api.example")
		next()
		next()
		var got []string
		for _, e := range look(t, h, question{host: "api.example"}).Events {
			got = append(got, e.Text)
		}
		want := []string{"ok, was paused", "paused, was ok: paused by hand", "2 tried again, because: server error", "first seen"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if n := len(look(t, h, question{}).Events); n != len(want)+1 {
			t.Errorf("%d events of all hosts, want %d", n, len(want)+1)
		}
		if n := len(look(t, h, question{host: "api.example", part: "00000000"}).Events); n != 0 {
			t.Errorf("%d events of a partition that is not there", n)
		}
	})
}

// Counts that go on are added up and told every ten seconds.
func TestEventsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := weir.Config{Throttle: budget("1/h")}
		c.Throttle.MaxWait = -1
		w := transport(t, answers{}, c)
		send(t, w, "api.example", 1)
		h := inspect.Handler(w, inspect.Config{})
		look(t, h, question{})
		for range 25 {
			if _, err := w.RoundTrip(request(t.Context(), "api.example")); err == nil {
				t.Fatal("an answer beyond the budget")
			}
			time.Sleep(time.Second)
			look(t, h, question{})
		}
		var got []string
		for _, e := range look(t, h, question{}).Events {
			got = append(got, e.Text)
		}
		want := []string{"10 turned away: 1/h is spent", "10 turned away: 1/h is spent", "1 turned away: 1/h is spent", "refusing, was ok: 1/h is spent"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// The past is bounded: a page shows the newest 200 of the last 5000.
func TestEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keepEvents, showEvents, many = 5000, 200, 1000
		w := transport(t, answers{}, weir.Config{})
		h := inspect.Handler(w, inspect.Config{})
		look(t, h, question{})
		send(t, w, "api.example", 1)
		meet(t, w, many) // each is an event
		events := 1 + many
		for round := 0; events < 3*keepEvents; round++ {
			time.Sleep(time.Second)
			f := look(t, h, question{host: "api.example"})
			if told := slices.ContainsFunc(f.Events, func(e inspect.Event) bool { return e.Text == "first seen" }); told != (events <= keepEvents) {
				t.Errorf("%d events after its own: shown: %v", events-1, told)
			}
			if n, room := inspect.KeptEvents(h); n > 2*keepEvents || room > 4*keepEvents {
				t.Errorf("%d events kept, room for %d", n, room)
			}
			if n := len(look(t, h, question{}).Events); n != min(events, showEvents) {
				t.Errorf("%d of %d events shown", n, events)
			}
			for i := range many {
				if name := fmt.Sprintf("host%d.example", i); round%2 == 0 {
					w.Throttle().Pause(name, time.Now().Add(time.Hour))
				} else {
					w.Throttle().Resume(name)
				}
			}
			events += many
		}
	})
}

// Several look while requests are made.
func TestLooksAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := transport(t, answers{"b.example": always(500)}, weir.Config{Throttle: budget("1000/s burst 1000")})
		h := inspect.Handler(w, inspect.Config{})
		var done sync.WaitGroup
		for range 4 {
			done.Go(func() {
				for _, order := range []string{"state", "-queue", "left", "host"} {
					look(t, h, question{sort: order, host: "a.example"})
					time.Sleep(time.Second / 2) // the next look is a fresh one
				}
			})
			done.Go(func() {
				for range 4 {
					send(t, w, "a.example", 5)
					time.Sleep(time.Second / 2)
				}
				send(t, w, "b.example", 1)
			})
		}
		done.Wait()
		if got := hostNamed(t, snapshot(t, h), "a.example").Granted; got != 80 {
			t.Errorf("%d requests, want 80", got)
		}
	})
}

func TestManyHosts(t *testing.T) {
	const pageRows = 100
	w := transport(t, answers{}, weir.Config{Throttle: budget("5/s, 1000/h")})
	meet(t, w, 10000)
	h := inspect.Handler(w, inspect.Config{})
	f := look(t, h, question{sort: "-host"})
	if f.Total != 10000 || f.Found != 10000 || len(f.Rows) != pageRows || f.Rows[0].Name != "host9999.example" {
		t.Errorf("%d hosts, %d found, %d rows", f.Total, f.Found, len(f.Rows))
	}
	for page, want := range map[int][2]int{-1: {0, 100}, 0: {0, 100}, 41: {4100, 100}, 99: {9900, 100}, 100: {9900, 100}, math.MaxInt / 100: {9900, 100}} {
		f := look(t, h, question{sort: "host", page: page})
		if f.From != want[0] || len(f.Rows) != want[1] || f.Found != 10000 || !slices.IsSortedFunc(f.Rows, func(a, b *inspect.Host) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("page %d: %d rows from %d, %s", page, len(f.Rows), f.From, f.Rows[0].Name)
		}
	}
	if f := look(t, h, question{q: "host123", page: 3}); f.From != 0 || len(f.Rows) != 11 {
		t.Errorf("beyond the last page: %d rows from %d", len(f.Rows), f.From)
	}
	if f := look(t, h, question{q: "host123", host: "host7.example"}); f.Found != 11 || f.Detail == nil || f.Detail.Granted != 1 {
		t.Errorf("%d found, detail %+v", f.Found, f.Detail)
	}
}

// A look costs what has changed, not what there is: hosts at which nothing happened
// are not looked at, whatever their state was shown to be, and those that are shown
// are.
func TestQuietHostsAreNotLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const quiet, pageRows = 2000, 100
		w := transport(t, answers{"busy.example": always(200)}, weir.Config{Throttle: budget("5/s, 1000/h")})
		meet(t, w, quiet)
		h := inspect.Handler(w, inspect.Config{})
		looked := func() int { return len(inspect.LookedAt(h, time.Now())) }
		look(t, h, question{})
		if got := looked(); got != quiet {
			t.Errorf("%d looked at first, want all", got)
		}
		time.Sleep(2 * time.Second)
		look(t, h, question{q: "host7.example"}) // these were shown, and are looked at once more
		if got := looked(); got != pageRows {
			t.Errorf("%d looked at, want the %d that were shown", got, pageRows)
		}
		for range 5 {
			time.Sleep(time.Second)
			look(t, h, question{q: "host7.example"})
		}
		if got := looked(); got != 1 {
			t.Errorf("%d looked at, want the one that is shown", got)
		}
		send(t, w, "host3.example", 1)
		w.Throttle().Pause("host4.example", time.Now().Add(time.Hour))
		w.Throttle().SetBudget("host5.example", throttle.MustParseBudget("1/s"))
		w.Circuits().Force("host6.example", breaker.Open)
		time.Sleep(time.Second)
		f := look(t, h, question{q: "host7.example"})
		for _, name := range []string{"host3.example", "host4.example", "host6.example"} {
			if !slices.Contains(inspect.LookedAt(h, time.Now()), name) {
				t.Errorf("%s: what happened there was not looked at", name)
			}
		}
		if f.Counts[paused] != 1 || f.Counts["open"] != 1 || f.Total != quiet {
			t.Errorf("%+v", f.Counts)
		}
		if f := look(t, h, question{host: "host9.example"}); f.Detail == nil || f.Detail.Granted != 1 {
			t.Errorf("detail: %+v", f.Detail)
		}
		time.Sleep(2 * time.Minute) // budgets have grown
		look(t, h, question{q: "host7.example"})
		if got := looked(); got < quiet*9/10 {
			t.Errorf("%d looked at after two minutes", got)
		}
		if got := hostNamed(t, snapshot(t, h), "host5.example").Budgets; len(got) != 1 {
			t.Errorf("all hosts: %+v", got)
		}
	})
}

// Where more hosts are busy than are looked at at a time each has its turn. Those that
// are shown, or whose circuit has opened, do not wait for it.
func TestBusyHostsAreLookedAtInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mostLooks, pageRows, busy = 2000, 100, 4500
		w := transport(t, answers{}, weir.Config{Throttle: budget("5/s, 1000/h")})
		meet(t, w, busy)
		h := inspect.Handler(w, inspect.Config{})
		look(t, h, question{})
		time.Sleep(time.Minute)
		meet(t, w, busy)
		for i := range 10 {
			w.Circuits().Force(fmt.Sprintf("host%d.example", i*busy/10), breaker.Open)
		}
		seen := make(map[string]bool)
		for i, most := range []int{mostLooks + 10 + 1, mostLooks + pageRows + 1, busy - 2*mostLooks + pageRows + 1} {
			f := look(t, h, question{host: "host77.example", sort: "-state"})
			if f.Counts["open"] != 10 || f.Detail.Granted != 2 || f.Total != busy {
				t.Errorf("look %d: %d of %d hosts open, want 10; the one that is shown was sent %d", i, f.Counts["open"], f.Total, f.Detail.Granted)
			}
			names := inspect.LookedAt(h, time.Now())
			if len(names) > most {
				t.Errorf("look %d: %d hosts looked at, want at most %d", i, len(names), most)
			}
			for _, name := range names {
				seen[name] = true
			}
			time.Sleep(time.Second)
		}
		if len(seen) != busy {
			t.Errorf("%d hosts had their turn in three looks, want %d", len(seen), busy)
		}
	})
}

// BenchmarkFrame is one frame of a page, with its text: of few and of many hosts, of
// which some have had something to do since the one before.
func BenchmarkFrame(b *testing.B) {
	for _, hosts := range []int{1, 30, 3000, 100000} {
		w := transport(b, answers{}, weir.Config{Throttle: budget("1000000/s, 1000000000/h")})
		meet(b, w, hosts)
		h := inspect.Handler(w, inspect.Config{})
		if f := look(b, h, question{sort: "-state"}); f.Total < hosts*99/100 { // the shards of the table fill unevenly
			b.Fatal(f.Total)
		}
		for _, busy := range slices.Compact([]int{min(hosts, 100), hosts}) {
			b.Run(fmt.Sprintf("hosts=%d/busy=%d", hosts, busy), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					for i := range busy {
						send(b, w, fmt.Sprintf("host%d.example", i*(hosts/busy)), 1)
					}
					inspect.LookAgain(h)
					b.StartTimer()
					event(b, h, question{sort: "-state", q: "host"})
				}
			})
		}
	}
}

// BenchmarkSnapshot is one snapshot of 10000 hosts, each with two budgets.
func BenchmarkSnapshot(b *testing.B) {
	w := transport(b, answers{}, weir.Config{Throttle: budget("5/s, 1000/h")})
	meet(b, w, 10000)
	b.Run("Stats", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if n := len(w.Stats().Throttle.Hosts); n != 10000 {
				b.Fatal(n)
			}
		}
	})
	h := inspect.Handler(w, inspect.Config{})
	b.Run("JSON", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if n := ask(h, "GET", "/stats.json", nil).Body.Len(); n < 10000 {
				b.Fatal(n)
			}
		}
	})
	b.Run("frame", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			inspect.LookAgain(h)
			event(b, h, question{sort: "-state"})
		}
	})
}
