package answer

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/peek"
)

// classify returns what Classify makes of s, in a form that package headers promises. A
// Signal that it calls throttled without a Kind is a quota's.
func (d *Reader) classify(r *http.Request, resp *http.Response, s headers.Signal) headers.Signal {
	shown := *resp
	if shown.Request == nil {
		shown.Request = r
	}
	if shown.Body = http.NoBody; d.Peek > 0 && peek.Readable(resp) {
		start := &startOf{ctx: r.Context(), resp: resp, most: d.Peek}
		defer start.end()
		shown.Body = start
	}
	throttled := s.Throttled
	s = sound(d.Classify(&shown, s))
	if s.Throttled && !throttled && s.Kind == headers.NoKind {
		s.Kind = headers.Quota
	}
	if !s.Throttled {
		s.Kind = headers.NoKind
	}
	return s
}

// startOf is the body that Classify sees: the start of the real one. It is read only if
// Classify calls Read, and not after Classify has returned.
type startOf struct {
	ctx  context.Context
	resp *http.Response
	most int64

	mu   sync.Mutex    // Classify may pass the body to another goroutine
	over bool          // Classify has returned
	text *bytes.Reader // nil: not read yet
}

// Read implements io.Reader.
func (b *startOf) Read(to []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.text == nil {
		if b.over {
			return 0, http.ErrBodyReadAfterClose
		}
		b.text = bytes.NewReader(bytes.Clone(peek.Start(b.ctx, b.resp, b.most)))
	}
	return b.text.Read(to)
}

// Close does nothing: the body is the caller's.
func (b *startOf) Close() error { return nil }

func (b *startOf) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}

// sound returns s without values that package headers never returns, because learning relies
// on what that promises of a Signal. It copies the Limits, which may be Classify's.
func sound(s headers.Signal) headers.Signal {
	const most, name = 64, 256 // limits, and bytes of a name: as many as package headers reads
	s.RetryAfter = wait(s.RetryAfter)
	s.Limits = slices.Clone(s.Limits[:min(len(s.Limits), most)])
	for i := range s.Limits {
		l := &s.Limits[i]
		for _, v := range [...]*headers.Opt[float64]{&l.Quota, &l.Used, &l.Remaining, &l.UsedRatio, &l.Refill, &l.Cost} {
			if !v.Known || !(v.Value >= 0) || math.IsInf(v.Value, 0) {
				*v = headers.Opt[float64]{}
			}
		}
		for _, text := range [...]*string{&l.Name, &l.Unit, &l.Scope, &l.Partition, &l.Source} {
			*text = strings.ToValidUTF8((*text)[:min(len(*text), name)], "")
		}
		l.Reset, l.Window = wait(l.Reset), wait(l.Window)
		if l.Window.Value == 0 {
			l.Window.Known = false
		}
	}
	return s
}

// wait is d, or zero if d is negative.
func wait(d headers.Opt[time.Duration]) headers.Opt[time.Duration] {
	if !d.Known {
		return headers.Opt[time.Duration]{}
	}
	d.Value = max(0, d.Value)
	return d
}
