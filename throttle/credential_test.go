package throttle_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
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
