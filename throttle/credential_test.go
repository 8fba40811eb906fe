package throttle_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// TestSignedRequestsLearnTogether: what a server told one signed request holds
// for the next of the same key, and not for another's. So it is with tokens that are
// made anew.
func TestSignedRequestsLearnTogether(t *testing.T) {
	for name, authorization := range map[string]func(key, serial string) string{
		"signed": func(key, serial string) string {
			return "AWS4-HMAC-SHA256 Credential=" + key + "/20260115/x/s3/aws4_request, Signature=" + serial
		},
		"JWT": func(key, serial string) string { return bearer(`{"sub": "` + key + `", "jti": "` + serial + `"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, n := time.Now(), 0
				b := newBase(func(r *http.Request) (*http.Response, error) {
					if n++; n == 1 {
						return testnet.Answer(r, 429, http.Header{"Retry-After": {"30"}}, nil), nil
					}
					return testnet.Answer(r, 200, nil, nil), nil
				})
				tr := newTransport(t, b, throttle.Config{})
				ask := func(key, serial string) time.Duration {
					r, err := http.NewRequestWithContext(t.Context(), "GET", "http://s3/", nil)
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("Authorization", authorization(key, serial))
					resp, err := tr.RoundTrip(r)
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
					return time.Since(start)
				}
				ask("A", "1")
				if at := ask("B", "2"); at >= 30*time.Second {
					t.Errorf("another key waited until %v", at)
				}
				if at := ask("A", "3"); at < 30*time.Second {
					t.Errorf("the same key went at %v, the server said 30s", at)
				}
			})
		})
	}
}

// TestCredentialSaysWhatIsApart: Config.Credential decides whose limits requests
// draw on, whatever their Authorization; what it returns is shown nowhere.
func TestCredentialSaysWhatIsApart(t *testing.T) {
	const secret = "tenant-secret-7f"
	synctest.Test(t, func(t *testing.T) {
		n := 0
		var told []string
		tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return testnet.Answer(r, 429, http.Header{"Retry-After": {"20"}}, nil), nil
			}
			return testnet.Answer(r, 200, nil, nil), nil
		}), throttle.Config{
			Credential: func(r *http.Request) string { return r.Header.Get("X-Key") },
			OnLearn:    func(l throttle.Learned) { told = append(told, fmt.Sprintf("%+v", l)) },
			OnWait:     func(w throttle.Wait) { told = append(told, fmt.Sprintf("%+v", w)) },
		})
		send := func(key, token string, most time.Duration) (time.Duration, error) {
			r, err := http.NewRequestWithContext(throttle.WithMaxWait(t.Context(), most), "GET", "http://h/", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Key", key)
			r.Header.Set("Authorization", token)
			begun := time.Now()
			resp, err := tr.RoundTrip(r)
			if err == nil {
				resp.Body.Close()
			}
			return time.Since(begun), err
		}
		send(secret, "Bearer a", time.Minute)
		if _, err := send(secret, "Bearer b", time.Second); err == nil {
			t.Error("the same credential went in its pause")
		} else {
			told = append(told, err.Error(), fmt.Sprintf("%+v", err))
		}
		if took, err := send("other", "Bearer a", time.Minute); err != nil || took > time.Second {
			t.Errorf("another credential took %v, %v", took, err)
		}
		if took, err := send(secret, "Bearer b", time.Minute); err != nil || took < 15*time.Second {
			t.Errorf("the same credential took %v, %v, want its pause waited for", took, err)
		}
		told = append(told, fmt.Sprintf("%+v", tr.Stats()))
		for _, s := range told {
			if strings.Contains(s, secret) || strings.Contains(s, "Bearer") {
				t.Errorf("it shows a secret: %s", s)
			}
		}
	})
}

// TestAJWTPerRequestIsOneCaller: where each request has a JWT made for it, no more is
// refused than with one token, and nothing takes longer.
func TestAJWTPerRequestIsOneCaller(t *testing.T) {
	refused := func(token func(n int) string) (n int, took time.Duration) {
		for range 5 {
			synctest.Test(t, func(t *testing.T) {
				s := &server{trip: 40 * time.Millisecond, answer: limiting(10, 10, "")}
				start := time.Now()
				bearing(t, newTransport(t, s, throttle.Config{}), 20, 300, token)
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

// bearer is an Authorization header with a JWT of these claims.
func bearer(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return "Bearer " + encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(claims)) + ".c2lnbmF0dXJl"
}

const nobody = "nobody"

// callers is of how many callers a Transport learns apart, which has heard of a quota in
// an answer to each of these Authorization headers; nobody: it has none.
func callers(t *testing.T, headers ...string) int {
	b := newBase(func(r *http.Request) (*http.Response, error) {
		return testnet.Answer(r, 200, http.Header{"X-Ratelimit-Limit": {"10"}, "X-Ratelimit-Remaining": {"5"}, "X-Ratelimit-Reset": {"100"}}, nil), nil
	})
	tr := newTransport(t, b, throttle.Config{Learned: throttle.Knowledge{Version: 1, Salt: make([]byte, 16)}})
	for _, header := range headers {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://a.example/", nil)
		if header != nobody {
			r.Header.Set("Authorization", header)
		}
		if _, err := tr.RoundTrip(r); err != nil {
			t.Fatal(err)
		}
	}
	n, _, _ := throttle.LearnedKept(tr, "a.example")
	return n
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
		{"that are too long", bearer(`{"sub":"s","jti":"a` + strings.Repeat("x", throttle.LongestJWT) + `"}`), bearer(`{"sub":"s","jti":"b` + strings.Repeat("x", throttle.LongestJWT) + `"}`), false},
	} {
		one, other := x.one, x.other
		if one[0] == '{' || one[0] == '[' {
			one, other = bearer(one), bearer(other)
		}
		want := 3 // with nobody
		if x.same {
			want = 2
		}
		if got := callers(t, nobody, one, other, one); got != want {
			t.Errorf("nobody and two tokens %s are %d callers, want %d", x.name, got, want)
		}
	}
}

// TestAJWTIsReadOnce: a token that is sent again is not read again, so it takes no more
// memory than one that is not read at all.
func TestAJWTIsReadOnce(t *testing.T) {
	allocations := func(header string) float64 {
		resp := &http.Response{StatusCode: 200, Header: make(http.Header), Body: http.NoBody}
		tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			resp.Request = r
			return resp, nil
		}), throttle.Config{})
		r := httptest.NewRequest("GET", "http://a.example/", nil)
		r.Header.Set("Authorization", header)
		return testing.AllocsPerRun(100, func() {
			if _, err := tr.RoundTrip(r); err != nil {
				t.Fatal(err)
			}
		})
	}
	if got, want := allocations(bearer(`{"iss":"i","sub":"s"}`)), allocations("Bearer abc"); got > want {
		t.Errorf("%v allocations, want %v", got, want)
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
			if n := callers(t, nobody, x.header, x.alike); n != 2 {
				t.Errorf("%s\n%s\nand nobody are %d callers, want 2", x.header, x.alike, n)
			}
		}
		if n := callers(t, nobody, x.header, x.apart); n != 3 {
			t.Errorf("%s\n%s\nand nobody are %d callers, want 3", x.header, x.apart, n)
		}
	}
	if n := callers(t, nobody, ""); n != 1 {
		t.Errorf("an empty header and none are %d callers, want 1", n)
	}
}
