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
// bytes.Reader or a strings.Reader. Layers need not wrap such a body to watch it, and
// should not: net/http sends it in one piece with the headers only if it is not wrapped.
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

// Unclosable reports that body is what io.NopCloser returns, so that closing it does
// not end a Read that blocks.
func Unclosable(body io.ReadCloser) bool {
	switch reflect.TypeOf(body) {
	case reflect.TypeOf(io.NopCloser(nil)), reflect.TypeOf(io.NopCloser(writerTo{})):
		return true
	}
	return false
}

// writerTo makes io.NopCloser return the second of its two types, which is for readers
// that implement io.WriterTo.
type writerTo struct {
	io.Reader
	io.WriterTo
}

// CloseWrite closes the writing side of w, a connection that was switched to another
// protocol, and leaves it open for reading. httputil.ReverseProxy does so when its client
// has finished. If w has no such method the error is errors.ErrUnsupported.
func CloseWrite(w io.Writer) error {
	if c, ok := w.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}
