package page

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/inspect"
)

// What the page says, as expressions.
const (
	hosts   = `[...document.querySelectorAll("#hosts .c-host a")].map(e => e.textContent).join(" ")`
	summary = `document.getElementById("summary").textContent`
	name    = `document.getElementById("name").textContent`
	focused = `document.activeElement.textContent || document.activeElement.id`
)

// cell is the text of a host's cell in the list.
func cell(host, column string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("#hosts tbody tr")].find(e => e.querySelector("a").textContent === %s)?.querySelector("td.c-%s").innerText.trim()`, quote(host), column)
}

// part is the text of a labelled value in the view of one host.
func part(list, label string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("#%s dt")].find(e => e.textContent === %s)?.nextElementSibling.textContent`, list, quote(label))
}

// TestPage walks through the page in one browser. Every value it wants comes
// from the script, none from what the server says.
func TestPage(t *testing.T) {
	b := browser(t)
	r := start(t, inspect.Config{})
	r.wait()
	b.look(1200, 900, "light")
	b.open(r.page.URL)
	steps := []struct {
		name string
		do   func(*tab, *run)
	}{
		{"values", values}, {"sorting", sorting}, {"filter", filter}, {"detail", detail}, {"routes", routes}, {"learned", learned},
		{"unknown host", unknown},
		{"hostile name", hostileName}, {"keyboard", keyboard}, {"dark", dark}, {"narrow", narrow}, {"calm", calm},
		{"read only", readOnly},
	}
	for _, s := range steps {
		if !t.Run(s.name, func(t *testing.T) { s.do(b.in(t), r) }) {
			t.FailNow() // those that follow begin where it ends
		}
	}
	controlled := start(t, inspect.Config{Controls: true}) // up to the end: a page that loses its server says so
	t.Run("controls", func(t *testing.T) { controls(b.in(t), controlled) })
	refusing := turnAway(t)
	t.Run("turned away", func(t *testing.T) { turnedAway(b.in(t), refusing) })
	b.quiet(r.page.URL, controlled.page.URL, refusing.page.URL)
}

func values(b *tab, r *run) {
	b.until(hosts, strings.Join([]string{down, payments, search, shop, hostile, github, cdn}, " "))
	b.until(summary, "1 of 7 hosts turns requests away, 3 hold them up")
	b.until(`document.getElementById("summary-more").textContent.split(",")[0]`, "3 requests wait")
	for _, want := range []struct{ host, column, text string }{
		{down, "state", "open"}, {payments, "state", "paused"}, {search, "state", "waiting"}, {cdn, "state", "ok"},
		{cdn, "granted", "40"}, {github, "granted", "20"}, {search, "granted", "3"}, {hostile, "granted", "1"},
		{search, "queue", "2"}, {cdn, "queue", "0"}, {cdn, "wait", "–"},
		{shop, "granted", "7"}, {shop, "queue", "1"}, {shop, "refused", "1"}, {shop, "state", "waiting"},
		{down, "refused", "4"}, {cdn, "refused", "0"},
		{cdn, "left", "96%"}, {github, "left", "80%"}, {search, "left", "0%"}, {hostile, "left", "no limit"},
	} {
		b.until(cell(want.host, want.column), want.text)
	}
	for host, why := range map[string]string{
		search: "3/h burst 3 is spent", shop: find + ": 2/h burst 2 is spent, room in ", payments: "paused until", down: "circuit open", cdn: "nothing in the way",
	} {
		b.until(cell(host, "host")+`.split("\n")[1].startsWith(`+quote(why)+`)`, "true")
	}
	// Values follow what happens.
	r.send(cdn, 60)
	b.until(cell(cdn, "granted"), "100")
	b.until(cell(cdn, "left"), "90%")
}

func sorting(b *tab, r *run) {
	sorted := func(column string) string {
		return `document.querySelector("th.c-` + column + `").getAttribute("aria-sort")`
	}
	b.until(sorted("state"), "descending")
	b.click("th.c-granted button")
	b.until(hosts+`.split(" ").slice(0, 2).join(" ")`, cdn+" "+github)
	b.until(sorted("granted"), "descending")
	b.until(sorted("state"), "null")
	b.click("th.c-granted button")
	b.until(hosts+`.split(" ").slice(-2).join(" ")`, github+" "+cdn)
	b.until(sorted("granted"), "ascending")
	b.click("th.c-host button")
	b.until(hosts, strings.Join([]string{hostile, github, cdn, down, payments, search, shop}, " "))
	b.click("th.c-state button")
	b.until(hosts, strings.Join([]string{down, payments, search, shop, hostile, github, cdn}, " "))
}

func filter(b *tab, r *run) {
	b.click("#filter")
	b.press("EXAMPLE")
	b.until(hosts, strings.Join([]string{down, payments, search, shop, cdn}, " "))
	b.press("x")
	b.until(hosts, "")
	b.until(`document.getElementById("none").textContent`, "No host matches.")
	b.js(`document.getElementById("filter").select()`)
	b.press(kb.Delete)
	b.until(hosts+`.split(" ").length > 6`, "true")
	b.click(`#chips button:nth-child(5)`)
	b.until(hosts, payments)
	b.until(`document.querySelector("#chips button:nth-child(5)").getAttribute("aria-pressed")`, "true")
	b.click(`#chips button:nth-child(1)`)
	b.until(hosts, strings.Join([]string{down, payments, search, shop, hostile, github, cdn}, " "))
}

// enter opens the view of a host from the list.
func enter(b *tab, host string) {
	b.t.Helper()
	b.until(`(() => { for (const a of document.querySelectorAll("#hosts a")) if (a.textContent === `+quote(host)+`) { a.click(); return true } return false })()`, "true")
	b.until(name, host)
}

// routes shows of each route what it waits for and what was counted; what is held
// up stands first.
func routes(b *tab, r *run) {
	enter(b, shop)
	b.until(`[...document.querySelectorAll("#routes tbody b")].map(e => e.textContent).join(", ")`, strings.Join([]string{find, orders, items}, ", "))
	for row, want := range []map[string]string{
		{"state": "waiting", "queue": "1", "inflight": "0", "granted": "2", "retries": "0", "throttled": "0", "refused": "1", "waited": "–"},
		{"state": "ok", "queue": "0", "wait": "–", "granted": "1", "refused": "0"},
		{"state": "ok", "queue": "0", "wait": "–", "granted": "4", "refused": "0", "waited": "–"},
	} {
		for column, text := range want {
			b.until(fmt.Sprintf(`document.querySelectorAll("#routes tbody tr")[%d].querySelector(".c-%s").textContent`, row, column), text)
		}
	}
	for row, why := range []string{"2/h burst 2 is spent, room in ", `0 of 5 left of "orders" until `, "nothing in the way"} {
		b.until(fmt.Sprintf(`document.querySelectorAll("#routes small")[%d].textContent.startsWith(%s)`, row, quote(why)), "true")
	}
	b.until(`document.querySelector("#routes tbody .c-wait").textContent !== "–"`, "true")
	b.until(`document.querySelector("#routes tbody tr:nth-child(3) .c-latency").textContent !== "–"`, "true") // answered
	b.until(`document.querySelector("#why p").textContent.startsWith(`+quote(find+": 2/h burst 2 is spent, room in ")+`)`, "true")
	b.until(`document.querySelector("#limits").textContent.includes("configured for `+find+`")`, "true")
	b.until(`document.querySelector("#limits").textContent.includes("learned, said by RateLimit, for POST /orders only")`, "true")
	r.gone[2]()
	b.until(`document.querySelector("#routes tbody tr").querySelector(".c-queue").textContent`, "0")
	b.until(`document.querySelector("#routes tbody tr").querySelector(".c-waited").textContent !== "–"`, "true") // its wait is over
	b.until(`document.getElementById("badge").textContent`, "ok")
	b.js(`history.back()`)
}

func detail(b *tab, r *run) {
	enter(b, search)
	b.until(`document.getElementById("badge").textContent`, "waiting")
	b.until(`document.querySelector("#why p").textContent.startsWith("3/h burst 3 is spent, ")`, "true")
	b.until(part("tiles", "Queue"), "2")
	b.until(part("tiles", "Sent"), "3")
	b.until(part("facts", "Requests"), "3")
	b.until(part("facts", "Attempts"), "3")
	b.until(`document.querySelector("#limits b").textContent`, "3/h burst 3")
	b.until(`document.querySelector("#limits span").textContent.startsWith("0 of 3 left, full in ")`, "true")
	b.until(`document.querySelector("#limits small").textContent`, "configured for "+search)
	// One of the two that wait gives up: numbers, charts and words follow.
	r.gone[0]()
	b.until(part("tiles", "Queue"), "1")
	b.until(part("tiles", "Gave up waiting"), "1")
	b.until(part("tiles", "Throttled answers"), "0")
	b.until(part("tiles", "Wait, median")+` !== "–"`, "true") // one wait is over
	b.until(`document.querySelector("#events li p").textContent.trim()`, "1 gave up waiting")
	b.until(`document.querySelectorAll("#charts canvas").length`, "4")
	for i, want := range []string{"Sent per second: 0", "Turned away per second: 0", "Oldest wait: ", "Left of the tightest limit: 0%"} {
		b.until(fmt.Sprintf(`document.querySelectorAll("#charts .plot")[%d].getAttribute("aria-label").startsWith(%s)`, i, quote(want)), "true")
	}
	// The wait is drawn: there is ink in its canvas besides axes and grid.
	b.until(`(() => { const c = document.querySelectorAll("#charts canvas")[2], d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] < 40 && d[i+1] > 90 && d[i+2] > 80 && d[i+3] > 200) n++; return n > 50 })()`, "true")
	b.js(`history.back()`)
	b.until(hosts+`.startsWith(`+quote(down)+`)`, "true")
	enter(b, down)
	b.until(`document.querySelector("#why p").textContent.startsWith("Circuit open: ")`, "true")
	b.until(part("facts", "Circuit"), "open")
	b.until(part("facts", "Times opened"), "1")
	b.until(part("facts", "Refused by it"), "4")
	b.js(`history.back()`)
}

func learned(b *tab, r *run) {
	enter(b, github)
	b.until(`document.querySelector("#why p").textContent`, "Nothing holds requests up")
	b.until(`document.querySelector("#limits p").innerText.replace(/\s+/g, " ").startsWith("core 80 of 100 left, back at ")`, "true")
	b.until(`document.querySelector("#limits small").textContent`, "learned, said by RateLimit")
	b.until(`document.querySelector("#limits .bar span").style.width`, "80%")
	r.send(github, 5)
	b.until(`document.querySelector("#limits p").innerText.replace(/\s+/g, " ").startsWith("core 75 of 100 left, back at ")`, "true")
	b.js(`history.back()`)
	enter(b, payments)
	b.until(`document.querySelector("#why p").textContent.startsWith("Paused until ")`, "true")
	b.until(`document.querySelector("#limits").textContent.includes("said by Retry-After")`, "true")
	for tile, want := range map[string]string{"Throttled answers": "1", "Pauses": "1", "Turned away": "0", "Wait, median": "–"} {
		b.until(part("tiles", tile), want)
	}
	b.until(part("tiles", "Latency, 95%")+` !== "–"`, "true") // one was answered
	b.js(`history.back()`)
}

// unknown: an address of a host that no request went to shows no empty frames.
func unknown(b *tab, _ *run) {
	b.js(`location.hash = "host=nobody.example"`)
	b.until(`document.getElementById("badge").textContent`, "unknown")
	b.until(`[...document.querySelectorAll("#tiles, #one .columns .card")].filter(e => e.offsetHeight > 0).length`, "0")
	b.js(`history.back()`)
}

func hostileName(b *tab, r *run) {
	b.until(cell(hostile, "granted"), "1")
	enter(b, hostile)
	b.until(`document.title`, hostile+" · weir")
	r.weir.Throttle().Pause(hostile, time.Now().Add(time.Hour)) // its name stands in an event, too
	b.until(`document.getElementById("badge").textContent`, "paused")
	b.js(`history.back()`)
	b.until(`document.querySelector("#events b").textContent.trim()`, hostile)
	r.weir.Throttle().Resume(hostile)
	b.until(cell(hostile, "state"), "ok")
	if got := b.js(`document.title + document.querySelectorAll("img").length`); got != "weir1" {
		b.t.Errorf("title and number of pictures %q: the name has become a part of the page", got)
	}
}

// keyboard goes to a host and back without a mouse.
func keyboard(b *tab, r *run) {
	b.js(`document.activeElement.blur()`)
	b.slash()
	b.until(`document.activeElement.id`, "filter")
	b.press("pay")
	b.until(hosts, payments)
	for i := 0; b.js(focused) != payments; i++ {
		if i > 30 {
			b.t.Fatal("Tab does not lead to the host")
		}
		b.press(kb.Tab)
	}
	if got := b.js(`getComputedStyle(document.activeElement).outlineStyle`); got == "none" {
		b.t.Error("nothing shows where the focus is")
	}
	b.press(kb.Enter)
	b.until(name, payments)
	b.until(focused, "← All hosts")
	b.press(kb.Escape)
	b.until(`document.getElementById("one").hidden`, "true")
	b.until(`document.activeElement.id`, "filter")
	b.js(`document.activeElement.select()`)
	b.press(kb.Delete)
	for i := 0; b.js(focused) != "Sent"; i++ {
		if i > 30 {
			b.t.Fatal("Tab does not lead to the column's head")
		}
		b.press(kb.Tab)
	}
	b.press(kb.Enter)
	b.until(hosts+`.startsWith(`+quote(cdn)+`)`, "true")
	b.click("th.c-state button")
}

// contrast is the least contrast of text to what is behind it, by WCAG 2.
const contrast = `(() => {
	const rgb = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length > 3 && m[3] === 0 ? null : m };
	const light = (c) => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b };
	let least = 21, where = "";
	for (const e of document.querySelectorAll("main *, header *")) {
		if (!e.offsetParent || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
		let behind = e; while (behind && !rgb(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
		const a = light(rgb(getComputedStyle(e).color)), b = light(rgb(getComputedStyle(behind).backgroundColor));
		const c = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
		if (c < least) { least = c; where = e.tagName + "." + e.className }
	}
	return least >= 4.5 ? "enough" : least.toFixed(2) + " at " + where })()`

func dark(b *tab, r *run) {
	const behind = `getComputedStyle(document.body).backgroundColor`
	b.until(behind, "rgb(246, 247, 246)")
	b.until(contrast, "enough")
	b.look(1200, 900, "dark")
	b.until(behind, "rgb(16, 20, 19)")
	b.until(contrast, "enough")
	enter(b, search)
	b.until(part("tiles", "Queue"), "1")
	b.until(contrast, "enough")
	b.look(1200, 900, "light")
	b.until(contrast, "enough")
	b.js(`history.back()`)
	b.until(`document.getElementById("one").hidden`, "true")
}

// shortened is what holds requests up where it is not shown to its end, which says for
// how long.
const shortened = `[...document.querySelectorAll("#hosts small, #routes small")].filter(e => e.offsetParent && e.scrollHeight > e.clientHeight + 1).map(e => e.textContent).join("|")`

// torn is what stands on two lines though it has neither a space nor a dash.
const torn = `[...document.querySelectorAll("td.c-host a, td.c-host small")].flatMap(e => [...e.childNodes]).filter(n => {
	if (n.nodeType !== 3 || /[\s-]/.test(n.data)) return false
	const text = document.createRange()
	text.selectNodeContents(n)
	return text.getClientRects().length > 1
}).map(n => n.data).join("|")`

// narrow holds that a telephone shows the page without scrolling sideways.
func narrow(b *tab, r *run) {
	b.look(360, 740, "light")
	const fits = `(document.documentElement.scrollWidth <= 360) + " " + [...document.querySelectorAll("main *")].filter(e => e.offsetParent && e.getBoundingClientRect().right > 360.5 && !e.closest("table, .plot")).length`
	b.until(fits, "true 0")
	b.until(shortened, "")
	b.until(torn, "")
	for _, column := range []string{"host", "state", "queue"} {
		b.until(`document.querySelector("td.c-`+column+`").getBoundingClientRect().width > 60`, "true")
	}
	for _, host := range []string{search, hostile, github, shop} {
		enter(b, host)
		b.until(fits, "true 0")
		b.js(`history.back()`)
		b.until(`document.getElementById("one").hidden`, "true")
	}
	b.until(`Math.min(...[...document.querySelectorAll("main *")].filter(e => e.offsetParent).map(e => parseFloat(getComputedStyle(e).fontSize))) >= 12`, "true")
	b.look(1200, 900, "light")
}

// calm holds that nothing jumps while numbers change.
func calm(b *tab, r *run) {
	b.open(r.page.URL)
	b.until(hosts+`.split(" ").length > 6`, "true")
	if got := b.js(`new Promise(done => new PerformanceObserver(l => done(l.getEntries().reduce((n, e) => n + e.value, 0) < 0.01))
		.observe({ type: "layout-shift", buffered: true }) ?? setTimeout(() => done(true), 500))`); got != "true" {
		b.t.Error("the page jumps while it is loaded")
	}
	for _, host := range []string{"", cdn} {
		if host != "" {
			enter(b, host)
			b.until(part("tiles", "Sent")+` !== undefined`, "true")
			b.until(`document.querySelectorAll("#charts canvas").length`, "4")
		}
		b.until(`new Promise(done => requestAnimationFrame(() => setTimeout(() => done("drawn"))))`, "drawn") // what came before is over
		b.js(`(window.jumps = [], window.watch?.disconnect(), window.watch = new PerformanceObserver(l => { for (const e of l.getEntries()) window.jumps.push(e) }), window.watch.observe({ type: "layout-shift" }))`)
		for range 3 {
			before := b.js(`document.body.innerText`)
			r.send(cdn, 7)
			b.until(`document.body.innerText !== `+quote(before), "true")
		}
		const jumps = `window.jumps.filter(e => e.value > 0.001).map(e => e.value + ": " + e.sources.map(s => (s.node?.id || s.node?.className || s.node?.nodeName) + " from " + s.previousRect.y + " to " + s.currentRect.y).join(", ")).join("; ")`
		if got := b.js(jumps); got != "" {
			b.t.Errorf("view of %q: %s", host, got)
		}
	}
	b.js(`location.hash = ""`)
}

func readOnly(b *tab, r *run) {
	enter(b, cdn)
	b.until(part("tiles", "Queue"), "0")
	b.until(`document.getElementById("controls").hidden`, "true")
}

func controls(b *tab, r *run) {
	b.open(r.page.URL)
	enter(b, cdn)
	b.until(`document.getElementById("controls").hidden`, "false")
	press := func(text, state string) {
		b.js(`[...document.querySelectorAll("#controls button")].find(e => e.textContent === ` + quote(text) + `).click()`)
		b.until(`document.getElementById("badge").textContent`, state)
		b.until(`document.querySelector("#controls output").textContent`, "Done.")
	}
	press("Pause for", "paused")
	press("Resume", "ok")
	press("Open circuit", "open")
	if got := r.weir.Circuits().State(cdn); got != breaker.Open {
		b.t.Errorf("the circuit is %v", got)
	}
	b.until(`document.querySelector("#why p").textContent`, "Circuit forced open by hand")
	b.until(part("facts", "Circuit"), "forced open by hand")
	b.until(`document.querySelector("#routes tbody .badge").textContent`, "open")
	if _, err := r.weir.RoundTrip(request(context.Background(), cdn)); err == nil {
		b.t.Error("a request passed a circuit forced open")
	}
	b.until(part("facts", "Refused by it"), "1")
	b.until(part("tiles", "Turned away"), "1")
	press("Release circuit", "ok")
	if got := r.weir.Circuits().State(cdn); got != breaker.Closed {
		b.t.Errorf("the circuit is %v", got)
	}
}

// turnedAway is what the page shows of hosts that refuse: in the list, in the
// view of one, and that what routes refuse adds up with what the circuit does.
func turnedAway(b *tab, r *run) {
	b.open(r.page.URL)
	b.until(summary, "2 of 3 hosts turn requests away")
	b.until(cell(crowded, "state"), "refusing")
	b.until(`Number(`+cell(crowded, "refused")+`) > 8`, "true")
	b.until(cell(crowded, "left"), "0%")
	const width = `getComputedStyle([...document.querySelectorAll("#hosts tbody tr")].find(e => e.querySelector("a").textContent === %s).querySelector(".bar span")).width`
	b.until(fmt.Sprintf(width, quote(crowded)), "0px")
	enter(b, crowded)
	b.until(`document.querySelector("#why").className`, "why card refusing")
	b.until(`document.querySelector("#why p").textContent`, "Most of the latest requests were turned away")
	b.until(`Number(document.querySelector("#routes td.c-refused").textContent) > 8`, "true")
	b.until(`getComputedStyle(document.querySelector("#limits .bar span")).width`, "0px")
	b.js(`location.hash = ""`)
	b.until(cell(shut, "refused"), "4")
	enter(b, shut)
	b.until(part("tiles", "Turned away"), "4")
	b.until(`[...document.querySelectorAll("#routes tbody tr")].map(e => e.querySelector("b").textContent + " " + e.querySelector("td.c-refused").textContent).join(", ")`,
		"GET / 0, any route 4")
	b.until(part("facts", "Answered by the fallback"), "4")
	b.js(`location.hash = ""`)
}
