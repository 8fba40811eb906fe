package trip

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
)

// Ready reports that reading the body of a request can neither block nor fail:
// there is none, or it is what http.NewRequest makes of a bytes.Buffer, a
// bytes.Reader or a strings.Reader. Nobody needs to watch such a body, and
// net/http sends it together with the headers as long as nobody wraps it.
func Ready(body io.ReadCloser) bool {
	if body == nil || body == http.NoBody {
		return true
	}
	if !Unclosable(body) {
		return false
	}
	switch reflect.ValueOf(body).Field(0).Interface().(type) {
	case *bytes.Buffer, *bytes.Reader, *strings.Reader:
		return true
	}
	return false
}

// Unclosable reports that body is what io.NopCloser returns: closing it does
// not free a Read.
func Unclosable(body io.ReadCloser) bool {
	switch reflect.TypeOf(body) {
	case reflect.TypeOf(io.NopCloser(nil)), reflect.TypeOf(io.NopCloser(writerTo{})):
		return true
	}
	return false
}

// writerTo finds the other type that io.NopCloser returns.
type writerTo struct {
	io.Reader
	io.WriterTo
}

// CloseWrite ends what is written to a connection that was switched to another
// protocol and leaves it open for reading, as ReverseProxy does when its client
// has finished.
func CloseWrite(w io.Writer) error {
	if c, ok := w.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}
