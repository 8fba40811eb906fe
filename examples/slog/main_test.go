package main

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// logger returns a logger of text without the time, and what it wrote.
func logger(wrap func(slog.Handler) slog.Handler) (*slog.Logger, *strings.Builder) {
	var b strings.Builder
	text := slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey && len(groups) == 0 {
			return slog.Attr{}
		}
		return a
	}})
	return slog.New(wrap(text)), &b
}

func TestWhatIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, _, stop := testnet.Server(t, new(moody), false)
		defer stop()
		l, b := logger(func(h slog.Handler) slog.Handler { return h })
		if err := run(t.Context(), l, base, "http://moody.example/"); err != nil {
			t.Fatal(err)
		}
		t.Log("\n" + b.String())
		for _, want := range []string{
			"level=INFO msg=waiting host=moody.example",
			"level=DEBUG msg=waited host=moody.example",
			`level=INFO msg="attempt failed" host=moody.example number=1 status=429`,
			`then=retried`,
			"level=WARN msg=circuit host=moody.example from=closed to=open",
			"level=ERROR msg=\"call failed\"",
		} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%q is not in:\n%s", want, b)
			}
		}
	})
}

func TestSampler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, b := logger(func(h slog.Handler) slog.Handler { return sample(h, 2, time.Second) })
		with := l.With("a", 1) // shares the count
		for i := range 4 {
			l.Info("often", "i", i)
			with.Info("often", "i", i)
			l.Warn("grave", "i", i)
		}
		l.Info("rare")
		time.Sleep(time.Second)
		with.WithGroup("g").Info("often", "i", 4)
		time.Sleep(time.Second)
		l.Info("often", "i", 5)
		want := `level=INFO msg=often i=0
level=INFO msg=often a=1 i=0
level=WARN msg=grave i=0
level=WARN msg=grave i=1
level=WARN msg=grave i=2
level=WARN msg=grave i=3
level=INFO msg=rare
level=INFO msg=often a=1 g.i=4 g.left_out=6
level=INFO msg=often i=5
`
		if got := b.String(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}
