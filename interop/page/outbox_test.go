package page

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/inspect"
)

// kept is an outbox that says what it is told to.
type kept []inspect.OutboxQueue

func (k kept) Queues() []inspect.OutboxQueue { return k }

// somethingOfEach is a queue in each state, with names and reasons of every length.
func somethingOfEach(now time.Time) kept {
	return kept{
		{Queue: "hooks.example", Pending: 12345, Dead: 17, Oldest: now.Add(-26 * time.Hour), Stuck: now.Add(-25 * time.Hour), Tries: 3000, Why: "answer 503", Delivered: 1234567, SetAside: 17},
		{Queue: "api.partner.example:8443", Pending: 3, Oldest: now.Add(-90 * time.Second), Stuck: now.Add(-80 * time.Second), Tries: 2,
			Why: "dial tcp: lookup api.partner.example on 127.0.0.53:53: no such host, and a text that goes on for longer than any table is wide"},
		{Queue: "orders.example", Pending: 40, Oldest: now.Add(-3 * time.Second), Sending: true, Delivered: 980},
		{Queue: "waits.example", Pending: 1, Oldest: now.Add(-time.Second)},
		{Queue: strings.Repeat("customer-", 22), Pending: 2, Oldest: now.Add(-time.Minute), Delivered: 2},
		{Queue: "<img src=x onerror=alert(1)>", Dead: 1, SetAside: 1, Delivered: 5},
		{Queue: "done.example", Delivered: 90},
	}
}

// The table of an outbox fits and says what it has to, on a telephone and on a
// desk, in the dark and in the light, with few queues and with many. WEIR_SHOTS=1
// leaves pictures of it in the directory for temporary files.
func TestOutbox(t *testing.T) {
	b := browser(t)
	w, err := weir.New(world(time.Now()), weir.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	few := somethingOfEach(time.Now())
	many := few
	for i := range 3000 {
		many = append(many, inspect.OutboxQueue{Queue: fmt.Sprintf("customer-%d", i), Pending: i % 7, Oldest: time.Now()})
	}
	for name, o := range map[string]kept{"few": few, "many": many} {
		page := httptest.NewServer(inspect.Handler(w, inspect.Config{Outbox: o}))
		for _, width := range []int64{390, 1400} {
			for _, scheme := range []string{"light", "dark"} {
				b.look(width, 1000, scheme)
				b.open(page.URL)
				outboxFits(b, width)
				if dir := os.Getenv("WEIR_SHOTS"); dir != "" {
					b.js(`document.getElementById("outbox-card").scrollIntoView()`)
					file := fmt.Sprintf("outbox-%s-%d-%s.png", name, width, scheme)
					if err := os.WriteFile(filepath.Join(os.TempDir(), file), b.shot(), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		page.CloseClientConnections()
		page.Close()
	}
}

// outboxFits holds that nothing of the table but long names and reasons is cut off.
func outboxFits(b *tab, width int64) {
	b.t.Helper()
	const cells = `[...document.querySelectorAll("#outbox-card th, #outbox-card td")].filter(e => e.offsetParent`
	b.until(`[...document.querySelectorAll("#outbox tbody .badge")].slice(0, 3).map(e => e.textContent).join(" ")`, "stuck stuck sending")
	b.until(`document.querySelector("#outbox small").textContent`, "answer 503, for 1 d 1 h, 3,000 tries")
	b.until(`document.documentElement.scrollWidth <= `+fmt.Sprint(width), "true")
	b.until(cells+` && !e.matches("td.c-name") && e.scrollWidth > e.clientWidth).map(e => e.className + " " + e.textContent).join()`, "")
	b.until(cells+` && e.matches("td.c-name") && e.clientWidth < 150).length`, "0")
	b.until(`document.querySelectorAll("#outbox img").length`, "0")
}
