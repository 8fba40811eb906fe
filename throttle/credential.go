package throttle

import (
	"hash/maphash"
	"net/http"
	"strings"
)

// credentialOf is the key under which a request's credential is kept: a keyed
// hash, so that no secret is, and the credential itself, which is not to be kept.
// Zero: it has none.
func (t *Transport) credentialOf(r *http.Request) (key uint64, credential string) {
	switch {
	case t.config.Credential != nil:
		credential = t.config.Credential(r)
	default:
		if h := r.Header["Authorization"]; len(h) > 0 {
			if isJWT(h[0]) {
				return t.callerOfJWT(h[0])
			}
			credential = whose(h[0])
		}
	}
	if credential == "" {
		return 0, ""
	}
	return maphash.String(t.learning.seed, credential), credential
}

// whose is the part of an Authorization header that says for whom it speaks.
// Where requests are signed the rest differs from one to the next: AWS's
// signatures and those made like them, RFC 7616 (Digest), RFC 5849 (OAuth 1),
// RFC 9421's forerunners, Hawk, Azure's SharedKey. Of others it is all.
func whose(header string) string {
	scheme, rest, _ := strings.Cut(header, " ")
	if strings.EqualFold(scheme, "bearer") || strings.EqualFold(scheme, "basic") {
		return header // by far the most
	}
	switch strings.ToLower(scheme) {
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
