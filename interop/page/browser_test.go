// Package page looks at the page of package inspect in a real browser.
package page

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// The machine that runs this may be slow: a browser that starts cold under
// load takes a while. Nothing here depends on speed.
const (
	wholeTest = 8 * time.Minute
	starting  = 2 * time.Minute
	patience  = time.Minute // for one condition to come true
)

// tab is a tab of a browser, and what it has said and asked for.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	errors   []string // on its console
	requests []string // their addresses
}

// browser starts chromium without a window, with a profile of its own.
// Without chromium on this machine the test is skipped, except where CI says
// that nothing may be missing.
func browser(t *testing.T) *tab {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes its time")
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("chromium is not installed")
		}
		t.Skip("chromium is not installed")
	}
	var options []chromedp.ExecAllocatorOption
	options = append(options, chromedp.DefaultExecAllocatorOptions[:]...)
	options = append(options, chromedp.ExecPath(path), chromedp.WSURLReadTimeout(starting),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("no-proxy-server", true))
	ctx, cancel := context.WithTimeout(context.Background(), wholeTest)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.heard); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil { // waits until the process has ended
			t.Log(err)
		}
	})
	return b
}

func (b *tab) heard(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		b.errors = append(b.errors, e.ExceptionDetails.Text+" "+e.ExceptionDetails.URL)
	case *runtime.EventConsoleAPICalled:
		b.errors = append(b.errors, "console."+string(e.Type))
	case *log.EventEntryAdded:
		b.errors = append(b.errors, string(e.Entry.Level)+": "+e.Entry.Text+" "+e.Entry.URL)
	}
}

// in has the same tab report to a subtest.
func (b *tab) in(t *testing.T) *tab {
	c := &tab{t: t, ctx: b.ctx}
	return c
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// js evaluates an expression whose value is text.
func (b *tab) js(expression string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`(async () => String(await (`+expression+`)))()`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return text
}

// until waits for an expression to have a value.
func (b *tab) until(expression, want string) {
	b.t.Helper()
	var got string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if got = b.js(expression); got == want {
			return
		}
	}
	b.t.Fatalf("%s\n got %q\nwant %q", expression, got, want)
}

// open goes to a page and waits for its first frame.
func (b *tab) open(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(address))
	b.until(`document.getElementById("live").textContent`, "live")
}

// look sets the size of the window and the scheme of colours.
func (b *tab) look(width, height int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

func (b *tab) click(selector string) {
	b.t.Helper()
	if got := b.js(`document.querySelectorAll(` + quote(selector) + `).length`); got != "1" {
		b.t.Fatalf("%s elements are %s", got, selector)
	}
	b.do(chromedp.Click(chromedp.CSS(selector)))
}

func (b *tab) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// slash presses the key of the slash. Unlike press it has the browser make
// the character of it, which a page can prevent.
func (b *tab) slash() {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		down := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "/", Code: "Slash", Text: "/"}
		if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, down); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: "/", Code: "Slash"})
		return err
	}))
}

func (b *tab) shot() []byte {
	b.t.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	return picture
}

// quiet holds that the page had nothing to complain about and asked nobody
// but its own server.
func (b *tab) quiet(origins ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.errors {
		b.t.Errorf("on the console: %s", e)
	}
	asked := 0
	for _, r := range b.requests {
		own := r == "about:blank"
		for _, o := range origins {
			if strings.HasPrefix(r, o+"/") {
				own = true
				asked++
			}
		}
		if !own {
			b.t.Errorf("a request to %s", r)
		}
	}
	if asked < 10 {
		b.t.Errorf("only %d requests were seen", asked)
	}
}

func quote(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}
