package inspect_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"runtime"
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

// Numbers follow a scripted run: 3 of 5 requests go at once, one waits, one
// gives up.
func TestStatsFollowARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := transport(t, answers{}, weir.Config{Throttle: budget("3/m burst 3")})
		h := inspect.Handler(w, inspect.Config{})
		send(t, w, "api.example", 3)
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		for _, ctx := range []context.Context{t.Context(), ctx} {
			done.Go(func() {
				if resp, err := w.RoundTrip(request(ctx, "api.example")); err == nil {
					resp.Body.Close()
				}
			})
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		got := hostNamed(t, snapshot(t, h), "api.example")
		if got.State != waiting || got.Queue != 2 || got.OldestWait != 10 || got.Granted != 3 || got.Attempts != 3 || got.Requests != 3 {
			t.Errorf("while two wait: %+v", got)
		}
		if len(got.Why) != 1 || got.Why[0].Text != "3/m burst 3 is spent" || got.Why[0].For <= 0 || got.Why[0].For > 50 {
			t.Errorf("why: %+v", got.Why)
		}
		if b := got.Budgets; len(b) != 1 || b[0].Text != "3/m burst 3" || b[0].Unit != "requests" || b[0].Limit != 3 || b[0].Left != 0 || b[0].FullIn < 49 || b[0].FullIn > 63 {
			t.Errorf("budgets: %+v", b)
		}
		cancel()
		done.Wait()
		got = hostNamed(t, snapshot(t, h), "api.example")
		if got.Queue != 0 || got.Granted != 4 || got.Cancelled != 1 || got.InFlight != 0 {
			t.Errorf("at the end: %+v", got)
		}
	})
}

// A budget is as full as its window, not as what may go at once.
func TestBudgetsShowTheirWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := transport(t, answers{}, weir.Config{Throttle: budget("5000/h")})
		h := inspect.Handler(w, inspect.Config{})
		send(t, w, "api.example", 3)
		if b := hostNamed(t, snapshot(t, h), "api.example").Budgets[0]; b.Limit != 5000 || b.Left != 4997 {
			t.Errorf("after three of 5000: %+v", b)
		}
	})
}

// Without any budget the limit that the server states is shown, with the
// header that said so; when it is spent it is what requests wait for.
func TestLearnedLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := 10
		base := answers{"api.example": func(*http.Request) (int, http.Header) {
			left = max(0, left-1)
			return 200, http.Header{
				"Ratelimit-Policy": {`"burst";q=10;w=60`}, "Ratelimit": {fmt.Sprintf(`"burst";r=%d;t=40`, left)},
			}
		}}
		w := transport(t, base, weir.Config{})
		h := inspect.Handler(w, inspect.Config{})
		send(t, w, "api.example", 7)
		got := hostNamed(t, snapshot(t, h), "api.example")
		if len(got.Learned) != 1 || got.Learned[0].Limit != 10 || got.Learned[0].Left != 3 ||
			got.Learned[0].Name != "burst" || got.Learned[0].Source != "said by RateLimit" || got.Learned[0].Unit != "requests" {
			t.Fatalf("learned: %+v", got.Learned)
		}
		if got.State != ok || len(got.Why) != 0 {
			t.Errorf("with three left: %s %+v", got.State, got.Why)
		}
		send(t, w, "api.example", 3)
		got = hostNamed(t, snapshot(t, h), "api.example")
		if len(got.Why) != 1 || !strings.HasPrefix(got.Why[0].Text, "0 of 10 left ") || got.Why[0].For < 30 || got.Why[0].For > 45 {
			t.Errorf("with none left: %+v", got.Why)
		}
	})
}

func TestPausedByTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := transport(t, answers{"api.example": always(429, "Retry-After", "30")}, weir.Config{Throttle: throttle.Config{MaxWait: -1}})
		h := inspect.Handler(w, inspect.Config{})
		send(t, w, "api.example", 1) // the answer is returned: its wait would not fit
		got := hostNamed(t, snapshot(t, h), "api.example")
		if got.State != paused || len(got.Why) == 0 || !strings.HasSuffix(got.Why[0].Text, "said by Retry-After") ||
			!strings.HasPrefix(got.Why[0].Text, "paused until ") || got.Why[0].For < 29 || got.Why[0].For > 33 {
			t.Errorf("%s %+v", got.State, got.Why)
		}
	})
}

// A host that cannot be reached has an open circuit, which goes before all
// else; its refusals are counted.
func TestCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := testnet.Func(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") })
		c := weir.Config{}
		c.Retry.MaxAttempts = 1
		w := transport(t, dead, c)
		h := inspect.Handler(w, inspect.Config{})
		for range 7 {
			if _, err := w.RoundTrip(request(t.Context(), "api.example")); err == nil {
				t.Fatal("an answer")
			}
		}
		got := hostNamed(t, snapshot(t, h), "api.example")
		if got.State != "open" || got.Circuit == nil || got.Circuit.Trips != 1 || got.Circuit.Refused != 2 || got.Attempts != 5 {
			t.Fatalf("%+v %+v", got, got.Circuit)
		}
		if len(got.Why) == 0 || !strings.HasPrefix(got.Why[0].Text, "circuit open: ") || got.Why[0].For <= 0 || got.Why[0].For > 5 {
			t.Errorf("why: %+v", got.Why)
		}
		if r := got.Routes; len(r) != 1 || r[0].State != "open" || r[0].Why == nil || *r[0].Why != got.Why[0] {
			t.Errorf("routes: %+v", r)
		}
		time.Sleep(5 * time.Second)
		if got := hostNamed(t, snapshot(t, h), "api.example"); got.Circuit.ProbeIn != 0 {
			t.Errorf("probe in %v s, want now", got.Circuit.ProbeIn)
		}
	})
}

// Requests that wait for the circuit stand in the queue too.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := weir.Config{}
		c.Retry.MaxAttempts = 1
		c.Breaker.Patience, c.Breaker.OpenFor, c.Breaker.MaxOpenFor = time.Minute, 10*time.Second, 20*time.Second
		calls := 0
		w := transport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			if calls++; calls <= 5 {
				return nil, errors.New("connection refused")
			}
			return testnet.Answer(r, 200, http.Header{}, http.NoBody), nil
		}), c)
		h := inspect.Handler(w, inspect.Config{})
		for range 5 {
			if _, err := w.RoundTrip(request(t.Context(), "api.example")); err == nil {
				t.Fatal("an answer")
			}
		}
		var done sync.WaitGroup
		for range 2 {
			done.Go(func() {
				if resp, err := w.RoundTrip(request(t.Context(), "api.example")); err == nil {
					resp.Body.Close()
				} else {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Second)
		if got := hostNamed(t, snapshot(t, h), "api.example"); got.Queue != 2 || got.Circuit.Waiting != 2 || got.State != "open" {
			t.Errorf("while two wait: %+v %+v", got, got.Circuit)
		}
		done.Wait()
		if got := hostNamed(t, snapshot(t, h), "api.example"); got.Queue != 0 || got.Granted != 7 {
			t.Errorf("at the end: %+v", got)
		}
	})
}

// Partitions stand beside their host, under a name that does not tell the key.
func TestPartitions(t *testing.T) {
	c := weir.Config{Throttle: budget("10/s burst 10")}
	c.Throttle.Partition = func(r *http.Request) string { return "secret-key" }
	w := transport(t, answers{}, c)
	send(t, w, "api.example", 2)
	page := ask(inspect.Handler(w, inspect.Config{}), "GET", "/stats.json", nil).Body.String()
	if strings.Contains(page, "secret") {
		t.Error("the page tells the partition's key")
	}
	found := false
	for _, h := range snapshot(t, inspect.Handler(w, inspect.Config{})).Hosts {
		if h.Partition != "" {
			found = true
			if len(h.Partition) != 8 || h.Name != "api.example" || h.Granted != 2 || h.Attempts != 2 {
				t.Errorf("%+v", h)
			}
		}
	}
	if !found {
		t.Error("no partition")
	}
}

// What was forced before any request is there too.
func TestForcedBeforeMet(t *testing.T) {
	w := transport(t, answers{}, weir.Config{})
	h := inspect.Handler(w, inspect.Config{Controls: true})
	post(h, "/open", map[string][]string{"host": {"api.example"}}, nil)
	s := snapshot(t, h)
	if len(s.Hosts) != 1 || s.Hosts[0].State != "open" || !s.Hosts[0].Circuit.Forced || s.Hosts[0].Allowance != -1 {
		t.Errorf("%+v", s.Hosts)
	}
}

// TestWhatWasLearnedIsShownWithItsSourceApart: what is learned is shown without its source, which stands apart; a
// bar is shown only of what has a limit and is known to have something left.
func TestWhatWasLearnedIsShownWithItsSourceApart(t *testing.T) {
	tests := []struct {
		limit throttle.LearnedLimit
		want  inspect.Fact
	}{
		{throttle.LearnedLimit{Kind: "quota", Name: `a, said by RateLimit`, Unit: "tokens", Source: "said by RateLimit", Limit: 10, Left: 2.5, Why: `2.5 of 10 tokens left, said by RateLimit`},
			inspect.Fact{Kind: "quota", Text: `2.5 of 10 tokens left`, Source: "said by RateLimit", Name: `a, said by RateLimit`, Unit: "tokens", Limit: 10, Left: 2.5}},
		{throttle.LearnedLimit{Kind: "quota", Unit: "requests", Source: "said by RateLimit", Left: 5, Why: "5 left, said by RateLimit"},
			inspect.Fact{Kind: "quota", Unit: "requests", Text: "5 left", Source: "said by RateLimit"}},
		{throttle.LearnedLimit{Kind: "quota", Limit: 10, Left: -1, Source: "after the reset said by RateLimit", Why: "one request asks what is left, after the reset said by RateLimit"},
			inspect.Fact{Kind: "quota", Text: "one request asks what is left", Source: "after the reset said by RateLimit"}},
		{throttle.LearnedLimit{Kind: "rate", Limit: 5, Left: -1, Source: "found by its refusals", Route: "GET /a", Why: "looks like 5/s, found by its refusals, for GET /a only"},
			inspect.Fact{Kind: "rate", Text: "looks like 5/s, for GET /a only", Source: "found by its refusals", Route: "GET /a"}},
		{throttle.LearnedLimit{Kind: "in flight", Limit: 4, Left: -1, Why: "at most 4 at a time until it has answered more"},
			inspect.Fact{Kind: "in flight", Text: "at most 4 at a time until it has answered more"}},
	}
	for _, tt := range tests {
		if got := inspect.FactOf(&tt.limit); got != tt.want {
			t.Errorf("%s\n got %+v\nwant %+v", tt.limit.Why, got, tt.want)
		}
	}
}

// TestWhereALimitComesFromIsNotCutOutOfItsName: a server names its limits as it likes.
func TestWhereALimitComesFromIsNotCutOutOfItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name = "a, said by RateLimit"
		w := transport(t, answers{"api.example": always(200,
			"RateLimit-Policy", `"`+name+`";q=10;w=60`, "RateLimit", `"`+name+`";r=2;t=40`,
		)}, weir.Config{})
		send(t, w, "api.example", 1)
		learned := hostNamed(t, snapshot(t, inspect.Handler(w, inspect.Config{})), "api.example").Learned
		if len(learned) != 1 {
			t.Fatalf("got %+v, want one limit", learned)
		}
		if f := learned[0]; !strings.Contains(f.Text, name) || strings.HasSuffix(f.Text, f.Source) {
			t.Errorf("got %+v, want the whole name and no source at the end", f)
		}
	})
}

// TestATimeThatIsNotNearHasItsDate: a time of day that is not near has its date.
func TestATimeThatIsNotNearHasItsDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for hours, layout := range map[int]string{11: time.TimeOnly, 13: time.DateTime} {
			at := time.Now().Add(time.Duration(hours) * time.Hour)
			w := transport(t, answers{"api.example": always(200,
				"RateLimit-Policy", `"daily";q=10;w=86400`, "RateLimit", fmt.Sprintf(`"daily";r=5;t=%d`, hours*3600),
			)}, weir.Config{})
			send(t, w, "api.example", 1)
			learned := hostNamed(t, snapshot(t, inspect.Handler(w, inspect.Config{})), "api.example").Learned
			if len(learned) != 1 || learned[0].Until != at.Format(layout) {
				t.Errorf("in %d hours: %+v, want until %s", hours, learned, at.Format(layout))
			}
		}
	})
}

// TestCounts: numbers of waits, answers and pauses follow the script.
func TestCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := answers{"api.example": func(r *http.Request) (int, http.Header) {
			time.Sleep(20 * time.Millisecond)
			return 200, http.Header{}
		}, "busy.example": always(429, "Retry-After", "250")}
		c := weir.Config{Throttle: budget("1/m")}
		c.Retry.MaxAttempts = 1
		w := transport(t, base, c)
		h := inspect.Handler(w, inspect.Config{})
		send(t, w, "api.example", 2) // the second waits for a minute
		send(t, w, "busy.example", 1)
		if _, err := w.RoundTrip(request(t.Context(), "busy.example")); err == nil {
			t.Error("a pause of 250 s does not refuse")
		}
		s := snapshot(t, h)
		got := hostNamed(t, s, "api.example")
		at := func(d inspect.Durations, bound float64) int64 { // how many stand under a bound
			for i, b := range s.Bounds {
				if b == bound && len(d.Counts) == len(s.Bounds)+1 {
					return d.Counts[i]
				}
			}
			return -1
		}
		if d := got.Wait; d.Count != 1 || d.Sum != 60 || at(d, 60) != 1 || d.P50 != 45 {
			t.Errorf("wait %+v", d)
		}
		if d := got.Latency; d.Count != 2 || d.Sum != 0.04 || at(d, 0.025) != 2 || d.P50 != 0.0175 {
			t.Errorf("latency %+v", d)
		}
		if got.Throttled != 0 || got.Pauses != 0 || got.RefusedBy != nil {
			t.Errorf("%+v", got)
		}
		got = hostNamed(t, s, "busy.example")
		if got.Throttled != 1 || got.Pauses != 1 || got.Refused != 1 || got.RefusedBy["paused"] != 1 || got.Wait.Count != 0 || got.Wait.Counts != nil {
			t.Errorf("%+v", got)
		}
	})
}

// A host that turns most requests away is not "ok", on the page nor in the
// events; what a fallback answered is counted.
func TestRefusingShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := weir.Config{}
		c.Throttle.Default = throttle.MustParseBudget("1/h")
		c.Throttle.MaxWait = -1
		c.Breaker.Fallback = func(r *http.Request, _ error) (*http.Response, error) {
			return testnet.Answer(r, 200, nil, nil), nil
		}
		w := transport(t, answers{}, c)
		h := inspect.Handler(w, inspect.Config{})
		look(t, h, question{})
		for range 50 {
			if resp, err := w.RoundTrip(request(t.Context(), "a.example")); err == nil {
				resp.Body.Close()
			}
		}
		w.Circuits().Force("b.example", breaker.Open)
		send(t, w, "b.example", 3)
		time.Sleep(time.Second)
		f := look(t, h, question{host: "a.example", sort: "-state"})
		if f.Counts["refusing"] != 1 || f.Rows[0].Name != "b.example" || f.Rows[1].State != "refusing" {
			t.Errorf("%v, first %s, then %s", f.Counts, f.Rows[0].Name, f.Rows[1].State)
		}
		if r := f.Detail.Routes[0]; r.State != "refusing" || r.Refused != 49 || f.Detail.Refused != 49 {
			t.Errorf("route %s refused %d, the host %d", r.State, r.Refused, f.Detail.Refused)
		}
		if c := f.Rows[0].Circuit; c.Refused != 3 || c.Fallback != 3 {
			t.Errorf("%d refused by the circuit, %d answered by the fallback", c.Refused, c.Fallback)
		}
		if !slices.ContainsFunc(f.Events, func(e inspect.Event) bool { return strings.HasPrefix(e.Text, "refusing, was ok") }) {
			t.Errorf("no event says so: %v", f.Events)
		}
	})
}

// What is sent host by host is the text that all of it would have been at once.
func TestStatsAsOneText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bounds []float64
		for _, b := range throttle.HistogramBounds() {
			bounds = append(bounds, b.Seconds())
		}
		for _, n := range []int{0, 1, 3} {
			w := transport(t, answers{}, weir.Config{Throttle: budget("5/s")})
			meet(t, w, n)
			h := inspect.Handler(w, inspect.Config{Outbox: queues{{Queue: "hosts\":[", Pending: 1}}})
			got := strings.TrimSpace(ask(h, "GET", "/stats.json", nil).Body.String())
			all := snapshot(t, h)
			if len(all.Hosts) != n || !all.At.Equal(time.Now()) || !slices.Equal(all.Bounds, bounds) || len(all.Outbox) != 1 || all.Outbox[0].Queue != "hosts\":[" {
				t.Errorf("%d hosts: %+v", n, all)
			}
			want, err := json.Marshal(all)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%d hosts: got\n%s\nwant\n%s", n, got, want)
			}
		}
	})
}

// However many hosts there are, no more than a few are copied at a time: on the way
// the memory of these is held, and a list of all names.
func TestAllHostsTakeTheMemoryOfAFew(t *testing.T) {
	w := transport(t, answers{}, weir.Config{Throttle: budget("5/s, 1000/h")})
	const hosts, few = 4000, 50
	meet(t, w, hosts)
	h := inspect.Handler(w, inspect.Config{})
	held := func() int64 { // after what is not in use any more has been freed
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	most := func(atOnce int) (bytes int64) {
		before, n := held(), 0
		inspect.EachHost(h, atOnce, func(*inspect.Host) bool {
			if n++; n%500 == 1 {
				bytes = max(bytes, held()-before)
			}
			return true
		})
		return bytes
	}
	if a, b := most(few), most(hosts); a > b/8 {
		t.Errorf("%d at once take %d KB, all of %d take %d KB", few, a>>10, hosts, b>>10)
	}
}

// However few hosts are looked at at once, all are there once and in order: those
// with a record of their own, those that share one, and those with a circuit alone.
func TestAllHostsAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := transport(t, answers{}, weir.Config{Throttle: throttle.Config{
			Default: throttle.MustParseBudget("5/h burst 5"), MaxKeys: 8,
		}})
		meet(t, w, 12)
		for _, name := range []string{"a.example", "others", "z.example"} {
			w.Circuits().Force(name, breaker.Open)
		}
		h := inspect.Handler(w, inspect.Config{})
		allOf := func(atOnce int) (list []*inspect.Host) {
			inspect.EachHost(h, atOnce, func(host *inspect.Host) bool {
				list = append(list, host)
				return true
			})
			return list
		}
		want := allOf(1000)
		if len(want) != 8+1+3 || !slices.IsSortedFunc(want, func(a, b *inspect.Host) int { return cmp.Compare(a.Name, b.Name) }) {
			t.Fatalf("%d hosts: %+v", len(want), want)
		}
		for _, atOnce := range []int{1, 2, 3, 7, 8, 9} {
			if got := allOf(atOnce); !reflect.DeepEqual(got, want) {
				t.Errorf("%d at once: %d hosts, want %d", atOnce, len(got), len(want))
			}
		}
		n := 0
		inspect.EachHost(h, 2, func(*inspect.Host) bool { n++; return n < 3 })
		if n != 3 {
			t.Errorf("%d hosts for one who stops after 3", n)
		}
	})
}
