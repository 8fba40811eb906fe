package plain

import (
	"errors"
	"testing"
)

// What stands before an "@" may be a password.
func TestTextMasksUserinfo(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "",
		"EOF":                              "EOF",
		"lookup u:p@h: no such host":       "lookup ...@h: no such host",
		`parse "http://u:p@x@h/": bad, a@`: `parse "http://...@...@h/": bad, ...@`,
	} {
		if got := Text(errors.New(text)); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// What was to name a host may be a URL by mistake.
func TestNameMasksSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "",
		"GET api.example.com/v1/*/x": "GET api.example.com/v1/*/x",
		"https://u:p@h/x":            "https://...@h/x",
		"GET u:p@h":                  "GET ...@h",
		"h/x?key=s":                  "h/x...",
		"https://h#s":                "https://h...",
		"https://u:p?p@h/":           "https://...",
		"https://h/x?to=a@b":         "https://h/...",
		"https://h/?a=1\x1b":         "https://h/...",
		"h\x1b":                      `h\x1b`,
	} {
		if got := Name(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// What a server put into the text of an error does nothing to whoever prints it.
func TestTextIsPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"valid for \x1b[31mevil\u202e\r\nlevel=info": `valid for \x1b[31mevil\u202e\r\nlevel=info`,
		"a\x00b\xff\u00e9":                           "a\\x00b\ufffd\u00e9",
		`"quoted" \x1b`:                              `"quoted" \x1b`,
	} {
		if got := Text(errors.New(text)); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}
