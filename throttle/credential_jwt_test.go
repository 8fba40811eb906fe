package throttle

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// bearer is an Authorization header with a JWT of these claims.
func bearer(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return "Bearer " + encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(claims)) + ".c2lnbmF0dXJl"
}

// TestCallerOfAJWT: tokens are one caller's if they say so, whatever else they say.
func TestCallerOfAJWT(t *testing.T) {
	tr := newTransport(t, &server{}, Config{})
	whose := func(header string) uint64 {
		r := httptest.NewRequest("GET", "http://a.example/", nil)
		r.Header.Set("Authorization", header)
		key, _ := tr.credentialOf(r)
		return key
	}
	for _, x := range []struct {
		name, one, other string // claims, or a header
		same             bool
	}{
		{"made anew", `{"iss":"i","sub":"s","iat":1,"exp":2,"jti":"a"}`, `{"iss":"i","sub":"s","iat":2,"exp":3,"jti":"b"}`, true},
		{"for one request", `{"sub":"s","uri":"GET /a"}`, `{"sub":"s","uri":"GET /b"}`, true},
		{"in another order", `{"iss":"i","sub":"s"}`, `{"sub":"s", "iss":"i"}`, true},
		{"another scheme", "DPoP " + bearer(`{"sub":"s"}`)[7:], bearer(`{"sub":"s"}`), true},
		{"of an issuer alone", `{"iss":"12345","iat":1,"exp":2}`, `{"iss":"12345","iat":5,"exp":6}`, true},
		{"of a client", `{"client_id":"c","nonce":1}`, `{"client_id":"c","nonce":2}`, true},
		{"of two subjects", `{"iss":"i","sub":"s"}`, `{"iss":"i","sub":"t"}`, false},
		{"of two issuers", `{"iss":"i","sub":"s"}`, `{"iss":"j","sub":"s"}`, false},
		{"of two tenants", `{"sub":"s","tid":"a"}`, `{"sub":"s","tid":"b"}`, false},
		{"of two clients", `{"sub":"s","azp":"a"}`, `{"sub":"s","azp":"b"}`, false},
		{"of an issuer, for two users", `{"iss":"i","uid":1,"iat":1}`, `{"iss":"i","uid":2,"iat":1}`, false},
		{"that name nobody", `{"iat":1,"jti":"a"}`, `{"iat":2,"jti":"b"}`, false},
		{"of no object", `["s"]`, `["s",1]`, false},
		{"that are cut off", bearer(`{"sub":"s"}`)[:40], bearer(`{"sub":"s"}`)[:41], false},
		{"in no base64", "Bearer eyJ.!!.a", "Bearer eyJ.!!.b", false},
		{"without a signature", "Bearer eyJ.e30", "Bearer eyJ.e31", false},
		{"that are too long", bearer(`{"sub":"s","jti":"a` + strings.Repeat("x", longestJWT) + `"}`), bearer(`{"sub":"s","jti":"b` + strings.Repeat("x", longestJWT) + `"}`), false},
	} {
		one, other := x.one, x.other
		if one[0] == '{' || one[0] == '[' {
			one, other = bearer(one), bearer(other)
		}
		a, b := whose(one), whose(other)
		if a == 0 || b == 0 || (a == b) != x.same {
			t.Errorf("two tokens %s: one caller's %t, want %t", x.name, a == b, x.same)
		}
		if again := whose(one); again != a {
			t.Errorf("a token %s is another's when it is read again", x.name)
		}
	}
}

// TestAJWTIsReadOnce: a token that is sent again is not read again.
func TestAJWTIsReadOnce(t *testing.T) {
	tr := newTransport(t, &server{}, Config{})
	r := httptest.NewRequest("GET", "http://a.example/", nil)
	r.Header.Set("Authorization", bearer(`{"iss":"i","sub":"s"}`))
	key, caller := tr.credentialOf(r)
	if n := testing.AllocsPerRun(100, func() {
		if k, c := tr.credentialOf(r); k != key || c != caller {
			t.Fatal("another caller")
		}
	}); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// TestAJWTPerRequestIsOneCaller: where each request has a JWT made for it, no more is
// refused than with one token, and nothing takes longer.
func TestAJWTPerRequestIsOneCaller(t *testing.T) {
	refused := func(token func(n int) string) (n int, took time.Duration) {
		for range 5 {
			synctest.Test(t, func(t *testing.T) {
				s := &server{trip: 40 * time.Millisecond, answer: limiting(10, 10, "")}
				start := time.Now()
				bearing(t, newTransport(t, s, Config{}), 20, 300, token)
				n, took = n+s.refused, took+time.Since(start)
			})
		}
		return n, took
	}
	one, ideal := refused(func(int) string { return "one" })
	many, took := refused(func(n int) string {
		return strings.TrimPrefix(bearer(fmt.Sprintf(`{"iss":"app","iat":%d}`, n)), "Bearer ")
	})
	t.Logf("refused %d in %v with one token, %d in %v with one for each call", one, ideal, many, took)
	if many > one+one/2+5 || took > ideal+ideal/10 {
		t.Errorf("%d refused in %v, want about the %d in %v of one token", many, took, one, ideal)
	}
}
