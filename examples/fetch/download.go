package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/breaker"
)

// tries is how often a download is begun whose body breaks off. (What happens
// before the body is weir's business.)
const tries = 3

// downloader downloads jobs into a folder.
type downloader struct {
	client   *http.Client
	state    func(host string) breaker.State
	folder   *os.Root // nothing is written outside, whatever links stand in it
	again    bool
	patience time.Duration // with a host whose circuit is not closed
}

// open makes sure of the folder before anything is requested: it exists and
// files can be made in it.
func open(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("no folder to write into: %w", err)
	}
	folder, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("no folder to write into: %w", err)
	}
	f, name, err := part(folder, ".")
	if err != nil {
		var wrapped *fs.PathError
		if errors.As(err, &wrapped) {
			err = wrapped.Err // its text has the temporary name
		}
		return nil, errors.Join(fmt.Errorf("cannot write into %s: %w", dir, err), folder.Close())
	}
	return folder, errors.Join(f.Close(), folder.Remove(name))
}

// part creates a temporary file in dir. A name that is left behind by a crash
// is never taken for a finished download.
func part(folder *os.Root, dir string) (*os.File, string, error) {
	name := path.Join(dir, ".fetch-"+rand.Text()+".part")
	f, err := folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	return f, name, err
}

var errDown = errors.New("not tried: the host is down")

// get downloads j unless it is there already or its host is known to be down,
// which it notes. bytes is the size of the body that was written.
func (d *downloader) get(ctx context.Context, j job, down *atomic.Bool) (bytes int64, skipped bool, err error) {
	switch info, err := d.folder.Stat(j.file); {
	case err == nil && info.IsDir():
		return 0, false, fmt.Errorf("%s is a folder", j.file)
	case err == nil && !d.again:
		return 0, true, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return 0, false, err
	case down.Load():
		return 0, false, errDown
	}
	begun := time.Now()
	for range tries {
		var broken bool
		bytes, broken, err = d.try(ctx, j)
		if err == nil || !broken || ctx.Err() != nil {
			break
		}
	}
	if err != nil && time.Since(begun) >= d.patience && d.state(j.host) != breaker.Closed {
		down.Store(true) // patience is over, for all files of this host
	}
	return bytes, false, err
}

// try makes one request and writes its body. broken means that the body ended
// too early.
func (d *downloader) try(ctx context.Context, j job) (bytes int64, broken bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, j.url.String(), nil)
	if err != nil {
		return 0, false, err
	}
	resp, err := d.client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // its text repeats the URL
		}
		return 0, false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, false, fmt.Errorf("the server said %s", resp.Status)
	}
	body := &source{r: resp.Body}
	bytes, err = d.save(body, j.file)
	return bytes, body.err != nil, err
}

// source remembers whether reading failed, as opposed to writing.
type source struct {
	r   io.Reader
	err error // other than io.EOF
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// save writes r to file: under a temporary name first, so that the final name
// only ever stands for a whole file, also after a crash.
func (d *downloader) save(r io.Reader, file string) (bytes int64, err error) {
	dir := path.Dir(file)
	if err := d.folder.MkdirAll(dir, 0o777); err != nil {
		return 0, err
	}
	f, name, err := part(d.folder, dir)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			f.Close() // a second time, if Close is what failed
			d.folder.Remove(name)
		}
	}()
	if bytes, err = io.Copy(f, r); err != nil {
		return 0, err
	}
	if err = f.Sync(); err != nil {
		return 0, err
	}
	if err = f.Close(); err != nil {
		return 0, err
	}
	return bytes, d.folder.Rename(name, file)
}
