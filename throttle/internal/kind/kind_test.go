package kind_test

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/weirhttp/weir/throttle/internal/kind"
)

func request(method, path string) *http.Request {
	return &http.Request{Method: method, URL: &url.URL{Path: path}}
}

// TestWhichKindARequestIs: its method and what stands before the second slash, or after the
// version of the API.
func TestWhichKindARequestIs(t *testing.T) {
	for _, test := range []struct{ method, path, want string }{
		{"", "/search", "GET /search"},
		{"GET", "/search/code/go", "GET /search"},
		{"POST", "/search", "POST /search"},
		{"GET", "", "GET /"},
		{"GET", "/", "GET /"},
		{"GET", "//x", "GET /"},
		{"GET", "/v1/orders/17", "GET /v1/orders"},
		{"GET", "/api/v2/orders/17", "GET /api/v2/orders"},
		{"GET", "/v2beta1/a", "GET /v2beta1/a"},
		{"GET", "/v1.0/me", "GET /v1.0/me"},
		{"GET", "/v1/17", "GET /v1"},
		{"GET", "/v1/", "GET /v1"},
		{"GET", "/api/chat.postMessage", "GET /api/chat.postMessage"},
		{"GET", "/vault/orders", "GET /vault"},
		{"GET", "/v1/abcdefghijklmnopqrstuvwxy", "GET /v1"}, // a word of 25 letters is rather a name
		{"GET", "/a b", "GET /a%20..."},
		{"GET", "/a?b", "GET /a%3F..."},
	} {
		if got := kind.Of(request(test.method, test.path), "").String(); got != test.want {
			t.Errorf("%q %q is of the kind %q, want %q", test.method, test.path, got, test.want)
		}
	}
}

// TestWhatAKindHoldsIsOfIt: what is found out sooner is what Of says.
func TestWhatAKindHoldsIsOfIt(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	segments := []string{"", "api", "v1", "v2beta1", "orders", "17", "me", "a b", strings.Repeat("x", 30), strings.Repeat("y", 64)}
	path := func() string {
		p := ""
		for range rng.IntN(5) {
			p += "/" + segments[rng.IntN(len(segments))]
		}
		return p[min(len(p), rng.IntN(12)/11):] // now and then without the first slash
	}
	held := 0
	for range 20000 {
		a, b := request("GET", path()), request([]string{"GET", "", "PUT"}[rng.IntN(3)], path())
		k := kind.Of(a, "")
		if !k.Ends() || !k.Holds(b) {
			continue
		}
		held++
		if got := kind.Of(b, ""); got != k {
			t.Fatalf("%q holds %s %q, which is %q", k, b.Method, b.URL.Path, got)
		}
	}
	if held < 500 {
		t.Errorf("%d were held", held)
	}
	if k := kind.Of(request("GET", "/x"), "GET h/x/"); k.Ends() {
		t.Error("a pattern says what it holds")
	}
}

// TestAPatternIsAKind: whatever the request.
func TestAPatternIsAKind(t *testing.T) {
	const pattern = "GET h/x/"
	a, b := kind.Of(request("GET", "/x/1"), pattern), kind.Of(request("GET", "/x/y/2"), pattern)
	if name, whole := a.Whole(); a != b || name != pattern || !whole {
		t.Errorf("%v and %v, %q, whole: %v", a, b, name, whole)
	}
}

// TestSecretsAreNotShownWhole: nor is anything else that looks like one, and such names are not
// taken for whole.
func TestSecretsAreNotShownWhole(t *testing.T) {
	for path, want := range map[string]string{
		"/bot123456:AAEhBOweik6ad9r_QX/send": "GET /bot...",
		"/12345":                             "GET /123...",
		"/" + strings.Repeat("a", 33):        "GET /aaa...",
		"/é":                                 "GET /%C3...",
		"/1234":                              "GET /1234",
		"/" + strings.Repeat("a", 32):        "GET /" + strings.Repeat("a", 32),
		"/{id}":                              "GET /%7Bid%7D",
	} {
		name, whole := kind.Of(request("GET", path), "").Whole()
		if name != want || whole != (name == "GET "+path) {
			t.Errorf("%s is shown as %q, whole: %v; want %q", path, name, whole, want)
		}
	}
}

// TestKindsAreShort: whatever the path, and also those that are not shown whole are told apart.
func TestKindsAreShort(t *testing.T) {
	long := "/" + strings.Repeat("v1/", 1000)
	if k := kind.Of(request("GET", long), ""); len(k.Rest) > 64 {
		t.Errorf("%d bytes are kept", len(k.Rest))
	}
	if kind.Of(request("GET", "/bot123456:A"), "") == kind.Of(request("GET", "/bot123456:B"), "") {
		t.Error("two secrets are one kind")
	}
}
