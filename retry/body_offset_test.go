package retry_test

import (
	"io"
	"mime/multipart"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirhttp/weir/retry"
)

// swapped is a file whose Read swaps the case of its letters. It has the
// file's ReadAt and Seek.
type swapped struct{ *os.File }

func (s swapped) Read(b []byte) (int, error) {
	n, err := s.File.Read(b)
	for i := range b[:n] {
		b[i] ^= ' '
	}
	return n, err
}

// section is what mime/multipart opens.
type section struct {
	*io.SectionReader
	io.Closer
}

// What is sent of a body is what its Read reads, also of one whose type embeds
// a file. Such a body is not read at an offset, and not sent again.
func TestEmbeddedFileIsRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("body"), 0o600); err != nil {
		t.Fatal(err)
	}
	for kind, tt := range map[string]struct {
		wrap func(*os.File) io.ReadCloser
		want []string
	}{
		"file":           {func(f *os.File) io.ReadCloser { return f }, []string{"body", "body"}},
		"value":          {func(f *os.File) io.ReadCloser { return swapped{f} }, []string{"BODY"}},
		"pointer":        {func(f *os.File) io.ReadCloser { return &swapped{f} }, []string{"BODY"}},
		"twice embedded": {func(f *os.File) io.ReadCloser { return struct{ swapped }{swapped{f}} }, []string{"BODY"}},
		"by interface":   {func(f *os.File) io.ReadCloser { return struct{ multipart.File }{f} }, []string{"body"}},
		"section": {func(f *os.File) io.ReadCloser {
			return section{io.NewSectionReader(strings.NewReader("a body"), 2, 4), f}
		}, []string{"body", "body"}},
	} {
		bubble(t, kind, func(t *testing.T) {
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			r := request(t, "PUT", "http://a.example/", "")
			r.Body, r.ContentLength = tt.wrap(f), 4
			s := play(step{status: 503}, step{status: 200})
			resp, err := newTransport(t, s, retry.Config{}).RoundTrip(r)
			if err != nil || !reflect.DeepEqual(s.bodies, tt.want) {
				t.Errorf("sent %q, want %q; %v, %v", s.bodies, tt.want, resp, err)
			}
			synctest.Wait()
			if _, err := f.Stat(); err == nil {
				t.Error("the file is open")
			}
		})
	}
}
