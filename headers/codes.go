package headers

import "strings"

// kindOfCode returns what kind of refusal an error code stands for; ok is false
// for a code that says nothing about quotas. Codes are compared without case
// and punctuation, and by their parts: "ns#Code", "Code:uri", "EAPI:Rate limit
// exceeded" and ".../problem-types#quota-exceeded" all hold a code.
func kindOfCode(s string) (k Kind, ok bool) {
	if s == "quotaExceeded" { // Google's, which is over for the day
		return NoAllowance, true
	}
	for n := 0; s != "" && n < 12; n++ {
		end := strings.IndexAny(s, ":#/")
		if end < 0 {
			end = len(s)
		}
		var low [48]byte
		if part := s[:end]; len(part) <= 2*len(low) {
			if k, ok = kindOfWord(string(letters(low[:0], part))); ok {
				return k, true
			}
		}
		if end == len(s) {
			break
		}
		s = s[end+1:]
	}
	return NoKind, false
}

// letters appends the letters and digits of s in lower case, as many as fit.
func letters(out []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if (c >= 'a' && c <= 'z' || isDigit(c)) && len(out) < cap(out) {
			out = append(out, c)
		}
	}
	return out
}

// kindOfWord is the table of codes, and the patterns that most of them follow.
func kindOfWord(s string) (Kind, bool) {
	switch s {
	case "slowdown", // S3's: "Please reduce your request rate"
		"requestthrottledexception", "requestthrottled", "ec2throttledexception",
		"provisionedthroughputexceededexception", "provisionedthroughputexceeded", "requestlimitexceeded",
		"bandwidthlimitexceeded", "limitexceededexception", "ratelimiterror", "resourceexhausted", "quotaexceeded",
		"ratelimit", "ratelimiting", "secondaryratelimit", "requestratetoolarge", "qpslimitexceeded", "toomanyattempts",
		"mlimitexceeded", "complexitybudgetexhausted", "99991400", "32005", "429":
		return Quota, true
	case "transactioninprogressexception", "priorrequestnotcomplete", "locktimeout", "toomanywriteoperations",
		"concurrentlimitexceeded", "concurrencylimitexceeded", "toomanyconcurrentrequests",
		"concurrentrequestlimitexceeded", "concurrentinvocationlimitexceeded":
		return Concurrency, true
	case "overloadederror", "overloaded", "serviceoverload", "serviceoverloaded", "modelcapacityexhausted",
		"serverbusy", "esrejectedexecutionexception", "temporaryreducedcapacity", "capacityexceeded", "engineoverloaded":
		return Overload, true
	case "abnormalusagedetected", "ipbanned":
		return Ban, true
	case "insufficientquota", "dailylimitexceeded", "dailylimitexceededunreg", "monthlylimitexceeded",
		"dailyquotaexceeded", "billinghardlimitreached", "quotaexhausted", "creditsexhausted":
		return NoAllowance, true
	}
	if strings.HasPrefix(s, "throttl") || strings.Contains(s, "toomanyrequests") || strings.HasSuffix(s, "ratelimited") ||
		strings.Contains(s, "ratelimitexceeded") || strings.Contains(s, "ratelimitreached") {
		return Quota, true
	}
	return NoKind, false
}

// kindOfReason reads a free text in which a server names what refused.
func kindOfReason(s string) Kind {
	switch {
	case containsFold(s, "concurren") || containsFold(s, "lock_timeout"):
		return Concurrency
	case containsFold(s, "overload") || containsFold(s, "capacity") || strings.EqualFold(s, "service"):
		return Overload
	}
	return NoKind
}

// saysLimit reports whether a message for people speaks of a rate limit.
func saysLimit(s string) bool {
	for _, w := range [...]string{"rate limit", "rate-limit", "ratelimit", "too many requests", "too many calls", "request limit",
		"throttl", "abuse detection", "quota exceeded", "call limit"} {
		if containsFold(s, w) {
			return true
		}
	}
	return false
}

// containsFold reports whether s contains sub, which is lower case, in any
// case. Of a long s only the beginning is read.
func containsFold(s, sub string) bool {
	s = s[:min(len(s), 1024)]
	for i := 0; i+len(sub) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(sub)], sub) {
			return true
		}
	}
	return false
}
