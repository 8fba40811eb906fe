package page

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/inspect"
	"github.com/weirhttp/weir/throttle"
)

// many serves the page of a program that has called n hosts, of which one is
// paused.
func many(t *testing.T, n int) *httptest.Server {
	c := weir.Config{}
	c.Throttle.Default = throttle.MustParseBudget("5/s, 1000/h burst 1000")
	w, err := weir.New(base(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
	}), c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		resp, err := w.RoundTrip(request(context.Background(), fmt.Sprintf("host%04d.a-rather-long-name.example", i)))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	w.Throttle().Pause(fmt.Sprintf("host%04d.a-rather-long-name.example", n-1), time.Now().Add(time.Hour))
	server := httptest.NewServer(inspect.Handler(w, inspect.Config{}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		w.Close()
	})
	return server
}

// What stands in the page is to be read whole: no label is cut or reaches into the
// space beside it, nothing stands beside the window.
const clipped = `[...document.querySelectorAll("th, th button, .badge, .chips button, .pages button, .tiles dt, #found, .summary, .c-host a, .c-route b")]
	.filter(e => {
		if (!e.offsetParent) return false
		const text = document.createRange()
		text.selectNodeContents(e)
		const room = e.getBoundingClientRect().right - parseFloat(getComputedStyle(e).paddingRight)
		return e.scrollWidth > e.clientWidth + 1 || text.getBoundingClientRect().right > room + 1 || e.matches("a, b") && e.scrollHeight > e.clientHeight + 1
	}).map(e => e.textContent)
	.concat(document.documentElement.scrollWidth > innerWidth ? ["the page is wider than the window"] : []).join("|")`

// However many hosts there are, the page shows a hundred at a time, the worst
// first, on any screen.
func TestPages(t *testing.T) {
	b := browser(t)
	const rows = `document.querySelectorAll("#hosts tbody tr").length`
	const found = `document.getElementById("found").textContent.trim()`
	const first = `document.querySelector("#hosts .c-host a").textContent`
	for _, n := range []int{1, 30, 3000} {
		page := many(t, n)
		for _, look := range []struct {
			width  int64
			scheme string
		}{{390, "light"}, {390, "dark"}, {1400, "light"}, {1400, "dark"}} {
			t.Run(fmt.Sprintf("%d hosts, %d pixels, %s", n, look.width, look.scheme), func(t *testing.T) {
				b := b.in(t)
				b.look(look.width, 900, look.scheme)
				b.open(page.URL)
				b.until(rows, fmt.Sprint(min(n, 100)))
				b.until(first, fmt.Sprintf("host%04d.a-rather-long-name.example", n-1))
				b.until(clipped, "")
				if n == 1 {
					enter(b, "host0000.a-rather-long-name.example")
					b.until(clipped, "")
					return
				}
				if n <= 100 {
					b.until(found, "")
					b.until(`getComputedStyle(document.getElementById("after")).display`, "none")
					return
				}
				b.until(found, "1 to 100 of 3,000")
				b.until(`document.getElementById("before").disabled`, "true")
				b.click("#after")
				b.until(found, "101 to 200 of 3,000")
				b.until(first, "host0099.a-rather-long-name.example")
				b.click("#before")
				b.until(found, "1 to 100 of 3,000")
				b.click("#after")
				b.until(found, "101 to 200 of 3,000")
				b.click("#filter")
				b.press("host29")
				b.until(rows, "100")
				b.until(found, "")
				b.js(`document.getElementById("filter").select()`)
				b.press(kb.Delete)
				b.until(found, "1 to 100 of 3,000")
				b.until(clipped, "")
			})
		}
	}
}
