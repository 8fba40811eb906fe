// Slog logs what weir does: waits, retries, what is learned, and circuits that
// open and close. The hooks are twenty lines; a sampler keeps a busy program's
// log short.
//
//	go run ./examples/slog
package main

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// logged returns c with hooks that log.
func logged(c weir.Config, l *slog.Logger) weir.Config {
	c.Throttle.OnWait = func(w throttle.Wait) {
		if w.Over {
			l.DebugContext(w.Ctx, "waited", "host", w.Key, "took", w.Waited, "granted", w.Granted)
		} else {
			l.InfoContext(w.Ctx, "waiting", "host", w.Key, "for", w.Why, "expect", w.Expect, "ahead", w.Ahead)
		}
	}
	c.Throttle.OnLearn = func(n throttle.Learned) {
		l.InfoContext(n.Ctx, "learned", "host", n.Key, "what", n.Why)
	}
	c.Retry.OnAttempt = func(a retry.Attempt) {
		if a.Reason != retry.Final {
			l.InfoContext(a.Ctx, "attempt failed", "host", a.Host, "number", a.Number, "status", a.Status, "err", a.Err, "then", a.Reason, "delay", a.Delay)
		}
	}
	c.Breaker.OnStateChange = func(s breaker.Change) {
		l.WarnContext(s.Ctx, "circuit", "host", s.Host, "from", s.From, "to", s.To, "why", s.Reason)
	}
	return c
}

func main() {
	text := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug})
	server := httptest.NewServer(new(moody))
	defer server.Close()
	if err := run(context.Background(), slog.New(sample(text, 3, time.Second)), nil, server.URL); err != nil {
		log.Fatal(err)
	}
}

// run makes calls to a host of changing moods.
func run(ctx context.Context, l *slog.Logger, base http.RoundTripper, url string) error {
	transport, err := weir.New(base, logged(weir.Config{
		Throttle: throttle.Config{Default: throttle.MustParseBudget("2/s burst 2")},
		Breaker:  breaker.Config{Consecutive: 2, OpenFor: time.Minute},
	}, l))
	if err != nil {
		return err
	}
	client := &http.Client{Transport: transport}
	for range 8 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return errors.Join(err, transport.Close())
		}
		resp, err := client.Do(req)
		if err != nil {
			l.ErrorContext(ctx, "call failed", "err", err)
			continue
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	return transport.Close()
}
