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
	least   = "least.example"   // 5 of 2000 left
	last    = "last.example"    // 1 of 20000 left
	none    = "none.example"    // 0 of 3 left
	most    = "most.example"    // 999 of 1000 left
	whole   = "whole.example"   // all of 3 in flight left
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
		least: throttle.MustParseBudget("2000/d burst 2000"),
		last:  throttle.MustParseBudget("20000/d burst 20000"),
		none:  throttle.MustParseBudget("3/h burst 3"),
		most:  throttle.MustParseBudget("1000/d burst 1000"),
		whole: throttle.MustParseBudget("3 in flight"),
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
	for host, n := range map[string]int{queued: 3, patient: 7, least: 1995, last: 19999, none: 4, most: 1, whole: 1, longest: 1} {
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

// bars says what bar has: whether it is framed as empty, and how much ink it has.
const bars = `((bar) => {
	const ink = bar.firstChild.getBoundingClientRect().width, room = bar.getBoundingClientRect().width
	return (bar.classList.contains("none-left") ? "framed" : "filled") + ", " + (ink === 0 ? "no ink" : ink < 3 ? "too little ink" : ink >= room ? "all ink" : room - ink < 3 ? "too much ink" : "some ink") })`

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
			b.until(shortened, "")
			if width > 900 {
				listBars(b)
			}
			for _, host := range []string{queued, varied, patient, longest} {
				enter(b, host)
				b.until(part("tiles", "Queue")+` !== undefined`, "true")
				b.until(added, "")
				b.until(shortened, "")
				b.until(clipped, "")
				b.until(contrast, "enough")
				b.look(width, 900, "dark")
				b.until(contrast, "enough")
				b.look(width, 900, "light")
				b.js(`location.hash = ""`)
				b.until(`document.getElementById("one").hidden`, "true")
			}
			longTable(b)
			limitBars(b)
		})
	}
	t.Run("words for what is left", func(t *testing.T) { left(b.in(t)) })
	b.quiet(page.URL)
}

// listBars holds that in the list nothing left, little left and all left differ, in
// words and in the bar.
func listBars(b *tab) {
	for host, want := range map[string][2]string{
		none: {"0%", "framed, no ink"}, last: {"< 1%", "filled, some ink"}, least: {"< 1%", "filled, some ink"}, most: {"99%", "filled, some ink"}, whole: {"100%", "filled, all ink"},
	} {
		b.until(cell(host, "left"), want[0])
		b.until(bars+`([...document.querySelectorAll("#hosts tbody tr")].find(e => e.querySelector("a").textContent === `+quote(host)+`).querySelector(".bar"))`, want[1])
	}
}

// limitBars holds the same of the limits of one host.
func limitBars(b *tab) {
	for host, want := range map[string][2]string{
		none: {"0 of 3 left", "framed, no ink"}, last: {"1 of 20,000 left", "filled, some ink"}, least: {"5 of 2,000 left", "filled, some ink"}, most: {"999 of 1,000 left", "filled, some ink"}, whole: {"3 of 3 left", "filled, all ink"},
	} {
		enter(b, host)
		b.until(`document.querySelector("#limits span").textContent.split(",").slice(0, -1).join(",") || document.querySelector("#limits span").textContent`, want[0])
		b.until(bars+`(document.querySelector("#limits .bar"))`, want[1])
		b.js(`location.hash = ""`)
		b.until(`document.getElementById("one").hidden`, "true")
	}
}

// left holds that what is left of a limit is never said to be more than it is, nor
// nothing where there is some.
func left(b *tab) {
	for _, tt := range []struct{ left, limit, units, percent string }{
		{"0", "3", "0", "0%"}, {"-2", "3", "0", "0%"}, {"0.04", "3", "0", "0%"}, // of a bucket
		{"0.96", "2", "0.9", "48%"}, {"3", "3", "3", "100%"}, {"9.99", "40", "9.9", "24%"}, {"38.7", "40", "38", "96%"},
		{"1", "20000", "1", "< 1%"}, {"19999", "20000", "19999", "99%"}, {"1", "100", "1", "1%"}, {"0.99", "100", "0.9", "< 1%"},
	} {
		b.until(`import("./words.js").then(w => w.units(`+tt.left+`) + ", " + w.percent(w.part({ left: `+tt.left+`, limit: `+tt.limit+` })))`, tt.units+", "+tt.percent)
	}
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
