package outbox

import (
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
	Path string

	// Patterns name the requests that may be kept, as
	// [METHOD ]host[:port][/path], the grammar of throttle.Config.Budgets:
	// "POST api.example.com/v1/events", "*.example.com/hooks/". A pattern
	// without a method does not take GET, HEAD, OPTIONS and TRACE: whoever
	// asks a question has no use for a promise to ask it later.
	Patterns []string

	// FailedStatus lists answers, each from 400 to 599, that count as failed
	// although a response was obtained: that response is closed and the
	// promise returned in its place. Nil: only errors count as failed.
	FailedStatus []int

	// MaxBody is the longest body kept, in bytes. A request with a longer
	// one is sent as if no pattern named it. Zero: 1 MiB.
	MaxBody int64

	// MaxEntries bounds the requests kept, dead ones included. Zero: 10000.
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
	// URL. An error leaves the entry where it is and stops its host for this
	// Drain. Nil: entries are sent as they were kept.
	Prepare func(*http.Request) error

	// Verdict decides about what Drain got for an entry: a response, whose
	// body it may read but need not close, or an error, without the URL that
	// http.Client puts around it. The zero Verdict leaves it to the rule in
	// the package comment. Nil: always that rule.
	Verdict func(Entry, *http.Response, error) Verdict

	// MaxTries is how many answers that say "later" and speak of the entry
	// (408, 409, 421, 425 and 5xx, but not 503) it may get before it is set
	// aside. Zero: 10. Negative: no limit.
	MaxTries int

	// MaxAge sets entries aside that were kept longer ago than this, because
	// servers forget idempotency keys: many do after a day. Zero: no limit.
	MaxAge time.Duration

	// Timeout bounds one sending by Drain, from Prepare to the end of the
	// answer's body. Zero: 5 min.
	Timeout time.Duration

	// Client sends what is drained. It may be the one whose Transport is
	// this outbox: what Drain sends is not kept again. Nil: a client around
	// the base, without cookies, that follows a redirect only if it repeats
	// the request at the same host.
	Client *http.Client
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
	s.MaxBody = orDefault(c.MaxBody, 1<<20)
	s.MaxEntries = orDefault(c.MaxEntries, 10000)
	s.MaxBytes = orDefault(c.MaxBytes, 64<<20)
	s.MaxTries = orDefault(c.MaxTries, 10)
	s.Timeout = orDefault(c.Timeout, 5*time.Minute)
	s.KeyHeader = textproto.CanonicalMIMEHeaderKey(orDefault(c.KeyHeader, "Idempotency-Key"))
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
		return s, fmt.Errorf("outbox: KeyHeader %q is one of the secrets: the key must be kept", s.KeyHeader)
	}
	return s, nil
}

func (s *settings) valid() error {
	switch {
	case s.Path == "":
		return fmt.Errorf("outbox: Path is empty")
	case len(s.Patterns) == 0:
		return fmt.Errorf("outbox: Patterns is empty: nothing would be kept")
	case s.MaxBody < 0:
		return fmt.Errorf("outbox: MaxBody is negative: %d", s.MaxBody)
	case s.MaxEntries < 0:
		return fmt.Errorf("outbox: MaxEntries is negative: %d", s.MaxEntries)
	case s.MaxBytes < 0:
		return fmt.Errorf("outbox: MaxBytes is negative: %d", s.MaxBytes)
	case s.MaxAge < 0:
		return fmt.Errorf("outbox: MaxAge is negative: %v", s.MaxAge)
	case s.Timeout < 0:
		return fmt.Errorf("outbox: Timeout is negative: %v", s.Timeout)
	case s.KeepCredentials && len(s.Secrets) > 0:
		return fmt.Errorf("outbox: KeepCredentials contradicts Secrets %q", s.Secrets)
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

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
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
