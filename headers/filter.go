package headers

import "strings"

// ordinary knows the headers of most responses, in the spelling that net/http
// gives them, which say nothing about quotas. It only saves time.
func ordinary(name string) bool {
	switch name {
	case "Accept-Ranges", "Access-Control-Allow-Credentials", "Access-Control-Allow-Headers",
		"Access-Control-Allow-Methods", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers",
		"Access-Control-Max-Age", "Alt-Svc", "Cache-Control", "Cf-Cache-Status", "Cf-Ray", "Connection",
		"Content-Disposition", "Content-Encoding", "Content-Language", "Content-Length", "Content-Security-Policy",
		"Content-Type", "Etag", "Expires", "Keep-Alive", "Last-Modified", "Link", "Location", "Nel", "P3p", "Pragma",
		"Permissions-Policy", "Referrer-Policy", "Report-To", "Server", "Server-Timing", "Set-Cookie",
		"Strict-Transport-Security", "Transfer-Encoding", "Vary", "Via", "X-Cache", "X-Content-Type-Options",
		"X-Correlation-Id", "X-Dns-Prefetch-Control", "X-Download-Options", "X-Frame-Options",
		"X-Permitted-Cross-Domain-Policies", "X-Powered-By", "X-Request-Id", "X-Runtime", "X-Served-By",
		"X-Xss-Protection", "Www-Authenticate":
		return true
	}
	return false
}

// promising reports whether a header name holds a piece of a word that the
// grammar or the table of special shapes could make something of.
func promising(name string) bool {
	// Most names fail by the letters they are made of.
	var has uint32
	for i := range len(name) {
		has |= 1 << (name[i] & 31)
	}
	if len(name) > maxName {
		return false
	}
	for i := range pieces {
		if m := pieces[i].letters; has&m == m && within(name, pieces[i].text) {
			return !prefixFold(name, "x-amz-meta-") // a user's own data
		}
	}
	return false
}

// within reports whether s contains sub, which is lower case, in any case.
func within(s, sub string) bool {
	first := sub[0]
	for i := 0; i+len(sub) <= len(s); i++ {
		if lower(s[i]) == first && prefixFold(s[i:], sub) {
			return true
		}
	}
	return false
}

func prefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// piece is a part of a name and the set of its letters, one bit each.
type piece struct {
	text    string
	letters uint32
}

const (
	bitA = 1 << (iota + 1)
	bitB
	bitC
	bitD
	bitE
	bitF
	bitG
	bitH
	bitI
	bitJ
	bitK
	bitL
	bitM
	bitN
	bitO
	bitP
	bitQ
	bitR
	bitS
	bitT
	bitU
	bitV
	bitW
	bitX
	bitY
	bitZ
)

var pieces = [...]piece{
	{"limit", bitL | bitI | bitM | bitT},
	{"retry", bitR | bitE | bitT | bitY},
	{"remain", bitR | bitE | bitM | bitA | bitI | bitN},
	{"quota", bitQ | bitU | bitO | bitT | bitA},
	{"usage", bitU | bitS | bitA | bitG | bitE},
	{"throttl", bitT | bitH | bitR | bitO | bitL},
	{"token", bitT | bitO | bitK | bitE | bitN},
	{"mbx", bitM | bitB | bitX},
	{"sapi-used", bitS | bitA | bitP | bitI | bitU | bitE | bitD},
	{"backoff", bitB | bitA | bitC | bitK | bitO | bitF},
	{"concurren", bitC | bitO | bitN | bitU | bitR | bitE},
	{"errortype", bitE | bitR | bitO | bitT | bitY | bitP},
	{"error-code", bitE | bitR | bitO | bitC | bitD},
	{"reset", bitR | bitE | bitS | bitT},
}
