// Package caller tells who calls, as servers tell callers apart: the headers of a request go
// in, a caller and its key come out.
//
// # Words
//
// A caller is text that is the same for all requests of one caller and differs between
// callers: it may be a secret. Its key is a hash under a seed of the process, by which what
// is learned is kept, so that no secret is.
//
// # How it works
//
// The Authorization header decides. If it is signed, the caller is the key that signed. If it
// carries a JSON Web Token (RFC 7519), the caller is whom that names, as one caller's tokens
// are often made anew, for each hour or each request. Of any other header it is all.
//
// # What holds
//
// Two headers of which a server would take one for another caller's are not one caller's. No
// signature is checked: whoever forges a token is refused by the server, and shares until then
// only what is known of limits. The same header makes the same caller in every process.
// Reading a token that was read before takes no memory, and no header makes this panic.
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
	read [64]atomic.Pointer[jwt] // tokens, each in a place that its hash says, where the next one takes it. Most callers send one token many times
}

// New returns Keys with a seed of their own.
func New() *Keys { return &Keys{seed: maphash.MakeSeed()} }

// Key is that of a caller; zero: of nobody, which is "".
func (k *Keys) Key(caller string) uint64 {
	if caller == "" {
		return 0
	}
	return maphash.String(k.seed, caller)
}

// Of is who makes a request with these headers, and the key; zero and "": nobody.
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

// Digest names what may be a secret, the same in every process.
func Digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// whose is the part of an Authorization header that says for whom it speaks.
// Where requests are signed the rest differs from one to the next: AWS's
// signatures and those made like them, RFC 7616 (Digest), RFC 5849 (OAuth 1),
// RFC 9421's forerunners, Hawk, Azure's SharedKey. Of others it is all.
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
			continue // nobody's; OAuth 1 has empty tokens
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

// cutField cuts s after its first field. What is quoted is one field's, or two
// users would be one who have the beginning of their names in common.
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

// callers are the claims that say for whom a token speaks and whose client made it:
// RFC 7519, RFC 8693 (act, client_id), OpenID Connect (azp), and what says which of
// an organization's tenants it is, at Microsoft (tid) and Auth0 (org_id).
var callers = []string{"iss", "sub", "act", "client_id", "azp", "tid", "org_id"}

// momentary are the claims that differ between tokens of one caller. What is left
// without them names the caller of a token without sub and client_id.
var momentary = []string{"iat", "exp", "nbf", "jti", "nonce", "auth_time"}

// longestJWT bounds the tokens that are read. Servers take headers of 8 KiB.
const longestJWT = 8 << 10

// isJWT reports whether an Authorization header seems to carry a JWT: its first part
// is a JSON object in base64.
func isJWT(header string) bool {
	scheme, token, _ := strings.Cut(header, " ")
	return strings.HasPrefix(token, "eyJ") && (strings.EqualFold(scheme, "bearer") || strings.EqualFold(scheme, "dpop") || strings.EqualFold(scheme, "jwt"))
}

// jwt is a token and the caller it speaks for.
type jwt struct {
	token  uint64 // keyed hash
	key    uint64 // of whose
	caller string // digest
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

// callerIn is a digest of the claims of a JWT that say for whom it speaks; "": it is
// none, or says nothing. Its signature is the server's to check.
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
