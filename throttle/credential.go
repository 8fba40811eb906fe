package throttle

import "strings"

// whose is the part of an Authorization header that says for whom it speaks.
// Where requests are signed the rest differs from one to the next: AWS's
// signatures and those made like them, RFC 7616 (Digest), RFC 5849 (OAuth 1),
// RFC 9421's forerunners, Hawk, Azure's SharedKey. Of others it is all.
func whose(header string) string {
	scheme, rest, _ := strings.Cut(header, " ")
	switch strings.ToLower(scheme) {
	case "bearer", "basic":
		return header
	case "aws", "goog1", "oss", "sharedkey", "sharedkeylite":
		id, _, _ := strings.Cut(rest, ":")
		return id
	}
	consumer := ""
	for rest != "" {
		i := strings.IndexAny(rest, ",;&")
		if i < 0 {
			i = len(rest)
		}
		name, value, _ := strings.Cut(strings.TrimSpace(rest[:i]), "=")
		switch strings.ToLower(name) {
		case "credential": // key/date/region/service
			value, _, _ = strings.Cut(value, "/")
			return value
		case "username", "keyid", "id", "oauth_token", "client_token":
			return value
		case "oauth_consumer_key":
			consumer = value
		}
		rest = rest[min(i+1, len(rest)):]
	}
	if consumer != "" {
		return consumer
	}
	return header
}
