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
		time.Sleep(time.Second / 2)      // else they come with it, and wait for its answer
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
