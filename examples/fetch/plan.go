package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"
	"unicode"
)

// job is one URL to download.
type job struct {
	url  *url.URL
	host string // as it stands in the summary: lower case, the port only if it is not the scheme's own
	file string // where it goes: slash-separated, below the folder
}

// text is the URL as it is shown: without a password.
func (j job) text() string { return j.url.Redacted() }

// plan turns the URLs among args and in list, one a line, into jobs: each URL
// once, each file name once. A line that begins with # is a comment. The error
// names every bad URL and where it stands.
func plan(args []string, listName string, list io.Reader) ([]job, error) {
	var jobs []job
	var errs []error
	seen := map[string]bool{}
	add := func(where, text string) {
		j, err := parse(text)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", where, err))
		case !seen[j.url.String()]:
			seen[j.url.String()] = true
			jobs = append(jobs, j)
		}
	}
	for i, arg := range args {
		add(fmt.Sprintf("argument %d", i+1), arg)
	}
	if list != nil {
		lines := bufio.NewScanner(list)
		lines.Buffer(nil, 1<<20)
		for n := 1; lines.Scan(); n++ {
			if line := strings.TrimSpace(lines.Text()); line != "" && line[0] != '#' {
				add(fmt.Sprintf("%s:%d", listName, n), line)
			}
		}
		if err := lines.Err(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", listName, err))
		}
	}
	separate(jobs)
	return jobs, errors.Join(errs...)
}

// parse reads one URL.
func parse(text string) (job, error) {
	u, err := url.Parse(text)
	if err != nil {
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err // without the text, which may hold a password
		}
		return job{}, fmt.Errorf("not a URL: %w", err)
	}
	u.Fragment, u.RawFragment = "", "" // never sent
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return job{}, fmt.Errorf("%q is not an http or https URL", u.Redacted())
	case u.Hostname() == "":
		return job{}, fmt.Errorf("%q has no host", u.Redacted())
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if p := u.Port(); p != "" && p != map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		host += ":" + p
	}
	return job{url: u, host: host, file: name(host, u)}, nil
}

// name is the file for a URL: its host and its path, as folders, the query
// after an @. Every segment is a plain file name on any system: no separators,
// no "..", at most 200 bytes.
func name(host string, u *url.URL) string {
	parts := []string{segment(strings.ReplaceAll(host, ":", "_"))}
	for _, s := range strings.Split(u.EscapedPath(), "/") {
		if decoded, err := url.PathUnescape(s); err == nil && decoded != "" {
			parts = append(parts, segment(decoded))
		}
	}
	if u.Path == "" || strings.HasSuffix(u.Path, "/") {
		parts = append(parts, "index.html")
	}
	if u.RawQuery != "" {
		last := len(parts) - 1
		parts[last] = segment(parts[last] + "@" + u.RawQuery)
	}
	return path.Join(parts...)
}

// segment makes s a file name: what is neither a letter, a digit nor one of a
// few signs is written as %XX.
func segment(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.~+@=,()%&", r) {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(string(r)) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	safe := b.String()
	if strings.Trim(safe, ".") == "" {
		safe = strings.ReplaceAll(safe, ".", "%2E")
	}
	if len(safe) > 200 {
		safe = strings.ToValidUTF8(safe[:180], "") + "~" + digest(s)
	}
	return safe
}

// separate gives jobs whose files would collide, also on a system that ignores
// case, or would be a folder to others, a suffix from their URL. It depends on
// no order, so that the next run finds the same names.
func separate(jobs []job) {
	files, folders := map[string]int{}, map[string]bool{}
	for _, j := range jobs {
		key := strings.ToLower(j.file)
		files[key]++
		for dir := path.Dir(key); dir != "."; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	for i, j := range jobs {
		if key := strings.ToLower(j.file); files[key] > 1 || folders[key] {
			jobs[i].file += "~" + digest(j.url.String())
		}
	}
}

// digest is eight hex digits of s's hash.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}
