// Package page looks at the page of package inspect in a real browser.
package page

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// The machine that runs this may be slow: a browser that starts cold under
// load takes a while, and nothing here depends on speed.
const (
	wholeTest = 5 * time.Minute
	starting  = 2 * time.Minute
)

// browser starts chromium without a window, with a profile of its own.
// Without chromium on this machine the test is skipped, except where CI says
// that nothing may be missing.
func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("chromium is not installed")
		}
		t.Skip("chromium is not installed")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:len(chromedp.DefaultExecAllocatorOptions):len(chromedp.DefaultExecAllocatorOptions)],
		chromedp.ExecPath(path), chromedp.WSURLReadTimeout(starting),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("no-proxy-server", true))
	ctx, cancel := context.WithTimeout(context.Background(), wholeTest)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil { // waits until the process has ended
			t.Log(err)
		}
	})
	return ctx
}

func TestBrowserStarts(t *testing.T) {
	ctx := browser(t)
	if err := chromedp.Do(ctx, chromedp.Navigate("data:text/html,<title>weir</title>")); err != nil {
		t.Fatal(err)
	}
	if title, err := chromedp.Run(ctx, chromedp.Title()); title != "weir" {
		t.Errorf("title %q, %v", title, err)
	}
}
