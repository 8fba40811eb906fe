package caller_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhttp/weir/throttle/internal/caller"
)

// bearer is an Authorization header with a JWT of these claims.
func bearer(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return "Bearer " + encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(claims)) + ".c2lnbmF0dXJl"
}

const nobody = "nobody"

// callers is how many callers these Authorization headers are of; nobody: there is none.
// Each has a key of its own.
func callers(headers ...string) int {
	keys := caller.New()
	by := make(map[uint64]string)
	names := make(map[string]bool)
	for _, header := range headers {
		h := make(http.Header)
		if header != nobody {
			h.Set("Authorization", header)
		}
		key, name := keys.Of(h)
		by[key], names[name] = name, true
	}
	if len(by) != len(names) {
		return -1
	}
	return len(by)
}

// TestCallerOfAJWT: tokens are one caller's if they say so, whatever else they say.
func TestCallerOfAJWT(t *testing.T) {
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
		{"that are too long", bearer(`{"sub":"s","jti":"a` + strings.Repeat("x", 8<<10) + `"}`), bearer(`{"sub":"s","jti":"b` + strings.Repeat("x", 8<<10) + `"}`), false},
	} {
		one, other := x.one, x.other
		if one[0] == '{' || one[0] == '[' {
			one, other = bearer(one), bearer(other)
		}
		want := 3 // with nobody
		if x.same {
			want = 2
		}
		if got := callers(nobody, one, other, one); got != want {
			t.Errorf("nobody and two tokens %s are %d callers, want %d", x.name, got, want)
		}
	}
}

// TestCredentialOfAnAuthorization: of a signed request the key that signed is the caller,
// of any other all of the header.
func TestCredentialOfAnAuthorization(t *testing.T) {
	for _, x := range []struct{ header, alike, apart string }{ // alike: of the same caller; "": no other header is
		{"Bearer abc=,id=5", "", "Bearer abd=,id=5"},
		{"Basic dXNlcjpwYXNz", "", "Basic dXNlcjpwYXN0"},
		{"token ghp_x", "", "token ghp_y"},
		{"sk-x", "", "sk-y"},
		{"AWS4-HMAC-SHA256 Credential=AKID/20260115/eu-north-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=5f",
			"AWS4-HMAC-SHA256 Credential=AKID/20260116/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature=60",
			"AWS4-HMAC-SHA256 Credential=AKIE/20260115/eu-north-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=5f"},
		{"HMAC-SHA256 Credential=0-l4-s0:x&SignedHeaders=x-ms-date;host&Signature=a=",
			"HMAC-SHA256 Credential=0-l4-s0:x&SignedHeaders=x-ms-date;host&Signature=b=", "HMAC-SHA256 Credential=0-l4-s0:y&SignedHeaders=x-ms-date;host&Signature=a="},
		{"AWS AKID:c2ln", "AWS AKID:c2lo", "AWS AKIE:c2ln"},
		{"SharedKey account:c2ln", "SharedKey account:c2lo", "SharedKey other:c2ln"},
		{`Digest realm="r", username="Mufasa", nonce="n", uri="/a", response="x"`, `Digest realm="r", username="Mufasa", nonce="o", uri="/b", response="y"`,
			`Digest realm="r", username="Scar", nonce="n", uri="/a", response="x"`},
		{`OAuth oauth_consumer_key="c", oauth_nonce="n", oauth_signature="s", oauth_token="t"`, `OAuth oauth_consumer_key="d", oauth_nonce="o", oauth_signature="r", oauth_token="t"`,
			`OAuth oauth_consumer_key="c", oauth_nonce="n", oauth_signature="s", oauth_token="u"`},
		{`OAuth oauth_consumer_key="c", oauth_nonce="n", oauth_signature="s"`, `OAuth oauth_consumer_key="c", oauth_nonce="o", oauth_signature="r"`, `OAuth oauth_consumer_key="d", oauth_nonce="n", oauth_signature="s"`},
		{`Hawk id="dh37", ts="1353832234", nonce="j4h3g2", mac="6R4r="`, `Hawk id="dh37", ts="1353832235", nonce="k", mac="6R4s="`, `Hawk id="dh38", ts="1353832234", nonce="j4h3g2", mac="6R4r="`},
		{`Signature keyId="k",algorithm="hs2019",signature="s"`, `Signature keyId="k",algorithm="hs2019",signature="r"`, `Signature keyId="l",algorithm="hs2019",signature="s"`},
		{"Scheme ,,;=&", "", "Scheme ,;;=&"},
		{`Digest username="a, username=b", realm="r"`, `Digest username="a, username=b", realm="s"`, `Digest username="a, username=c", realm="r"`},
		{`Digest realm="x, username=b", username="a\", id=c"`, `Digest realm="y, username=d", username="a\", id=c"`, `Digest realm="x, username=b", username="a\", id=d"`},
		{`Signature keyId="https://x/y?id=1&k=2;3",algorithm="hs2019",signature="s"`, `Signature keyId="https://x/y?id=1&k=2;3",algorithm="hs2019",signature="r"`,
			`Signature keyId="https://x/y?id=1&k=2;4",algorithm="hs2019",signature="s"`},
		{`Digest username="", realm="r"`, "", `Digest username="", realm="s"`},
		{`OAuth oauth_token="", oauth_consumer_key="c", oauth_signature="s"`, `OAuth oauth_token="", oauth_consumer_key="c", oauth_signature="r"`, `OAuth oauth_token="", oauth_consumer_key="d", oauth_signature="s"`},
		{"AWS4-HMAC-SHA256 Credential=/20260115/x, Signature=5f", "", "AWS4-HMAC-SHA256 Credential=/20260115/x, Signature=60"},
		{"Scheme id=, key=2", "", "Scheme id=, key=3"},
		{"AWS :c2ln", "", "AWS :c2lo"},
		{`Digest username="open`, `Digest realm="r", username="open`, `Digest username="opeo`},
	} {
		if x.alike != "" {
			if n := callers(nobody, x.header, x.alike); n != 2 {
				t.Errorf("%s\n%s\nand nobody are %d callers, want 2", x.header, x.alike, n)
			}
		}
		if n := callers(nobody, x.header, x.apart); n != 3 {
			t.Errorf("%s\n%s\nand nobody are %d callers, want 3", x.header, x.apart, n)
		}
	}
	if n := callers(nobody, ""); n != 1 {
		t.Errorf("an empty header and none are %d callers, want 1", n)
	}
}

// TestAJWTIsReadOnce: one that is sent again takes no memory.
func TestAJWTIsReadOnce(t *testing.T) {
	keys := caller.New()
	h := http.Header{"Authorization": {bearer(`{"iss":"i","sub":"s"}`)}}
	if n := testing.AllocsPerRun(100, func() { keys.Of(h) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestEveryProcessNamesACallerAlike, but for the key, by which nobody can guess a secret.
func TestEveryProcessNamesACallerAlike(t *testing.T) {
	one, other := caller.New(), caller.New()
	for _, header := range []string{"Bearer x", bearer(`{"sub":"s"}`), `Hawk id="a"`} {
		h := http.Header{"Authorization": {header}}
		key, name := one.Of(h)
		if again, same := other.Of(h); same != name || again == key || one.Key(name) != key {
			t.Errorf("%s: %q and %q, keys %d and %d", header, name, same, key, again)
		}
	}
	if one.Key("") != 0 || caller.Digest("a") == caller.Digest("b") || len(caller.Digest("a")) != 16 {
		t.Error("nobody has a key, or two secrets one digest")
	}
}

// FuzzOf: whatever a header holds, nothing panics, and the same one is the same caller's.
func FuzzOf(f *testing.F) {
	for _, s := range []string{"", "Bearer eyJ.e30.a", `Digest username="a\`, "AWS :", "Bearer eyJ..", "x y=z/"} {
		f.Add(s)
	}
	keys := caller.New()
	f.Fuzz(func(t *testing.T, header string) {
		h := http.Header{"Authorization": {header}}
		key, name := keys.Of(h)
		if again, same := keys.Of(h); again != key || same != name || (key == 0) != (name == "") {
			t.Errorf("%q: %q and %q", header, name, same)
		}
	})
}
