package outbox

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"github.com/weirhttp/weir/internal/pattern"
)

// Config says which requests are kept, where, and how they are sent later.
// Path and Patterns are required; everything else has the default that its
// comment names.
type Config struct {
	// Path is the file. It is created with mode 0600, and brought to that
	// mode if it is wider; its directory must exist. One process at a time
	// can have it open. One that is killed while it creates the file may
	// leave a small Path.*.new behind, which nothing needs.
	//
	// It is a bbolt database. A write is synced before it counts; a process
	// killed at any instruction leaves a file that opens and holds all it had
	// promised. Concurrent writes share one sync. An open outbox needs some 20
	// bytes of memory for each entry, and the bodies of those on their way.
	//
	// While the disk is full nothing more can be kept, which is an error, but
	// what is kept is still delivered and removed. The file has up to 1 MiB to
	// spare for that.
	//
	// The space of entries that are gone is used again, so the file is as large
	// as the most it ever held. If more than half of it is free, New writes it
	// anew, small. So a program that runs for months and once held much can Close
	// its outbox and open it again. A file made by an earlier version opens as it
	// is; an earlier version refuses a file of a newer format that has entries in
	// it.
	Path string

	// Patterns name the requests that may be kept, as
	// [METHOD ]host[:port][/path], the grammar of throttle.Config.Budgets:
	// "POST api.example.com/v1/events", "*.example.com/hooks/". A pattern
	// without a method does not name GET, HEAD, OPTIONS and TRACE, because
	// their callers have no use for an answer that is fetched later. Nil is
	// an error; if it is empty, only what is given to Enqueue is kept.
	Patterns []string

	// KeepFirst writes each request that a pattern names to the file before
	// anything of it is sent, and answers 202 as soon as it is on the disk.
	// Drain or Run then send it. False: requests are sent first, and kept if
	// that fails.
	KeepFirst bool

	// Key names the queue of a request: entries of one queue are sent one
	// after the other in the order in which they were kept; those of others
	// do not wait for them. It must not read the body. What it says is kept
	// in the file and shown in Stats, so it must not be a secret; of long
	// names the first 200 bytes are shown. An entry stays in the queue it was
	// kept in. Nil, or "": the host.
	Key func(*http.Request) string

	// Concurrency is how many entries, each of another queue, may be on their
	// way at a time. Zero: 16.
	//
	// However many hosts hang, half of these places are for queues whose last
	// try was answered. At most a quarter of them are for queues whose last try
	// was not answered. The rest are for queues that have not been tried. An
	// entry that has been on its way for 5 s, or for twice as long as the last
	// answer of its queue took, is ended if another queue waits for its place;
	// it is sent again later, with the same key. So a queue that has not been
	// tried waits at most 5 s for every Concurrency/4 queues that hang and
	// stand before it. If Concurrency is less than 4, it may wait for Timeout.
	Concurrency int

	// FailedStatus lists answers, each from 400 to 599, that count as failed
	// although there was a response. The response is closed, and the caller
	// gets the 202 instead. Nil: only errors count as failed.
	FailedStatus []int

	// MaxBody is the longest body kept, in bytes. With KeepFirst, a request
	// with a longer one is refused; otherwise it is sent as if no pattern named it.
	// Zero: 1 MiB.
	MaxBody int64

	// MaxEntries bounds the requests kept, dead ones included: some 20 bytes
	// of memory for each. Zero: 10000.
	MaxEntries int

	// MaxBytes bounds the sum of what is kept: headers and bodies, dead
	// entries included. The file is larger, by up to a page for each entry
	// and by the free pages it keeps for reuse. Zero: 64 MiB.
	MaxBytes int64

	// KeyHeader is the header that carries the idempotency key. A request
	// without it gets it before it is first sent; one that has it, even
	// without a value, is left as it is. Empty: "Idempotency-Key".
	KeyHeader string

	// KeepCredentials keeps all headers and the URL's userinfo. False: what
	// Secrets names is left out, and Prepare puts it back.
	KeepCredentials bool

	// Secrets names headers that are not kept, beside Authorization,
	// Proxy-Authorization, Cookie, X-Api-Key, Api-Key, X-Auth-Token,
	// X-Goog-Api-Key, X-Amz-Security-Token, Ocp-Apim-Subscription-Key and
	// Private-Token.
	Secrets []string

	// Prepare is called with each request that Drain is about to send, to
	// put credentials or a signature back. It may change the header and the
	// URL. An error leaves the entry where it is and stops its queue for this
	// Drain. It may be called for several queues at a time. Nil: entries are
	// sent as they were kept.
	Prepare func(*http.Request) error

	// Verdict decides about what Drain got for an entry: a response, whose
	// body it may read but need not close, or an error, without the URL that
	// http.Client puts around it. The zero Verdict leaves it to the rule of
	// Transport.Drain. It may be called for several queues at a time.
	// Nil: always that rule.
	Verdict func(Entry, *http.Response, error) Verdict

	// MaxTries is how many answers that say "later" and speak of the entry
	// (408, 409, 421, 425 and 5xx, but not 503) it may get before it is set
	// aside. Zero: 10. Negative: no limit.
	MaxTries int

	// MaxAge sets entries aside that were kept, or requeued, longer ago than
	// this, because servers forget idempotency keys, many of them after a
	// day. An entry whose time is up is not sent any more. Zero: no limit.
	MaxAge time.Duration

	// Timeout bounds one sending by Drain, from Prepare to the end of the
	// answer's body; see Concurrency for what may end it before. Zero: 5 min.
	Timeout time.Duration

	// Client sends what is drained. It may be the one whose Transport is
	// this outbox: what Drain sends is not kept again. Nil: a client around
	// the base, without cookies, that follows a redirect only if it repeats
	// the request at the same host.
	Client *http.Client

	// OnStuck is called after each try that leaves an entry where it is, and
	// its queue waiting behind it; also one that was ended because other
	// queues waited (see Concurrency). OnDrained is called when the last pending
	// entry of a queue that was stuck, or that New found in the file, was
	// delivered or set aside. They are called by the Drain or Run that tried,
	// without locks, for several queues at a time, and hold up no other queue.
	OnStuck   func(Stuck)
	OnDrained func(Drained)
}

// Stuck is a queue whose first entry could not be delivered.
type Stuck struct {
	Ctx     context.Context // of the Drain or Run
	Queue   string
	Entry   Entry
	Err     error     // an *Error
	Since   time.Time // the first try without success in a row
	Tries   int       // since then
	Pending int       // entries in the queue
}

// Drained is a queue that has nothing pending any more.
type Drained struct {
	Ctx   context.Context // of the Drain or Run
	Queue string
	Since time.Time // when its backlog began: it got stuck, or New found it so
}

// settings is a Config with its defaults in place and its names looked up.
type settings struct {
	Config
	patterns []pattern.Pattern
	secrets  map[string]bool // canonical header names
}

func (c Config) settle() (settings, error) {
	s := settings{Config: c}
	if err := s.valid(); err != nil {
		return s, err
	}
	s.MaxBody = cmp.Or(c.MaxBody, 1<<20)
	s.MaxEntries = cmp.Or(c.MaxEntries, 10000)
	s.MaxBytes = cmp.Or(c.MaxBytes, 64<<20)
	s.MaxTries = cmp.Or(c.MaxTries, 10)
	s.Timeout = cmp.Or(c.Timeout, 5*time.Minute)
	s.Concurrency = cmp.Or(c.Concurrency, 16)
	s.KeyHeader = textproto.CanonicalMIMEHeaderKey(cmp.Or(c.KeyHeader, "Idempotency-Key"))
	s.FailedStatus = append([]int(nil), c.FailedStatus...)
	for _, text := range c.Patterns {
		p, err := pattern.Parse(text)
		if err != nil {
			return s, fmt.Errorf("outbox: Patterns: %w", err)
		}
		s.patterns = append(s.patterns, p)
	}
	s.secrets = make(map[string]bool)
	if !c.KeepCredentials {
		for _, name := range append(credentials(), c.Secrets...) {
			s.secrets[textproto.CanonicalMIMEHeaderKey(name)] = true
		}
	}
	if s.secrets[s.KeyHeader] {
		return s, fmt.Errorf("outbox: KeyHeader %q is a header that is not kept, but the key must be", s.KeyHeader)
	}
	return s, nil
}

func (s *settings) valid() error {
	switch {
	case s.Path == "":
		return fmt.Errorf("outbox: Path is empty")
	case s.Patterns == nil:
		return fmt.Errorf("outbox: Patterns is nil: name the requests to keep, or set it to []string{} if all requests are given to Enqueue")
	case s.MaxBody < 0:
		return fmt.Errorf("outbox: MaxBody is negative: %d", s.MaxBody)
	case s.MaxEntries < 0:
		return fmt.Errorf("outbox: MaxEntries is negative: %d", s.MaxEntries)
	case s.MaxBytes < 0:
		return fmt.Errorf("outbox: MaxBytes is negative: %d", s.MaxBytes)
	case s.Concurrency < 0:
		return fmt.Errorf("outbox: Concurrency is negative: %d", s.Concurrency)
	case s.MaxAge < 0:
		return fmt.Errorf("outbox: MaxAge is negative: %v", s.MaxAge)
	case s.Timeout < 0:
		return fmt.Errorf("outbox: Timeout is negative: %v", s.Timeout)
	case s.KeepCredentials && len(s.Secrets) > 0:
		return fmt.Errorf("outbox: KeepCredentials is set, and so are Secrets %q, which are not kept", s.Secrets)
	case s.KeyHeader != "" && !token(s.KeyHeader):
		return fmt.Errorf("outbox: KeyHeader %q is not a header name", s.KeyHeader)
	}
	for _, name := range s.Secrets {
		if !token(name) {
			return fmt.Errorf("outbox: Secrets: %q is not a header name", name)
		}
	}
	for _, status := range s.FailedStatus {
		if status < 400 || status > 599 {
			return fmt.Errorf("outbox: FailedStatus: %d is not between 400 and 599", status)
		}
	}
	return nil
}

// credentials are the headers that are never kept unless KeepCredentials says so.
func credentials() []string {
	return []string{
		"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "Api-Key", "X-Auth-Token",
		"X-Goog-Api-Key", "X-Amz-Security-Token", "Ocp-Apim-Subscription-Key", "Private-Token",
	}
}

// token reports whether s can be a method or the name of a header (RFC 9110,
// section 5.6.2).
func token(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		alphanumeric := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		if !alphanumeric && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}
