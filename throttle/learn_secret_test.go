package throttle

import (
	"strings"
	"testing"
)

// Some APIs have a key in the path. What is said about a kind must not tell it.
func TestKindsDoNotTellKeys(t *testing.T) {
	for rest, want := range map[string]string{
		"":                          "GET /",
		"v1":                        "GET /v1",
		"search-results":            "GET /search-results",
		"bot123456:AAEhBOweik6ad9r": "GET /bot...",
		"0123456789abcdef":          "GET /012...",
		"\x1b[2J":                   "GET /%1B%5B2...",
		strings.Repeat("n", 33):     "GET /nnn...",
		":":                         "GET /...",
	} {
		if got := (kindKey{"GET", rest}).String(); got != want {
			t.Errorf("%q: %q, want %q", rest, got, want)
		}
	}
}
