// Package caller finds out from the headers of a request who makes it, in the way in which
// servers tell callers apart.
//
// # Words
//
// A caller is text that is the same for all requests of one caller and differs between
// callers. It may be a secret. The key of a caller is a hash of this text under a seed of the
// process. What is learned about a caller is stored by its key, so no secret is stored.
//
// # How it works
//
// The Authorization header decides. If it has a signature, the caller is the name of the key
// that signed. If it has a JSON Web Token (RFC 7519), the caller is whom the token names,
// because programs often get a new token each hour or for each request. In all other cases
// the caller is the whole header.
//
// # What holds
//
// Two headers that a server takes for different callers are different callers here. No
// signature is checked: the server refuses a forged token, which until then shares only what
// is known of limits. The same header gives the same caller in every process.
// To read a token that was read before takes no memory, and no header makes this panic.
package caller

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"hash/maphash"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
)

// Keys gives callers their keys. New makes one. It is safe for concurrent use.
type Keys struct {
	seed maphash.Seed
	read [64]atomic.Pointer[jwt] // a cache of tokens by hash, as most are sent many times; a token replaces another in the same place
}

// New returns Keys with a seed of their own.
func New() *Keys { return &Keys{seed: maphash.MakeSeed()} }

// Key returns the key of a caller; zero if caller is "", which is nobody.
func (k *Keys) Key(caller string) uint64 {
	if caller == "" {
		return 0
	}
	return maphash.String(k.seed, caller)
}

// Of returns who makes a request with these headers, and the key; zero and "": nobody is
// named.
func (k *Keys) Of(h http.Header) (key uint64, caller string) {
	v := h["Authorization"]
	switch {
	case len(v) == 0:
		return 0, ""
	case isJWT(v[0]):
		return k.ofJWT(v[0])
	}
	caller = whose(v[0])
	return k.Key(caller), caller
}

// Digest returns a name for s, which may be a secret: 64 bits of its SHA-256 in hexadecimal.
// It is the same in every process.
func Digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// whose is the part of an Authorization header that names the caller. Where requests are
// signed, the rest differs between requests of the same caller: signatures of AWS and those
// made like them, RFC 7616 (Digest), RFC 5849 (OAuth 1), drafts of RFC 9421, Hawk, Azure's
// SharedKey. For other schemes it is the whole header.
func whose(header string) string {
	if strings.HasPrefix(header, "Bearer ") || strings.HasPrefix(header, "Basic ") {
		return header // by far the most
	}
	scheme, rest, _ := strings.Cut(header, " ")
	switch strings.ToLower(scheme) {
	case "bearer", "basic":
		return header
	case "aws", "goog1", "oss", "sharedkey", "sharedkeylite":
		if id, _, _ := strings.Cut(rest, ":"); id != "" {
			return id
		}
		return header
	}
	consumer := ""
	for field := ""; rest != ""; {
		field, rest = cutField(rest)
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		name = strings.ToLower(name)
		if name == "credential" { // key/date/region/service
			value, _, _ = strings.Cut(value, "/")
		}
		if value == "" || value == `""` {
			continue // it names nobody: OAuth 1 has empty tokens
		}
		switch name {
		case "credential", "username", "keyid", "id", "oauth_token", "client_token":
			return value
		case "oauth_consumer_key":
			consumer = value
		}
	}
	if consumer != "" {
		return consumer
	}
	return header
}

// cutField cuts s after its first field. A separator within quotes does not end a field:
// otherwise users whose names begin alike up to a comma would be one caller.
func cutField(s string) (field, rest string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == ';' || c == '&'):
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// callers are the claims that name the user of a token and its client: RFC 7519, RFC 8693
// (act, client_id), OpenID Connect (azp), and those that name the tenant at Microsoft (tid)
// and Auth0 (org_id).
var callers = []string{"iss", "sub", "act", "client_id", "azp", "tid", "org_id"}

// momentary are the claims that differ between tokens of one caller. If a token has neither
// sub nor client_id, its other claims name the caller.
var momentary = []string{"iat", "exp", "nbf", "jti", "nonce", "auth_time"}

// longestJWT is how many bytes of a token are read at most: servers accept headers of 8 KiB.
const longestJWT = 8 << 10

// isJWT reports whether an Authorization header seems to carry a JWT: its first part
// is a JSON object in base64.
func isJWT(header string) bool {
	scheme, token, _ := strings.Cut(header, " ")
	return strings.HasPrefix(token, "eyJ") && (strings.EqualFold(scheme, "bearer") || strings.EqualFold(scheme, "dpop") || strings.EqualFold(scheme, "jwt"))
}

// jwt is a token that was read, and its caller.
type jwt struct {
	token  uint64 // hash of the header under the seed
	key    uint64 // of the caller
	caller string // what callerIn returned
}

// ofJWT is Of for a header that seems to carry a JWT.
func (k *Keys) ofJWT(header string) (key uint64, caller string) {
	token := k.Key(header)
	place := &k.read[token%uint64(len(k.read))]
	if last := place.Load(); last != nil && last.token == token {
		return last.key, last.caller
	}
	caller = callerIn(header[strings.IndexByte(header, ' ')+1:])
	if caller == "" {
		return token, header
	}
	key = k.Key(caller)
	place.Store(&jwt{token, key, caller})
	return key, caller
}

// callerIn returns a digest of the claims of a JWT that name its caller; "": it is no JWT, or
// names none. It does not check the signature: the server does.
func callerIn(token string) string {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, signed := strings.Cut(rest, ".")
	if !signed || len(token) > longestJWT {
		return ""
	}
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return ""
	}
	var claims map[string]json.RawMessage
	if json.Unmarshal(raw, &claims) != nil {
		return ""
	}
	named := claims["sub"] != nil || claims["client_id"] != nil
	maps.DeleteFunc(claims, func(name string, _ json.RawMessage) bool {
		return named && !slices.Contains(callers, name) || !named && slices.Contains(momentary, name)
	})
	if len(claims) == 0 {
		return ""
	}
	said, err := json.Marshal(claims) // in the order of the names
	if err != nil {
		return ""
	}
	return "jwt " + Digest(string(said))
}
