package outbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
)

// Entry is a kept request, without its body.
type Entry struct {
	ID     string // 16 hex digits; later ones are greater
	Kept   time.Time
	Method string
	URL    string // without userinfo, unless KeepCredentials; the query is as it was
	Host   string // canonical host[:port] of URL: entries of one Host keep their order
	Key    string // what the idempotency header says; "" if the caller asked for none
	Body   int64  // its length in bytes

	Dead   bool   // set aside: Drain does not send it; Requeue puts it back
	Tries  int    // answers so far that count towards MaxTries
	Status int    // of the last answer; zero: none yet
	Reason string // why it is dead, or "": "answer 422", "older than 24h0m0s"
}

// String names the entry without its query: "0000000000000007 POST example.com".
func (e Entry) String() string { return e.ID + " " + e.Method + " " + e.Host }

// record is an Entry as it lies in the file, which never changes there: one
// byte of version, the CRC-32C of what follows it, the length of the JSON, the
// JSON, the body. bbolt checks its meta pages only, hence a sum of our own.
type record struct {
	Kept   time.Time
	Method string
	URL    []byte              // bytes, because JSON strings would not keep
	Alias  []byte              // Request.Host, where it differs from the URL's
	Header map[string][][]byte // what is not UTF-8
	Key    string

	body []byte
}

// note is what changes about an entry; it lies beside the record, so that a
// failed try does not write the body again.
type note struct {
	Tries  int
	Status int
	Reason string `json:",omitempty"`
}

const (
	recordVersion = 1
	recordPrefix  = 1 + 4 + 4
)

// newRecord copies what of r may lie on disk. r carries its key already.
func (s *settings) newRecord(r *http.Request, body []byte, now time.Time) *record {
	u := *r.URL
	u.Fragment, u.RawFragment = "", "" // never sent
	if !s.KeepCredentials {
		u.User = nil
	}
	rec := &record{
		Kept: now.UTC(), Method: r.Method, URL: []byte(u.String()), Key: r.Header.Get(s.KeyHeader),
		Header: make(map[string][][]byte, len(r.Header)), body: body,
	}
	if rec.Method == "" {
		rec.Method = http.MethodGet
	}
	if r.Host != "" && r.Host != u.Host {
		rec.Alias = []byte(r.Host)
	}
	for name, values := range r.Header {
		if s.secrets[textproto.CanonicalMIMEHeaderKey(name)] {
			continue
		}
		lines := make([][]byte, len(values))
		for i, v := range values {
			lines[i] = []byte(v)
		}
		rec.Header[name] = lines
	}
	return rec
}

func (r *record) encode() ([]byte, error) {
	meta, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	b := make([]byte, recordPrefix, recordPrefix+len(meta)+len(r.body))
	b[0] = recordVersion
	binary.BigEndian.PutUint32(b[5:], uint32(len(meta)))
	b = append(append(b, meta...), r.body...)
	binary.BigEndian.PutUint32(b[1:], checksum(b))
	return b, nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b[5:], crc32.MakeTable(crc32.Castagnoli)) }

// decode reads what encode wrote; the record's body is a part of b.
func decode(b []byte) (*record, error) {
	switch {
	case len(b) < recordPrefix:
		return nil, errors.New("too short")
	case b[0] != recordVersion:
		return nil, fmt.Errorf("version %d is not known", b[0])
	case binary.BigEndian.Uint32(b[1:]) != checksum(b):
		return nil, errors.New("checksum mismatch")
	}
	n := int64(binary.BigEndian.Uint32(b[5:]))
	if n > int64(len(b)-recordPrefix) {
		return nil, errors.New("too short")
	}
	var r record
	if err := json.Unmarshal(b[recordPrefix:recordPrefix+n], &r); err != nil {
		return nil, err
	}
	r.body = b[recordPrefix+n:]
	return &r, nil
}

// entry is the record as its owner sees it.
func (r *record) entry(id uint64, n note, dead bool) Entry {
	e := Entry{
		ID: formatID(id), Kept: r.Kept, Method: r.Method, URL: string(r.URL), Key: r.Key, Body: int64(len(r.body)),
		Dead: dead, Tries: n.Tries, Status: n.Status, Reason: n.Reason,
	}
	if u, err := url.Parse(e.URL); err == nil {
		e.Host = hosts.Canonical(u.Scheme, u.Host)
	}
	return e
}

// request builds the request anew. Its body can be read again.
func (r *record) request(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, string(r.URL), bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	if r.Alias != nil {
		req.Host = string(r.Alias)
	}
	for name, lines := range r.Header {
		values := make([]string, len(lines))
		for i, v := range lines {
			values[i] = string(v)
		}
		req.Header[name] = values
	}
	return req, nil
}

// same reports whether the request that will be built from the record is r,
// and one that a transport would send: an entry that never can be would stand
// in the way of all behind it.
func (r *record) same(as *http.Request) bool {
	built, err := r.request(context.Background())
	if err != nil || built.URL.RequestURI() != as.URL.RequestURI() || built.URL.Host != as.URL.Host {
		return false
	}
	if u := built.URL; strings.Contains(u.Hostname(), ":") && u.Host[0] != '[' { // two ports: what net/url thinks of it depends on the program's go.mod
		return false
	}
	for name, values := range built.Header {
		for _, v := range values {
			if strings.ContainsFunc(v, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
				return false
			}
		}
		if !token(name) {
			return false
		}
	}
	return true
}

func formatID(id uint64) string { return fmt.Sprintf("%016x", id) }

func parseID(s string) (uint64, error) {
	id, err := strconv.ParseUint(s, 16, 64)
	if err != nil || formatID(id) != s {
		return 0, fmt.Errorf("outbox: %q is not an id", s)
	}
	return id, nil
}
