package hostile

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir/retry"
)

const mb = 1 << 20

// TestEndlessHeaders: net/http stops reading at its limit, and weir neither
// keeps what it read nor asks for it for ever.
func TestEndlessHeaders(t *testing.T) {
	line := "X-Padding: " + strings.Repeat("x", 4000) + "\r\n"
	bubble(t, func(w *world, c net.Conn, _ int64) {
		w.write(c, "HTTP/1.1 200 OK\r\n")
		for i := 0; w.write(c, line); i++ {
			if i%256 == 0 {
				w.sample()
			}
		}
	}, func(t *testing.T, w *world) {
		before := live()
		status, err := w.get(t, "/")
		if err == nil || !typed(err) {
			t.Errorf("status %d, %v", status, err)
		}
		if w.served.Load() > 3 {
			t.Errorf("asked %d times", w.served.Load())
		}
		w.bounded(t, before, 200*mb, 4*mb)
	})
}

// bounded holds that the heap never grew by more than peak, and that no more
// than kept of it stays.
func (w *world) bounded(t *testing.T, before, peak, kept uint64) {
	t.Helper()
	if p := w.peak.Load(); p > before+peak {
		t.Errorf("the heap grew by %d MB", (p-before)/mb)
	}
	w.client.CloseIdleConnections()
	if after := live(); after > before+kept {
		t.Errorf("%d KB are kept", (after-before)>>10)
	}
}

// TestSlowHeaders: a byte of header a second ends with the attempt's timeout,
// three times, and an error that says so.
func TestSlowHeaders(t *testing.T) {
	bubble(t, func(w *world, c net.Conn, _ int64) {
		w.write(c, "HTTP/1.1 200 OK\r\nX-Slow: ")
		for w.write(c, "x") {
			time.Sleep(time.Second)
		}
	}, func(t *testing.T, w *world) {
		_, err := w.get(t, "/")
		var late interface{ Timeout() bool }
		if late, _ = err.(interface{ Timeout() bool }); late == nil || !late.Timeout() || !typed(err) {
			t.Errorf("%v", err)
		}
		if d := time.Since(w.started); w.served.Load() != 3 || d < 90*time.Second || d > 95*time.Second {
			t.Errorf("%d attempts in %v", w.served.Load(), d)
		}
	})
}

// TestHeaderBombs: thousands of limits in one answer, and new names in each of
// thousands of answers.
func TestHeaderBombs(t *testing.T) {
	bubble(t, func(w *world, c net.Conn, n int64) {
		var b strings.Builder
		b.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n")
		lines := 20
		if n%50 == 0 {
			lines = 4000
		}
		for i := range lines {
			fmt.Fprintf(&b, "RateLimit: \"p%d-%d\";r=%d;t=60\r\n", n, i, 1000+i)
			fmt.Fprintf(&b, "RateLimit-Policy: \"p%d-%d\";q=2000;w=60;pk=:%s:\r\n", n, i, strings.Repeat("QUFB", 20))
			fmt.Fprintf(&b, "X-RateLimit-Remaining-N%dI%d: 5000\r\n", n, i)
		}
		b.WriteString("\r\n")
		w.write(c, b.String())
		w.sample()
	}, func(t *testing.T, w *world) {
		before := live()
		for i := range 500 {
			if status, err := w.get(t, fmt.Sprintf("/%d", i)); err != nil || status != 200 {
				t.Fatalf("call %d: %d, %v", i, status, err)
			}
		}
		w.said.stats(w.weir)
		w.said.texts = w.said.texts[len(w.said.texts)-1:] // they are not weir's memory
		w.bounded(t, before, 300*mb, 8*mb)
	})
}

// TestEndlessBodies: a failure whose body never ends costs 100 ms per attempt,
// and is what the caller gets in the end.
func TestEndlessBodies(t *testing.T) {
	bomb := zeros(t)
	for name, write := range map[string]func(*world, net.Conn) bool{
		"gzip bomb": func(w *world, c net.Conn) bool {
			w.sample()
			time.Sleep(time.Millisecond)
			return w.write(c, bomb)
		},
		"drip": func(w *world, c net.Conn) bool {
			time.Sleep(50 * time.Millisecond)
			return w.write(c, "1\r\nx\r\n")
		},
		"flood": func(w *world, c net.Conn) bool {
			w.sample()
			time.Sleep(time.Millisecond) // virtual time has to pass
			return w.write(c, "10000\r\n"+strings.Repeat("x", 65536)+"\r\n")
		},
		"silence": func(w *world, c net.Conn) bool {
			time.Sleep(time.Hour)
			return w.write(c, "1\r\nx\r\n")
		},
	} {
		for _, status := range []string{"503 Service Unavailable", "429 Too Many Requests", "500 Internal Server Error"} {
			t.Run(name+" "+status[:3], func(t *testing.T) {
				bubble(t, func(w *world, c net.Conn, _ int64) {
					coding := ""
					if name == "gzip bomb" {
						coding = "Content-Encoding: gzip\r\n" // net/http takes it off
					}
					w.write(c, "HTTP/1.1 "+status+"\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n"+coding+"\r\n")
					for write(w, c) {
					}
				}, func(t *testing.T, w *world) {
					before := live()
					resp, err := w.client.Get("http://evil.test/")
					took := time.Since(w.started)
					if err == nil {
						resp.Body.Close()
					} else if w.said.add(err.Error()); !typed(err) {
						t.Errorf("%v", err)
					}
					t.Logf("%v after %d requests and %v", err, w.served.Load(), took)
					if took > 3*time.Minute {
						t.Errorf("took %v", took)
					}
					w.bounded(t, before, 64*mb, 2*mb)
				})
			})
		}
	}
}

// zeros is a chunk of a body that net/http unpacks to 16 MB.
func zeros(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(make([]byte, 16*mb)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x\r\n%s\r\n", b.Len(), b.String())
}

// TestAbsurdNumbers: whatever stands where a number should, a request ends,
// with an answer or a typed error, within MaxWait.
func TestAbsurdNumbers(t *testing.T) {
	fields := []string{
		"Retry-After", "X-RateLimit-Reset", "X-RateLimit-Remaining", "X-RateLimit-Limit", "RateLimit-Reset",
		"X-Ratelimit-Reset-Tokens", "Retry-After-Ms", "X-Retry-In", "Anthropic-Ratelimit-Requests-Reset",
	}
	values := []string{
		"9007199254741", "-1", "-9223372036854775808", "9223372036854775807", "99999999999999999999999999999999",
		"1e308", "1e-308", "NaN", "Inf", "-Inf", "0x7fffffff", strings.Repeat("9", 5000), "", " ", "0", "00000000000000000001",
		"Thu, 01 Jan 9999 00:00:00 GMT", "Thu, 01 Jan 0001 00:00:00 GMT", "292277026596-01-01T00:00:00Z", "1000000h", "-5m", "1h1h1h1h",
	}
	for _, status := range []string{"429 Too Many Requests", "503 Service Unavailable", "200 OK"} {
		t.Run(status[:3], func(t *testing.T) {
			for _, field := range fields {
				for _, value := range values {
					bubble(t, func(w *world, c net.Conn, _ int64) {
						w.write(c, "HTTP/1.1 "+status+"\r\nContent-Length: 0\r\n"+field+": "+value+"\r\n\r\n")
					}, func(t *testing.T, w *world) {
						for range 3 {
							start := time.Now()
							if _, err := w.get(t, "/"); err != nil && !typed(err) {
								t.Errorf("%s: %.40s: %v", field, value, err)
							}
							if d := time.Since(start); d > 5*time.Minute || w.served.Load() > 200 {
								t.Fatalf("%s: %.40s: took %v and %d requests", field, value, d, w.served.Load())
							}
						}
					})
				}
			}
		})
	}
}

// TestRedirectLoop: http.Client ends it, and weir sees ten requests.
func TestRedirectLoop(t *testing.T) {
	for _, to := range []string{"/", "http://evil.test/", "http://evil%d.test/", "//evil.test/%d"} {
		bubble(t, func(w *world, c net.Conn, n int64) {
			to := to
			if strings.Contains(to, "%d") {
				to = fmt.Sprintf(to, n)
			}
			w.write(c, "HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 0\r\nLocation: "+to+"\r\n\r\n")
		}, func(t *testing.T, w *world) {
			if _, err := w.get(t, "/"); err == nil || w.served.Load() != 10 {
				t.Errorf("%s: %v after %d requests", to, err, w.served.Load())
			}
		})
	}
}

// TestNamesAreEscaped: bytes that a terminal would obey, and that are no text,
// in every place from which weir takes names.
func TestNamesAreEscaped(t *testing.T) {
	evil := []string{
		"\x1b[2J\x1b]0;owned\x07", "a\xff\xfe\x80b", "\u202egnp.exe", "<script>alert(1)</script>", "x\x00y", "line\u2028line\u0085", strings.Repeat("n", 9000),
	}
	for _, status := range []string{"200 OK", "429 \x1b[31mred"} {
		for _, e := range evil {
			bubble(t, func(w *world, c net.Conn, n int64) {
				w.write(c, "HTTP/1.1 "+status+"\r\nContent-Type: application/json\r\n"+
					"RateLimit: \""+e+"\";r=0;t=3\r\nRateLimit-Policy: \""+e+"\";q=5;w=3\r\n"+
					"X-RateLimit-Resource: "+e+"\r\nX-RateLimit-Limit: 5\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 3\r\n"+
					"X-RateLimit-Limit-"+e+": 7\r\nX-RateLimit-Remaining-"+e+": 0\r\nStripe-Rate-Limited-Reason: "+e+"\r\n")
				body := `{"error":{"code":"` + e + `","message":"` + e + `"}}`
				w.write(c, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
			}, func(t *testing.T, w *world) {
				for range 4 {
					w.get(t, "/")
					w.said.stats(w.weir)
				}
			})
		}
	}
}

// TestStatusLines: what is no HTTP is an error that says so, at once or after
// three attempts.
func TestStatusLines(t *testing.T) {
	for _, line := range []string{
		"SMTP/1.1 200 OK\r\n\r\n", "\x00\x01\x02\x03\r\n\r\n", "HTTP/1.1 999999999999 X\r\n\r\n", "HTTP/1.1 -1 X\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n" + strings.Repeat("HTTP/1.1 103 Early\r\n\r\n", 1000),
		strings.Repeat("A", mb) + "\r\n", "",
	} {
		bubble(t, func(w *world, c net.Conn, _ int64) {
			w.write(c, line)
			c.Close()
		}, func(t *testing.T, w *world) {
			_, err := w.get(t, "/")
			if err == nil || w.served.Load() > 3 {
				t.Errorf("%.40q: %v after %d requests", line, err, w.served.Load())
			}
			if d := time.Since(w.started); d > time.Minute {
				t.Errorf("%.40q: took %v", line, d)
			}
		})
	}
}

// TestManyHosts: what a paused host takes is small; MaxKeys bounds how many
// there are.
func TestManyHosts(t *testing.T) {
	const hosts = 1000
	bubble(t, func(w *world, c net.Conn, n int64) {
		w.write(c, "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 100000\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	}, func(t *testing.T, w *world) {
		before := live()
		for i := range hosts {
			ctx := retry.With(t.Context(), retry.Override{MaxAttempts: 1})
			r, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("http://h%d.evil.test/", i), nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := w.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		w.said.texts = nil
		after := live()
		t.Logf("%d bytes per host", (after-before)/hosts)
		if after > before+hosts*16<<10 {
			t.Errorf("%d bytes per host", (after-before)/hosts)
		}
	})
}

// TestPathsAreEscaped: a redirect can lead to paths of any bytes and length,
// and kinds of request are named after paths where only they are refused.
func TestPathsAreEscaped(t *testing.T) {
	for _, path := range []string{"/%1b%5b2J%1b%5d0;owned%07/x", "/a%ff%fe%80b/x", "/%e2%80%ae/x", "/" + strings.Repeat("n", 60000), "/x%00y%0aline/"} {
		bubble(t, func(w *world, c net.Conn, n int64) {
			switch w.path.Load() {
			case "/good":
				w.write(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			case "/bad":
				w.write(c, "HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 0\r\nLocation: "+path+"\r\n\r\n")
			default:
				w.write(c, "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n")
			}
		}, func(t *testing.T, w *world) {
			for range 3 {
				var wg sync.WaitGroup
				wg.Go(func() {
					for range 200 {
						w.get(t, "/good")
						time.Sleep(500 * time.Millisecond)
						w.said.stats(w.weir)
					}
				})
				for range 3 {
					wg.Go(func() {
						if _, err := w.get(t, "/bad"); err != nil && !typed(err) {
							t.Errorf("%.40s: %v", path, err)
						}
					})
				}
				wg.Wait()
			}
		})
	}
}
