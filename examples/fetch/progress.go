package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"github.com/weirhttp/weir/throttle"
	"golang.org/x/term"
)

// bar shows how far the run is, on a terminal; elsewhere nothing. The zero bar
// counts already.
type bar struct {
	all     *mpb.Progress
	files   *mpb.Bar
	waiting atomic.Int64 // downloads that wait for budget
	failed  atomic.Int64
	bytes   atomic.Int64
}

// start shows the bar for n files.
func (b *bar) start(w io.Writer, n int) {
	if f, ok := w.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		w = io.Discard
	}
	b.all = mpb.New(mpb.WithOutput(w), mpb.WithWidth(60))
	b.files = b.all.AddBar(int64(n),
		mpb.BarRemoveOnComplete(), // the summary follows
		mpb.PrependDecorators(decor.CountersNoUnit("%d of %d files ")),
		mpb.AppendDecorators(
			decor.Any(func(decor.Statistics) string { return b.text() }),
			decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 8}), ""),
		))
}

// text is what stands behind the bar.
func (b *bar) text() string {
	s := " " + size(b.bytes.Load())
	if n := b.failed.Load(); n > 0 {
		s += fmt.Sprintf(", %d failed", n)
	}
	if n := b.waiting.Load(); n > 0 {
		s += fmt.Sprintf(", %d wait for budget", n)
	}
	return s
}

// wait is told by weir when a request begins to wait and when it is over.
func (b *bar) wait(w throttle.Wait) {
	if w.Over {
		b.waiting.Add(-1)
	} else {
		b.waiting.Add(1)
	}
}

// finished counts one file.
func (b *bar) finished(bytes int64, err error) {
	b.bytes.Add(bytes)
	if err != nil {
		b.failed.Add(1)
	}
	b.files.Increment()
}

// stop takes the bar away.
func (b *bar) stop() {
	b.files.Abort(true)
	b.all.Wait()
}
