package throttle

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

func TestWhose(t *testing.T) {
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

// TestSignedRequestsLearnTogether: what a server told one signed request holds
// for the next of the same key, and not for another's.
func TestSignedRequestsLearnTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, n := time.Now(), 0
		b := newBase(func(r *http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return testnet.Answer(r, 429, http.Header{"Retry-After": {"30"}}, nil), nil
			}
			return testnet.Answer(r, 200, nil, nil), nil
		})
		tr := newTransport(t, b, Config{})
		signed := func(key, signature string) time.Duration {
			r, err := http.NewRequestWithContext(t.Context(), "GET", "http://s3/", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+key+"/20260115/x/s3/aws4_request, Signature="+signature)
			resp, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return time.Since(start)
		}
		signed("A", "1")
		if at := signed("B", "2"); at >= 30*time.Second {
			t.Errorf("another key waited until %v", at)
		}
		if at := signed("A", "3"); at < 30*time.Second {
			t.Errorf("the same key went at %v, the server said 30s", at)
		}
	})
}
