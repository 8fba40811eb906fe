package breaker

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestWhichRequestsAreOfOneRoute: requests of one line are of one route, those of different lines
// of different ones.
func TestWhichRequestsAreOfOneRoute(t *testing.T) {
	lines := [][]string{
		{"GET /things", "GET /things?"},
		{"POST /things"},
		{"GET /things/1", "GET /things/2000", "GET /things/0a1b2c3d-0000-4000-8000-0a1b2c3d4e5f", "GET /things/sk_live_0123456789abcdef"},
		{"GET /things/oauth2"},
		{"GET /things/v1beta3"},
		{"GET /things/1/parts", "GET /things/2/parts"},
		{"GET /thingsparts"},
		{"GET /bot123456:ABC-DEF1234ghIkl/getUpdates", "GET /bot654321:ABC-DEF1234ghIkl/getUpdates"},
		{"GET /bot123456:ABC-DEF1234ghIkl/sendMessage"},
		{"GET /kv?wait=5s&index=1", "GET /kv?wait=5m&index=200"},
		{"GET /kv?raw"},
		{"GET /kv"},
		{"GET /"},
	}
	seen := make(map[route]int)
	for i, line := range lines {
		for _, s := range line {
			var method, path string
			for j := range s {
				if s[j] == ' ' {
					method, path = s[:j], s[j+1:]
					break
				}
			}
			got := routeOf(httptest.NewRequest(method, "http://a.example"+path, nil))
			if at, ok := seen[got]; ok && at != i {
				t.Errorf("%s is of the route of %s", s, lines[at][0])
			} else if !ok && s != line[0] {
				t.Errorf("%s is of another route than %s", s, line[0])
			}
			seen[got] = i
		}
	}
	if routeOf(&http.Request{}) != routeOf(&http.Request{Method: "GET"}) {
		t.Error("a request without a method is a GET")
	}
	r := httptest.NewRequest("GET", "http://a.example/things/1/parts?a=1&b=2", nil)
	if n := testing.AllocsPerRun(100, func() { routeOf(r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
