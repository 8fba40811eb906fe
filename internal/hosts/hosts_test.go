package hosts

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unsafe"
)

func TestOneHostHasOneName(t *testing.T) {
	tests := []struct{ scheme, host, want string }{
		{"https", "api.github.com", "api.github.com"},
		{"HTTPS", "API.GitHub.com:443", "api.github.com"},
		{"http", "h:80", "h"},
		{"http", "h:443", "h:443"},
		{"https", "h:80", "h:80"},
		{"https", "h.", "h"},
		{"https", "H.:8443", "h:8443"},
		{"https", "h:", "h"},
		{"http", "[::1]:80", "[::1]"},
		{"http", "[::1]", "[::1]"},
		{"http", "[::1]:8080", "[::1]:8080"},
		{"", "h:80", "h:80"},
		{"http", "", ""},
		{"http", ":80", ":80"},
		{"https", ":443", ":443"},
		{"http", ":", ""},
		{"http", "user:pass@H:80", "h"},
		{"http", "a@b@[::1]:8080", "[::1]:8080"},
		{"http", "h:080", "h"},
		{"https", "h:00443", "h"},
		{"http", "h.:08080", "h:8080"},
		{"http", "h:00", "h:0"},
		{"http", ":080", ":80"},
		{"http", "[0:0::1]", "[::1]"},
		{"http", "[0:0:0:0:0:0:0:1]:080", "[::1]"},
		{"http", "[2001:0DB8::0:1]:8080", "[2001:db8::1]:8080"},
		{"http", "[::FFFF:1.2.3.4]:8080", "[::ffff:1.2.3.4]:8080"},
		{"http", "[FE80:0::1%en0]", "[fe80::1%en0]"},
		{"http", "[::x]:8080", "[::x]:8080"},
		{"http", "[", "["},
	}
	for _, tt := range tests {
		if got := Canonical(tt.scheme, tt.host); got != tt.want {
			t.Errorf("Canonical(%q, %q) = %q, want %q", tt.scheme, tt.host, got, tt.want)
		}
	}
	for _, host := range []string{"api.github.com", "api.github.com:8443", "[2001:db8::1]", "[::1]:8080"} {
		r := &http.Request{Host: "evil", URL: &url.URL{Scheme: "https", Host: host}}
		if n := testing.AllocsPerRun(100, func() {
			if Key(r) != host {
				t.Errorf("Key is %q, not the URL's host %q", Key(r), host)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", host, n)
		}
	}
	if got := Key(&http.Request{Host: "evil"}); got != "" {
		t.Errorf("Key without a URL = %q", got)
	}
}

func TestSpelled(t *testing.T) {
	tests := []struct{ host, want string }{
		{"API.GitHub.com.", "api.github.com"},
		{"h:443", "h h:443"},
		{"h:80", "h h:80"},
		{"h:8080", "h:8080"},
		{"[::1]:443", "[::1] [::1]:443"},
		{"https://h", "h"},
		{"https://H:443/a:b?c", "h"},
		{"http://h:443#x", "h:443"},
		{"https://u:p@h:8443/", "h:8443"},
		{"h:0443", "h h:443"},
		{"[0:0::1]:8080", "[::1]:8080"},
		{"", ""},
	}
	for _, tt := range tests {
		if got := strings.Join(Spelled(tt.host), " "); got != tt.want {
			t.Errorf("Spelled(%q) = %q, want %q", tt.host, got, tt.want)
		}
	}
}

type busy bool

func (b *busy) Idle(time.Time) bool { return !bool(*b) }

func TestTheFirstOccupantStaysWhileBusy(t *testing.T) {
	tab := New(1)
	e := tab.Acquire("a", time.Now())
	one, two := new(busy), new(busy)
	*one = true
	if e.Value.Occupant(Retry) != nil {
		t.Error("an empty slot is occupied")
	}
	if e.Value.Occupy(Retry, one) != one || e.Value.Occupy(Retry, two) != one {
		t.Error("the first occupant does not stay")
	}
	e.Release()
	if f := tab.Acquire("b", time.Now()); !f.Overflow {
		t.Error("a busy occupant's host was dropped")
	} else {
		f.Release()
	}
	*one = false
	if tab.Acquire("b", time.Now()).Overflow {
		t.Error("a host whose occupants are all idle does not make room")
	}
	before := uint64(time.Since(tab.Epoch))
	if a, b := tab.Arrive(), tab.Arrive(); a < before || a >= b || b > uint64(time.Since(tab.Epoch))+2 {
		t.Errorf("arrivals %d, %d after %d are not in order of time", a, b, before)
	}
}

// TestOfIsByName: whatever host the request before went to, the record found is
// that of the canonical name, and it is held.
func TestOfIsByName(t *testing.T) {
	urls := []string{
		"http://a/", "http://a/x", "https://A/", "http://a./", "http://a../", "http://a.:80/", "http://a:80/", "https://a:80/", "http://a:443/",
		"https://a:443/", "http://a:8080/", "http://a:08080/", "http://a.:8080/", "http://[::1]/", "http://[0::1]/", "http://[::1]:80/", "http://b/",
	}
	tab := New(100)
	for _, first := range urls {
		for _, then := range urls {
			for _, u := range []string{first, then} {
				r, err := http.NewRequest("GET", u, nil)
				if err != nil {
					t.Fatal(err)
				}
				e := tab.Of(r)
				if e.Key != Key(r) {
					t.Errorf("%s after %s: the record of %q, want %q", then, first, e.Key, Key(r))
				}
				e.Release()
			}
		}
	}
}

// TestOfFindsNoneDropped: a record that was dropped to make room is not found
// again.
func TestOfFindsNoneDropped(t *testing.T) {
	tab := New(1)
	at := func(u string) *http.Request {
		r, err := http.NewRequest("GET", u, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a := tab.Of(at("http://a/"))
	a.Release()
	for tab.Len() == 1 { // b takes a's place
		e := tab.Acquire("b", time.Time{})
		e.Release()
		if !e.Overflow {
			break
		}
	}
	if again := tab.Of(at("http://a/")); again == a {
		t.Error("a record that was dropped is in use")
	}
}

// Calls to one host write to no cache line that calls to another one read.
func TestHostsShareNoCacheLine(t *testing.T) {
	const line = 64
	if n := unsafe.Sizeof(Entry{}); n <= 96 || n > 128 { // what the runtime aligns to 128
		t.Errorf("an entry has %d bytes, want 97 to 128", n)
	}
	var tab Table
	if at := unsafe.Offsetof(tab.order); at < line || unsafe.Sizeof(tab)-at < line {
		t.Errorf("order stands at %d of %d bytes, want it alone on its line", at, unsafe.Sizeof(tab))
	}
}

func BenchmarkKey(b *testing.B) {
	for _, host := range []string{"api.github.com", "api.github.com:8443", "API.GitHub.com", "[::1]:8080", "[0:0::1]:8080"} {
		b.Run(host, func(b *testing.B) {
			r := &http.Request{URL: &url.URL{Scheme: "https", Host: host}}
			b.ReportAllocs()
			for b.Loop() {
				Key(r)
			}
		})
	}
}
