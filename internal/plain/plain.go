// Package plain shows errors to people: without what may be secret, nor what a
// server may have put there to do harm.
package plain

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// Longest is how much is shown of one error: net/http quotes what a server
// sent, and a server may send a megabyte where a status line should be.
const Longest = 300

// Text is an error's text without the URLs that *url.Errors put before it,
// and without what stands before an "@": in a URL.Host that nobody parsed, say,
// which net/http then tries to dial.
func Text(err error) string {
	text := userinfo(Bare(err).Error())
	if len(text) > Longest {
		text = strings.ToValidUTF8(text[:Longest], "") + "..."
	}
	return printable(text)
}

// printable escapes what no terminal should get, such as a server may have put
// into its certificate's names, which net/http shows as they are.
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

// Bare is what the innermost *url.Error of err is about. A base may be a client
// itself, and so may that one's.
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
