// Package pattern is the grammar by which settings name requests:
//
//	[METHOD ]host[:port][/path]
//
// The host is a name, an address, "*" for any host, or "*." and a name for any
// host below that name. A path matches itself and, if it ends in "/", all paths
// below it. A segment "*" of a path matches any one segment that is not empty. A
// pattern without a port matches the scheme's own port only.
package pattern

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/plain"
)

// Pattern is one parsed pattern. Parse makes it. Two that mean the same have the same Text.
type Pattern struct {
	Text   string // canonical spelling
	Method string // in upper case; "": any
	Host   string // as hosts.Canonical spells it; if Wild, what follows "*.", or "" for any host
	Wild   bool   // the host was written "*" or "*.name"
	Path   string // begins with "/"; "": any
}

// HostOnly reports that the pattern names hosts only: it has neither method nor path.
func (p Pattern) HostOnly() bool { return p.Method == "" && p.Path == "" }

// Parse reads a pattern. Its errors quote the pattern, without secrets if it is a URL, and say
// what is wrong with it.
func Parse(text string) (Pattern, error) {
	p := Pattern{}
	rest := text
	if method, tail, ok := strings.Cut(rest, " "); ok {
		if !token(method) {
			return p, fmt.Errorf("pattern %s: %s is not a method", Quote(text), Quote(method))
		}
		p.Method, rest = strings.ToUpper(method), tail
	}
	if scheme, _, ok := strings.Cut(rest, "://"); ok && !strings.Contains(scheme, "/") {
		return p, fmt.Errorf("pattern %s: a pattern has no scheme: leave out %q", Quote(text), scheme+"://")
	}
	host, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	if err := p.host(host); err != nil {
		return p, fmt.Errorf("pattern %s: %w", Quote(text), err)
	}
	if err := p.path(path); err != nil {
		return p, fmt.Errorf("pattern %s: %w", Quote(text), err)
	}
	p.Text = p.text()
	return p, nil
}

// Quote quotes the text of a pattern for an error. Parse may not have looked at it yet.
func Quote(text string) string { return strconv.Quote(plain.Name(text)) }

func (p *Pattern) text() string {
	var b strings.Builder
	if p.Method != "" {
		b.WriteString(p.Method + " ")
	}
	switch {
	case p.Wild && p.Host == "":
		b.WriteString("*")
	case p.Wild:
		b.WriteString("*.")
	}
	b.WriteString(p.Host + p.Path)
	return b.String()
}

func (p *Pattern) host(host string) error {
	name := host
	switch {
	case name == "*":
		p.Wild = true
		return nil
	case strings.HasPrefix(name, "*."):
		p.Wild, name = true, name[2:]
	}
	if name == "" {
		return fmt.Errorf("it names no host")
	}
	if strings.ContainsAny(name, " \t\r\n*@?#%\\") {
		return fmt.Errorf("%s is not a host", Quote(host))
	}
	bare, port, found := name, "", false
	if i := strings.LastIndexByte(name, ':'); i >= 0 && !strings.Contains(name[i:], "]") {
		bare, port, found = name[:i], name[i+1:], true
	}
	if n, err := strconv.ParseUint(port, 10, 16); found && (err != nil || n == 0) {
		return fmt.Errorf("%q is not a port", port)
	}
	if strings.Contains(bare, ":") && !(strings.HasPrefix(bare, "[") && strings.HasSuffix(bare, "]")) {
		return fmt.Errorf("%q: an IPv6 address must be in brackets", host)
	}
	if strings.Trim(bare, ".") == "" || strings.Contains(bare, "..") {
		return fmt.Errorf("%s is not a host", Quote(host))
	}
	p.Host = hosts.Spelled(name)[0] // without a scheme's own port
	return nil
}

func (p *Pattern) path(path string) error {
	if strings.ContainsAny(path, "?# \t\r\n") {
		return fmt.Errorf("path %s: a pattern has no query, fragment or space", Quote(path))
	}
	for _, segment := range strings.Split(path, "/") {
		if strings.Contains(segment, "*") && segment != "*" {
			return fmt.Errorf("path %q: * must be a whole segment of the path", path)
		}
	}
	if path != "/" { // "host/" names all of the host, as "host" does
		p.Path = path
	}
	return nil
}

// Match reports whether the pattern matches r, whose canonical host is host.
func (p *Pattern) Match(host string, r *http.Request) bool {
	return p.MatchHost(host) && p.MatchRoute(r)
}

// MatchHost reports whether the pattern matches a canonical host.
func (p *Pattern) MatchHost(host string) bool {
	if !p.Wild {
		return p.Host == host
	}
	if p.Host == "" {
		return true
	}
	n := len(host) - len(p.Host)
	return n > 1 && host[n-1] == '.' && host[n:] == p.Host
}

// MatchRoute reports whether the pattern matches method and path of r.
func (p *Pattern) MatchRoute(r *http.Request) bool {
	if p.Method != "" && p.Method != r.Method && !(p.Method == "GET" && r.Method == "") {
		return false
	}
	return p.Path == "" || r.URL != nil && matchPath(p.Path, r.URL.Path)
}

func matchPath(pattern, path string) bool {
	if path == "" {
		path = "/"
	}
	for {
		i := strings.IndexByte(pattern[1:], '/')
		j := strings.IndexByte(path[1:], '/')
		want, got := pattern[1:], path[1:]
		if i >= 0 {
			want = pattern[1 : i+1]
		}
		if j >= 0 {
			got = path[1 : j+1]
		}
		if i < 0 && want == "" { // the pattern ends in "/": all below
			return true
		}
		if want != "*" && want != got || want == "*" && got == "" {
			return false
		}
		switch {
		case i < 0 && j < 0:
			return true
		case i < 0 || j < 0:
			return false
		}
		pattern, path = pattern[i+1:], path[j+1:]
	}
}

func token(s string) bool {
	if s == "" {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && s[i] != '-' && s[i] != '_' {
			return false
		}
	}
	return true
}
