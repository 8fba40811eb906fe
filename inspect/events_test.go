package inspect

import (
	"bufio"
	"encoding/json"
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
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// The first frame comes at once, the others one a second; the stream ends
// with the client.
func TestAFrameASecondUntilTheClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := transport(t, answers{}, weir.Config{Throttle: budget("100/s burst 100")})
		send(t, w, "api.example", 1)
		base, _, stop := testnet.Server(t, Handler(w, Config{}), false)
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
	h := Handler(w, Config{}).(*handler)
	text, err := json.Marshal(h.frame(question{host: names[0]}))
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(string(text), "<>\n\u2028") {
		t.Errorf("not escaped: %s", text)
	}
	for _, name := range names {
		hostNamed(t, snapshot(t, h), name)
	}
}

func names(rows []*Host) string {
	var all []string
	for _, r := range rows {
		all = append(all, r.Name)
	}
	return strings.Join(all, " ")
}

func TestWorstHostsComeFirst(t *testing.T) {
	rows := []*Host{
		{Name: "a", State: ok, Queue: 0, OldestWait: 0, InFlight: 5, Counts: Counts{Granted: 10, Refused: 1}},
		{Name: "b", State: "open", Queue: 0, InFlight: 0, Counts: Counts{Granted: 30}, Circuit: &Circuit{Refused: 9}},
		{Name: "c", State: waiting, Queue: 7, OldestWait: 2, InFlight: 4, Counts: Counts{Granted: 20}, Budgets: []Budget{{Limit: 10, Left: 5}}},
		{Name: "d", State: paused, Queue: 3, OldestWait: 9, InFlight: 4, Counts: Counts{Granted: 5}, Learned: []Fact{{Limit: 10, Left: 1}, {Text: "no number"}}},
		{Name: "e", State: "half-open", Queue: 1, OldestWait: 1, InFlight: 1, Counts: Counts{Granted: 1, Refused: 3}},
	}
	tests := map[string]string{
		"":          "a b c d e",
		"host":      "a b c d e",
		"-host":     "e d c b a",
		"nonsense":  "a b c d e",
		"-state":    "b e d c a",
		"state":     "a c d e b",
		"-queue":    "c d e a b",
		"queue":     "a b e d c",
		"-wait":     "d c e a b",
		"-inflight": "a c d e b",
		"granted":   "e d a c b",
		"-refused":  "b e a c d",
		"left":      "d c a b e",
	}
	for order, want := range tests {
		got := slices.Clone(rows)
		if got := names(arrange(got, order, len(rows))); got != want {
			t.Errorf("%q: %s, want %s", order, got, want)
		}
	}
}

// The first rows are those that a sort of all would put first, in its order.
func TestFirstOfMany(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	rows := make([]*Host, 5000)
	for i := range rows {
		rows[i] = &Host{Name: fmt.Sprint(i), State: []string{ok, waiting, "open"}[r.IntN(3)], Queue: r.IntN(5), Counts: Counts{Granted: r.Int64N(900)}}
	}
	for _, order := range []string{"-state", "state", "-granted", "queue", "", "-host"} {
		all := arrange(slices.Clone(rows), order, len(rows))
		for _, most := range []int{1, 2, 99, 100, 300, 1249, 1250, 1251, 4999} {
			if got := arrange(slices.Clone(rows), order, most); !slices.Equal(got, all[:most]) {
				t.Errorf("%q: the first %d are others", order, most)
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
	h := Handler(w, Config{}).(*handler)
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
		f := h.frame(tt.ask)
		if got := names(f.Rows); got != tt.want || f.Total != 3 || f.Found != len(f.Rows) || f.Counts[paused] != 1 || f.Counts[ok] != 2 {
			t.Errorf("%+v: %s of %+v, want %s", tt.ask, got, f, tt.want)
		}
	}
}

// What changes between two looks is told in words, the newest first.
func TestEventsInWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := transport(t, answers{"api.example": always(500)}, weir.Config{})
		h := Handler(w, Config{}).(*handler)
		h.frame(question{}) // history begins
		look := func() { time.Sleep(time.Second); h.frame(question{}) }
		look()
		send(t, w, "api.example", 1)
		send(t, w, "other.example", 1)
		look()
		w.Throttle().Pause("api.example", time.Now().Add(time.Hour))
		look()
		w.Throttle().Resume("api.example")
		look()
		look()
		var got []string
		for _, e := range h.frame(question{host: "api.example"}).Events {
			got = append(got, e.Text)
		}
		want := []string{"ok, was paused", "paused, was ok: paused by hand", "2 tried again, because: server error", "first seen"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if n := len(h.frame(question{}).Events); n != len(want)+1 {
			t.Errorf("%d events of all hosts, want %d", n, len(want)+1)
		}
		if n := len(h.frame(question{host: "api.example", part: "00000000"}).Events); n != 0 {
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
		h := Handler(w, Config{}).(*handler)
		h.frame(question{})
		for range 25 {
			if _, err := w.RoundTrip(request(t.Context(), "api.example")); err == nil {
				t.Fatal("an answer beyond the budget")
			}
			time.Sleep(time.Second)
			h.frame(question{})
		}
		var got []string
		for _, e := range h.frame(question{}).Events {
			got = append(got, e.Text)
		}
		want := []string{"10 turned away: 1/h is spent", "10 turned away: 1/h is spent", "1 turned away: 1/h is spent", "refusing, was ok: 1/h is spent"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// The past is bounded, and what was handed out does not change.
func TestEventsAreBounded(t *testing.T) {
	w := &watch{}
	host := &Host{Name: "api.example"}
	var early []Event
	for i := range 3 * keepEvents {
		w.note(host, fmt.Sprint(i))
		if i == showEvents {
			early = w.events
		}
	}
	if len(w.events) > 2*keepEvents || cap(w.events) > 4*keepEvents {
		t.Errorf("%d events kept, room for %d", len(w.events), cap(w.events))
	}
	for i, e := range early {
		if e.Text != fmt.Sprint(i) {
			t.Fatalf("event %d became %q", i, e.Text)
		}
	}
	got := newest(w.events, "", "")
	if len(got) != showEvents || got[0].Text != fmt.Sprint(3*keepEvents-1) {
		t.Errorf("%d shown, the first %q", len(got), got[0].Text)
	}
}

// Several look while requests are made.
func TestLooksAtTheSameTime(t *testing.T) {
	w := transport(t, answers{"b.example": always(500)}, weir.Config{Throttle: budget("1000/s burst 1000")})
	h := Handler(w, Config{}).(*handler)
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for _, order := range []string{"state", "-queue", "left", "host"} {
				h.watch.mu.Lock()
				h.watch.last.At = time.Time{} // the next look is a fresh one
				h.watch.mu.Unlock()
				if _, err := json.Marshal(h.frame(question{sort: order, host: "a.example"})); err != nil {
					t.Error(err)
				}
			}
		})
		done.Go(func() {
			send(t, w, "a.example", 20)
			send(t, w, "b.example", 1)
		})
	}
	done.Wait()
	if got := hostNamed(t, snapshot(t, h), "a.example").Granted; got != 80 {
		t.Errorf("%d requests, want 80", got)
	}
}

func TestManyHosts(t *testing.T) {
	w := transport(t, answers{}, weir.Config{Throttle: budget("5/s, 1000/h")})
	meet(t, w, 10000)
	h := Handler(w, Config{}).(*handler)
	f := h.frame(question{sort: "-host"})
	if f.Total != 10000 || f.Found != 10000 || len(f.Rows) != pageRows || f.Rows[0].Name != "host9999.example" {
		t.Errorf("%d hosts, %d found, %d rows", f.Total, f.Found, len(f.Rows))
	}
	for page, want := range map[int][2]int{-1: {0, 100}, 0: {0, 100}, 41: {4100, 100}, 99: {9900, 100}, 100: {9900, 100}, math.MaxInt / 100: {9900, 100}} {
		f := h.frame(question{sort: "host", page: page})
		if f.From != want[0] || len(f.Rows) != want[1] || f.Found != 10000 || !slices.IsSortedFunc(f.Rows, func(a, b *Host) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("page %d: %d rows from %d, %s", page, len(f.Rows), f.From, f.Rows[0].Name)
		}
	}
	if f := h.frame(question{q: "host123", page: 3}); f.From != 0 || len(f.Rows) != 11 {
		t.Errorf("beyond the last page: %d rows from %d", len(f.Rows), f.From)
	}
	if f := h.frame(question{q: "host123", host: "host7.example"}); f.Found != 11 || f.Detail == nil || f.Detail.Granted != 1 {
		t.Errorf("%d found, detail %+v", f.Found, f.Detail)
	}
}

// A look costs what has changed, not what there is: hosts at which nothing happened
// are not looked at, whatever their state was shown to be, and those that are shown
// are.
func TestQuietHostsAreNotLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const quiet = 2000
		w := transport(t, answers{"busy.example": always(200)}, weir.Config{Throttle: budget("5/s, 1000/h")})
		meet(t, w, quiet)
		h := Handler(w, Config{}).(*handler)
		looked := func() (n int) {
			at := time.Now()
			for _, s := range h.watch.hosts {
				if s.at.Equal(at) {
					n++
				}
			}
			return n
		}
		h.frame(question{})
		if got := looked(); got != quiet {
			t.Errorf("%d looked at first, want all", got)
		}
		time.Sleep(2 * time.Second)
		h.frame(question{q: "host7.example"}) // these were shown, and are looked at once more
		if got := looked(); got != pageRows {
			t.Errorf("%d looked at, want the %d that were shown", got, pageRows)
		}
		for range 5 {
			time.Sleep(time.Second)
			h.frame(question{q: "host7.example"})
		}
		if got := looked(); got != 1 {
			t.Errorf("%d looked at, want the one that is shown", got)
		}
		send(t, w, "host3.example", 1)
		w.Throttle().Pause("host4.example", time.Now().Add(time.Hour))
		w.Throttle().SetBudget("host5.example", throttle.MustParseBudget("1/s"))
		w.Circuits().Force("host6.example", breaker.Open)
		time.Sleep(time.Second)
		f := h.frame(question{q: "host7.example"})
		for _, name := range []string{"host3.example", "host4.example", "host6.example"} {
			if s := h.watch.hosts[key{name, ""}]; !s.at.Equal(time.Now()) {
				t.Errorf("%s: what happened there was not looked at", name)
			}
		}
		if f.Counts[paused] != 1 || f.Counts["open"] != 1 || f.Total != quiet {
			t.Errorf("%+v", f.Counts)
		}
		if f := h.frame(question{host: "host9.example"}); f.Detail == nil || f.Detail.Granted != 1 {
			t.Errorf("detail: %+v", f.Detail)
		}
		time.Sleep(2 * time.Minute) // budgets have grown
		h.frame(question{q: "host7.example"})
		if got := looked(); got < quiet*9/10 {
			t.Errorf("%d looked at after two minutes", got)
		}
		if got := hostNamed(t, snapshot(t, h), "host5.example").Budgets; len(got) != 1 {
			t.Errorf("all hosts: %+v", got)
		}
	})
}

// BenchmarkFrame is one frame of a page about 100000 hosts, of which a hundred have
// something to do between two looks.
func BenchmarkFrame(b *testing.B) {
	w := transport(b, answers{}, weir.Config{Throttle: budget("1000000/s, 1000000000/h")})
	meet(b, w, 100000)
	h := Handler(w, Config{}).(*handler)
	h.frame(question{sort: "-state"})
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		for i := range 100 {
			send(b, w, fmt.Sprintf("host%d.example", i*977), 1)
		}
		h.watch.last.At = time.Time{} // it is time to look again
		b.StartTimer()
		if f := h.frame(question{sort: "-state", q: "host"}); f.Total < 99000 { // the shards of the table fill unevenly
			b.Fatal(f.Total)
		}
	}
}

func meet(t testing.TB, w *weir.Transport, n int) {
	for i := range n {
		send(t, w, fmt.Sprintf("host%d.example", i), 1)
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
	b.Run("view", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if n := len(allOf(newWatch(w), atOnce)); n != 10000 {
				b.Fatal(n)
			}
		}
	})
	b.Run("frame", func(b *testing.B) {
		h := &handler{watch: newWatch(w)}
		b.ReportAllocs()
		for b.Loop() {
			h.watch.last.At = time.Time{}
			if n := h.frame(question{sort: "-state"}).Total; n != 10000 {
				b.Fatal(n)
			}
		}
	})
}
