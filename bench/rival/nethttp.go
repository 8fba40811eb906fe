package rival

import "net/http"

// Bare is net/http without anything: what all others are compared with.
func Bare() Rival {
	return Rival{
		Name:  "net/http",
		Link:  "https://pkg.go.dev/net/http#RoundTripper",
		Entry: "RoundTrip",
		New:   func(base http.RoundTripper, _ Policy) (Client, error) { return of(base), nil },
	}
}
