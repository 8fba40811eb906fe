package headers

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
// grammar or the table of special shapes could make something of. It looks for
// one rare letter of each piece first.
func promising(name string) bool {
	if len(name) > maxName {
		return false
	}
	if around(name, 2, "ratelimit") { // the most of them
		return true
	}
	for i := range len(name) {
		var found bool
		switch name[i] | 0x20 {
		case 'm':
			found = around(name, i-2, "limit") || around(name, i-2, "remain") || around(name, i, "mbx")
		case 'u':
			found = around(name, i-1, "quota") || around(name, i, "usage") || around(name, i-4, "concurren") ||
				around(name, i-5, "sapi-used")
		case 'y':
			found = around(name, i-4, "retry") || around(name, i-6, "errortype")
		case 'k':
			found = around(name, i-2, "token") || around(name, i-3, "backoff")
		case 'h':
			found = around(name, i-1, "throttl")
		case 'd':
			found = around(name, i-3, "credit") || around(name, i-8, "error-code")
		case 'f':
			found = around(name, i-2, "left")
		}
		if found {
			return !around(name, 0, "x-amz-meta-") // a user's own data
		}
	}
	return false
}

// around reports whether s has sub, which is lower case, at i in any case.
func around(s string, i int, sub string) bool {
	if i < 0 || i+len(sub) > len(s) {
		return false
	}
	for k := range len(sub) {
		if lower(s[i+k]) != sub[k] {
			return false
		}
	}
	return true
}
