package retry

import (
	"crypto/rand"
	"fmt"
	"net/http"
)

// RandomKey is a Config.IdempotencyKey: a random UUID (RFC 9562 version 4).
func RandomKey(*http.Request) string {
	var b [16]byte
	rand.Read(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// addKey names the request if it needs a name. The header is copied: the
// caller's stays as it is.
func (l *loop) addKey() {
	r := l.r
	if r.Method != http.MethodPost && r.Method != http.MethodPatch || keyed(r) {
		return
	}
	key := l.c.IdempotencyKey(r)
	if key == "" {
		return
	}
	l.r = copyOf(r)
	l.r.Header = make(http.Header, len(r.Header)+1)
	for name, values := range r.Header {
		l.r.Header[name] = values
	}
	l.r.Header["Idempotency-Key"] = []string{key}
}
