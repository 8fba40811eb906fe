// Package plain makes texts that may be shown to people, of errors most of all. They have no
// secrets of the caller's, and nothing that a server may have put there to do harm.
package plain

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// Longest is how many bytes are shown of one error: enough for the errors of net/http,
// which quote what a server sent. A server may send a megabyte instead of a status line.
const Longest = 300

// Text is an error's text without the URLs that *url.Errors put before it. The word
// before each "@" is masked, as it may be user information: net/http tries to dial it if
// it is in a URL.Host that nobody parsed, and quotes it. A text longer than Longest is
// cut and ends in "...", and characters that cannot be printed are escaped.
func Text(err error) string {
	text := userinfo(Bare(err).Error())
	if len(text) > Longest {
		text = strings.ToValidUTF8(text[:Longest], "") + "..."
	}
	return printable(text)
}

// Name is what was to name a host or requests, as it may be shown. It may be a URL by
// mistake, so user information, query and fragment are left out.
func Name(text string) string {
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		if strings.Contains(text[i:], "@") { // it may be part of a password
			i = 1 + strings.LastIndexAny(text[:i], " /")
		}
		text = text[:i] + "..."
	}
	return printable(userinfo(text))
}

// printable escapes control characters, which a terminal would obey. A server may have
// put them into the names of its certificate, and net/http does not escape these.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if !strconv.IsPrint(r) {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Bare is the error within the innermost *url.Error of err, or err if it has none. There
// may be several, one within the other, if a base RoundTripper is itself an http.Client.
func Bare(err error) error {
	for u := (*url.Error)(nil); errors.As(err, &u) && u.Err != nil; {
		err = u.Err
	}
	return err
}

// userinfo masks the word before each "@" of text.
func userinfo(text string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '@')
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:1+strings.LastIndexAny(text[:i], ` /"'(`)] + "...@")
		text = text[i+1:]
	}
}
