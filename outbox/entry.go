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
	Host   string // canonical host[:port] of URL
	Queue  string // Host, or what Config.Key said: entries of one Queue keep their order
	Key    string // what the idempotency header says; "" if the caller asked for none
	Body   int64  // its length in bytes

	Dead   bool   // set aside: Drain does not send it; Requeue puts it back
	Tries  int    // answers so far that count towards MaxTries
	Status int    // of the last answer; zero: none yet
	Reason string // why it is dead, or "": "answer 422", "older than 24h0m0s"
}

// String names the entry without its query: "0000000000000007 POST example.com".
func (e Entry) String() string { return e.ID + " " + e.Method + " " + e.Host }

// record is an Entry as it lies in the file, which never changes there:
//
//	1 byte   version: 2
//	4 bytes  CRC-32C of all that follows, because bbolt checks its meta pages only
//	4 bytes  length of the JSON
//	8 bytes  Kept, in nanoseconds since 1970
//	2 bytes  length of the queue's name
//	         the queue's name, the JSON, the body
//
// What opening a file needs of it stands before the JSON. Version 1 has neither
// Kept nor the queue's name there: such entries queue by their host.
type record struct {
	Kept   time.Time
	Method string
	URL    []byte              // bytes, because JSON strings would not keep
	Alias  []byte              // Request.Host, where it differs from the URL's
	Header map[string][][]byte // what is not UTF-8
	Key    string

	queue string
	body  []byte
}

// note is what changes about an entry; it lies beside the record, so that a
// failed try does not write the body again.
type note struct {
	Tries  int
	Status int
	Reason string `json:",omitempty"`

	Requeued time.Time `json:",omitzero"` // its age counts from here
}

const (
	recordVersion = 2
	recordPrefix  = 1 + 4 + 4
	recordPrefix2 = recordPrefix + 8 + 2
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
		Header: make(map[string][][]byte, len(r.Header)), queue: s.queueOf(r), body: body,
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
	b := make([]byte, recordPrefix2, recordPrefix2+len(r.queue)+len(meta)+len(r.body))
	b[0] = recordVersion
	binary.BigEndian.PutUint32(b[5:], uint32(len(meta)))
	binary.BigEndian.PutUint64(b[9:], uint64(r.Kept.UnixNano()))
	binary.BigEndian.PutUint16(b[17:], uint16(len(r.queue)))
	b = append(append(append(b, r.queue...), meta...), r.body...)
	binary.BigEndian.PutUint32(b[1:], checksum(b))
	return b, nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b[5:], crc32.MakeTable(crc32.Castagnoli)) }

// peek checks what encode wrote and reads what stands before the JSON. meta is
// the rest: n bytes of JSON, and the body.
func peek(b []byte) (kept int64, queue string, meta []byte, n int64, err error) {
	if len(b) < recordPrefix {
		return 0, "", nil, 0, errors.New("too short")
	}
	if b[0] != 1 && b[0] != recordVersion {
		return 0, "", nil, 0, fmt.Errorf("version %d is not known", b[0])
	}
	if binary.BigEndian.Uint32(b[1:]) != checksum(b) {
		return 0, "", nil, 0, errors.New("checksum mismatch")
	}
	n = int64(binary.BigEndian.Uint32(b[5:]))
	meta = b[recordPrefix:]
	if b[0] == recordVersion {
		if len(b) < recordPrefix2 || len(b)-recordPrefix2 < int(binary.BigEndian.Uint16(b[17:])) {
			return 0, "", nil, 0, errors.New("too short")
		}
		kept = int64(binary.BigEndian.Uint64(b[9:]))
		meta = b[recordPrefix2+int(binary.BigEndian.Uint16(b[17:])):]
		queue = string(b[recordPrefix2 : len(b)-len(meta)])
	}
	if n > int64(len(meta)) {
		return 0, "", nil, 0, errors.New("too short")
	}
	return kept, queue, meta, n, nil
}

// decode reads what encode wrote; the record's body is a part of b.
func decode(b []byte) (*record, error) {
	_, queue, meta, n, err := peek(b)
	if err != nil {
		return nil, err
	}
	r := record{queue: queue, body: meta[n:]}
	if err := json.Unmarshal(meta[:n], &r); err != nil {
		return nil, err
	}
	if b[0] == 1 {
		r.queue = r.host()
	}
	return &r, nil
}

// place says when and in which queue a record was kept, without reading all of
// it where its version allows.
func place(b []byte) (kept int64, queue string, err error) {
	kept, queue, _, _, err = peek(b)
	if err != nil || b[0] != 1 {
		return kept, queue, err
	}
	r, err := decode(b)
	if err != nil {
		return 0, "", err
	}
	return r.Kept.UnixNano(), r.queue, nil
}

// host is the canonical host of the record's URL.
func (r *record) host() string {
	u, err := url.Parse(string(r.URL))
	if err != nil {
		return ""
	}
	return hosts.Canonical(u.Scheme, u.Host)
}

// entry is the record as its owner sees it.
func (r *record) entry(id uint64, n note, dead bool) Entry {
	return Entry{
		ID: formatID(id), Kept: r.Kept, Method: r.Method, URL: string(r.URL), Host: r.host(), Queue: r.queue, Key: r.Key, Body: int64(len(r.body)),
		Dead: dead, Tries: n.Tries, Status: n.Status, Reason: n.Reason,
	}
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
