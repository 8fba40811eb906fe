package throttle

import (
	"encoding/base64"
	"net/http/httptest"
	"strings"
	"testing"
)

// bearer is an Authorization header with a JWT of these claims.
func bearer(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return "Bearer " + encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(claims)) + ".c2lnbmF0dXJl"
}

// TestCallerOfAJWT: tokens are one caller's if they say so, whatever else they say.
func TestCallerOfAJWT(t *testing.T) {
	tr := newTransport(t, newBase(nil), Config{})
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
	tr := newTransport(t, newBase(nil), Config{})
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

func TestCredentialOfAnAuthorization(t *testing.T) {
	for _, tt := range []struct{ header, want string }{
		{"Bearer abc=,id=5", "Bearer abc=,id=5"},
		{"Basic dXNlcjpwYXNz", "Basic dXNlcjpwYXNz"},
		{"token ghp_x", "token ghp_x"},
		{"sk-x", "sk-x"},
		{"", ""},
		{"AWS4-HMAC-SHA256 Credential=AKID/20260115/eu-north-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=5f", "AKID"},
		{"HMAC-SHA256 Credential=0-l4-s0:x&SignedHeaders=x-ms-date;host&Signature=a=", "0-l4-s0:x"},
		{"AWS AKID:c2ln", "AKID"},
		{"SharedKey account:c2ln", "account"},
		{`Digest realm="r", username="Mufasa", nonce="n", uri="/a", response="x"`, `"Mufasa"`},
		{`OAuth oauth_consumer_key="c", oauth_nonce="n", oauth_signature="s", oauth_token="t"`, `"t"`},
		{`OAuth oauth_consumer_key="c", oauth_nonce="n", oauth_signature="s"`, `"c"`},
		{`Hawk id="dh37", ts="1353832234", nonce="j4h3g2", mac="6R4r="`, `"dh37"`},
		{`Signature keyId="k",algorithm="hs2019",signature="s"`, `"k"`},
		{"Scheme ,,;=&", "Scheme ,,;=&"},
		{`Digest username="a, username=b", realm="r"`, `"a, username=b"`},
		{`Digest realm="x, username=b", username="a\", id=c"`, `"a\", id=c"`},
		{`Signature keyId="https://x/y?id=1&k=2;3",algorithm="hs2019",signature="s"`, `"https://x/y?id=1&k=2;3"`},
		{`Digest username="", realm="r"`, `Digest username="", realm="r"`},
		{`OAuth oauth_token="", oauth_consumer_key="c", oauth_signature="s"`, `"c"`},
		{"AWS4-HMAC-SHA256 Credential=/20260115/x, Signature=5f", "AWS4-HMAC-SHA256 Credential=/20260115/x, Signature=5f"},
		{"Scheme id=, key=2", "Scheme id=, key=2"},
		{"AWS :c2ln", "AWS :c2ln"},
		{`Digest username="open`, `"open`},
	} {
		if got := whose(tt.header); got != tt.want {
			t.Errorf("%s\nis of %q, want %q", tt.header, got, tt.want)
		}
	}
}
