package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/inspect"
	"github.com/weirhttp/weir/throttle"
)

// The hosts of crowdedProgram.
const (
	queued  = "queued.example"  // a hundred requests wait, on three routes
	varied  = "varied.example"  // has been asked for seventy things
	patient = "patient.example" // is down; three requests wait for its circuit, two were refused
)

var longest = strings.Repeat("a-label-of-some-length.", 10) + "example:8443"

// crowdedProgram serves the page of a program with a host in each trouble that is
// easily shown wrong: much of it, little of it, or long names.
func crowdedProgram(t *testing.T) *httptest.Server {
	c := weir.Config{}
	c.Throttle.MaxWait = 100 * time.Hour
	c.Throttle.DisableLearning = true
	c.Throttle.Budgets = map[string]throttle.Budget{
		queued: throttle.MustParseBudget("3/h burst 3"),
		"GET " + varied + "/a/path/that/goes/on/for/longer/than/any/table/is/wide/": throttle.MustParseBudget("2/h burst 2"),
	}
	c.Retry.MaxAttempts = 1
	c.Breaker.Patience, c.Breaker.OpenFor, c.Breaker.MaxOpenFor = 90*time.Minute, 30*time.Minute, time.Hour
	w, err := weir.New(base(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host == patient {
			return nil, errors.New("dial tcp 10.11.12.13:443: connect: connection refused")
		}
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
	}), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	server := httptest.NewServer(inspect.Handler(w, inspect.Config{}))
	t.Cleanup(func() {
		cancel()
		waiting.Wait()
		server.CloseClientConnections()
		server.Close()
		w.Close()
	})
	do := func(ctx context.Context, n int, host, path string) {
		for range n {
			q := request(ctx, host)
			q.URL.Path = path
			if resp, err := w.RoundTrip(q); err == nil {
				resp.Body.Close()
			}
		}
	}
	hurried, stop := context.WithTimeout(throttle.WithMaxWait(ctx, -1), time.Minute)
	t.Cleanup(stop)
	for host, n := range map[string]int{queued: 3, patient: 7, longest: 1} {
		do(hurried, n, host, "/")
	}
	do(hurried, 3, varied, "/a/path/that/goes/on/for/longer/than/any/table/is/wide/1") // the third is refused
	for i := range 70 {
		do(hurried, 1+i%4, varied, fmt.Sprintf("/segment%d/1", i))
	}
	for i := range 100 {
		waiting.Go(func() { do(ctx, 1, queued, fmt.Sprintf("/r%d", i%3)) })
	}
	for range 3 {
		waiting.Go(func() { do(ctx, 1, patient, "/") })
	}
	return server
}

// added compares the lines of the table of routes with what the host says: "" if each
// column adds up.
const added = `(() => {
	const read = (text) => text === "–" ? 0 : Number(text.replaceAll(",", ""))
	const tile = (label) => read([...document.querySelectorAll("#tiles dt")].find(e => e.textContent === label).nextElementSibling.textContent)
	return Object.entries({ queue: "Queue", inflight: "In flight", granted: "Sent", retries: "Retries", throttled: "Throttled answers", refused: "Turned away" })
		.map(([column, label]) => [label, [...document.querySelectorAll("#routes td.c-" + column)].reduce((n, e) => n + read(e.textContent), 0), tile(label)])
		.filter(([, lines, host]) => lines !== host).map(([label, lines, host]) => label + ": lines " + lines + ", host " + host).join("; ") })()`

// What a page shows of much and of little is true and can be read, on a telephone
// and on a desk, in the light and in the dark.
func TestStates(t *testing.T) {
	b := browser(t)
	page := crowdedProgram(t)
	for _, width := range []int64{390, 1400} {
		t.Run(fmt.Sprintf("%d pixels", width), func(t *testing.T) {
			b := b.in(t)
			b.look(width, 900, "light")
			b.open(page.URL)
			b.until(cell(queued, "queue"), "100")
			for _, host := range []string{queued, varied, patient, longest} {
				enter(b, host)
				b.until(part("tiles", "Queue")+` !== undefined`, "true")
				b.until(added, "")
				b.until(clipped, "")
				b.until(contrast, "enough")
				b.look(width, 900, "dark")
				b.until(contrast, "enough")
				b.look(width, 900, "light")
				b.js(`location.hash = ""`)
				b.until(`document.getElementById("one").hidden`, "true")
			}
			longTable(b)
		})
	}
	b.quiet(page.URL)
}

// longTable holds that one sees how many routes there are, and what the columns are
// however far one has scrolled.
func longTable(b *tab) {
	enter(b, varied)
	b.until(`document.getElementById("routes-title").textContent`, "Routes: 65")
	b.until(`document.querySelectorAll("#routes tbody tr").length`, "65")
	const frame = `document.querySelector("#routes-card .scroll")`
	b.js(frame + `.scrollTop = 1000`)
	b.until(`Math.round(document.querySelector("#routes th").getBoundingClientRect().top - `+frame+`.getBoundingClientRect().top)`, "0")
	b.js(`location.hash = ""`)
	b.until(`document.getElementById("one").hidden`, "true")
}
