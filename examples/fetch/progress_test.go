package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weirhttp/weir/throttle"
)

func TestBarSaysWhatIsGoingOn(t *testing.T) {
	var w bytes.Buffer
	b := new(bar)
	b.start(&w, 4)
	b.finished(2048, nil)
	b.finished(0, errors.New("no"))
	b.wait(throttle.Wait{})
	b.wait(throttle.Wait{})
	b.wait(throttle.Wait{Over: true})
	if got, want := b.text(), " 2.0 KiB, 1 failed, 1 wait for budget"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := b.files.Current(); got != 2 {
		t.Errorf("the bar stands at %d files, want 2", got)
	}
	b.stop()
	if w.Len() != 0 {
		t.Errorf("%q was written to what is no terminal", w.String())
	}
}
