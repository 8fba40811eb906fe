package headers

import "time"

// class says what a word of a header name does there.
type class uint8

const (
	unknownWord class = iota // part of the limit's name
	stemWord                 // "ratelimit": makes the header one of ours
	rateWord                 // "rate": a stem with "limit" after it, part of a pair with "fill" before it
	fieldWord                // says which number the header holds
	unitWord                 // says what is counted
	sideWord                 // "input", "output": with "tokens" after it another unit
	windowWord               // a length of time
	adverbWord               // a length of time that the limit is also called by: "daily"
	vendorWord               // whose header it is, which says nothing about the limit
	fillerWord               // nothing at all
	inertWord                // makes the header none of ours: "cost", "status"
	formWord                 // how the number is written: "ms", "after", "timestamp"
	labelWord                // the value is text about the limits, if no field word says otherwise
)

// word is the meaning of one word of a header name.
type word struct {
	class  class
	role   role          // of field and label words
	unit   string        // of unit words, and the unit of a stem that has one
	window time.Duration // of window words; of form words, what a bare number counts
	prefer int8          // of reset words: which of several resets is believed
}

// role is which fact a header's value states.
type role uint8

const (
	roleNone role = iota
	roleQuota
	roleRemaining
	roleUsed
	roleReset
	roleWindow
	roleRefill
	roleRatio
	rolePercent // a ratio, or a hundred times one
	roleList    // the stem alone: a quota, or a list that names its own numbers
	rolePolicy  // a list of quotas with their windows
	roleWait
	roleNext  // the instant of the next unit, which is a wait
	roleDelay // a wait, but only in a refusal
	roleLabel
	roleScope
	roleReason
	roleAdvice // whether to retry at all
	roleCode   // an error code
	roleSentry // seconds and categories
	roleRate   // units per second
	roleCost   // units that this request needs
)

func field(r role) word                 { return word{class: fieldWord, role: r} }
func label(r role) word                 { return word{class: labelWord, role: r} }
func unit(u string) word                { return word{class: unitWord, unit: u} }
func span(d time.Duration) word         { return word{class: windowWord, window: d} }
func form(d time.Duration, p int8) word { return word{class: formWord, window: d, prefer: p} }

func adverb(d time.Duration) word { return word{class: adverbWord, window: d} }

// wordOf returns the meaning of a lower-case word.
func wordOf(s string) word {
	if w := fieldOf(s); w.class != unknownWord {
		return w
	}
	if w := unitOrForm(s); w.class != unknownWord {
		return w
	}
	if w := windowOf(s); w.class != unknownWord {
		return w
	}
	if isVendor(s) {
		return word{class: vendorWord}
	}
	return word{}
}

// fieldOf knows the stem and the words for what a number is.
func fieldOf(s string) word {
	switch s {
	case "ratelimit", "ratelimits", "ratelimiting", "ratelimited", "quota", "quotas",
		"throttle", "throttling":
		return word{class: stemWord}
	case "ratelimitbysize":
		return word{class: stemWord, unit: "tokens"}
	case "rate":
		return word{class: rateWord}
	case "limit", "limits", "max", "maximum", "total", "allowed", "capacity", "ceiling":
		return field(roleQuota)
	case "remaining", "remain", "remains", "available", "left":
		return field(roleRemaining)
	case "used", "observed", "usage", "consumed", "current", "count":
		return field(roleUsed)
	case "reset", "resets", "expire", "expires":
		return field(roleReset)
	case "resettime", "resetat", "resetdate", "resettimestamp":
		return word{class: fieldWord, role: roleReset, prefer: -1}
	case "resetafter", "resetin", "resetsin", "resetsafter":
		return word{class: fieldWord, role: roleReset, prefer: 1}
	case "period", "interval", "duration", "window", "renewalperiod", "timewindow", "timeframe":
		return field(roleWindow)
	case "fillrate", "refillrate", "replenishrate":
		return field(roleRefill)
	case "utilization", "utilisation", "ratio":
		return field(roleRatio)
	case "percentage", "percent", "pct":
		return field(rolePercent)
	case "retryafter", "backoff", "wait":
		return field(roleWait)
	case "policy", "policies":
		return label(rolePolicy)
	case "resource", "bucket", "name":
		return label(roleLabel)
	case "scope":
		return label(roleScope)
	case "reason", "type", "category", "problem":
		return label(roleReason)
	case "delay":
		return label(roleDelay)
	case "next":
		return label(roleNext)
	case "errortype", "errorcode":
		return label(roleCode)
	}
	return word{}
}

// unitOrForm knows units, the words on how a number is written, and those that
// make a header none of ours.
func unitOrForm(s string) word {
	switch s {
	case "requests", "request", "req", "reqs", "call", "calls", "queries", "hits":
		return unit("requests")
	case "tokens", "token":
		return unit("tokens")
	case "input":
		return word{class: sideWord, unit: "input_tokens"}
	case "output":
		return word{class: sideWord, unit: "output_tokens"}
	case "complexity":
		return unit("complexity")
	case "points", "point":
		return unit("points")
	case "credits", "credit":
		return unit("credits")
	case "weight":
		return unit("weight")
	case "orders", "order":
		return unit("orders")
	case "bytes":
		return unit("bytes")
	case "messages":
		return unit("messages")
	case "units":
		return unit("units")
	case "concurrent", "concurrency", "parallel", "inflight", "simultaneous":
		return unit("concurrent-requests")
	case "ms", "milliseconds", "millis", "msec":
		return form(time.Millisecond, 0)
	case "seconds", "secs", "epoch", "unix", "utc":
		return form(time.Second, 0)
	case "after", "in":
		return form(0, 1)
	case "time", "timestamp", "at", "date":
		return form(0, -1)
	case "x", "http", "this", "per", "of", "the", "for", "to", "until":
		return word{class: fillerWord}
	case "status", "cost", "scale", "code", "source", "over", "near", "exceeded", "limited",
		"requested", "error", "enabled", "warning", "info", "information", "version", "id",
		"nearlimit", "overlimit", "retry", "should", "fallback", "upgrade", "currentrequest":
		return word{class: inertWord}
	}
	return word{}
}

// windowOf knows lengths of time: words, and a number with a unit as in "5h",
// "24hour" and "10s".
func windowOf(s string) word {
	switch s {
	case "second", "sec", "persecond":
		return span(time.Second)
	case "minute", "min", "perminute":
		return span(time.Minute)
	case "hour", "hr", "perhour":
		return span(time.Hour)
	case "day", "today", "perday":
		return span(day)
	case "week", "perweek":
		return span(7 * day)
	case "month", "permonth":
		return span(30 * day)
	case "year", "peryear":
		return span(365 * day)
	case "secondly":
		return adverb(time.Second)
	case "minutely":
		return adverb(time.Minute)
	case "hourly":
		return adverb(time.Hour)
	case "daily":
		return adverb(day)
	case "weekly":
		return adverb(7 * day)
	case "monthly":
		return adverb(30 * day)
	case "yearly", "annual":
		return adverb(365 * day)
	}
	if s != "" && isDigit(s[0]) {
		if d, n := countedSpan(s); n == len(s) {
			return span(d)
		}
	}
	return word{}
}

// countedSpan reads a number and a unit of time at the start of s, as "3min",
// and returns the bytes they take, 0 if they are not there.
func countedSpan(s string) (time.Duration, int) {
	n := 0
	for n < len(s) && n < 5 && isDigit(s[n]) {
		n++
	}
	count, ok := atoi(s[:n])
	end := n
	for end < len(s) && (s[end] >= 'a' && s[end] <= 'z' || s[end] >= 'A' && s[end] <= 'Z') {
		end++
	}
	if !ok || count == 0 || end == n || end-n > 7 {
		return 0, 0
	}
	var low [8]byte
	u := unitOf(string(low[:copyLower(low[:], s[n:end])]))
	if u < time.Second {
		return 0, 0
	}
	return decimal{whole: uint64(count)}.times(u), end
}

// windowName is what a limit is called whose window is glued to the word
// "limit", as in "daylimit".
func windowName(d time.Duration) string {
	switch d {
	case time.Second:
		return "second"
	case time.Minute:
		return "minute"
	case time.Hour:
		return "hour"
	case day:
		return "day"
	case 7 * day:
		return "week"
	case 30 * day:
		return "month"
	case 365 * day:
		return "year"
	}
	return ""
}

// isVendor knows names that vendors put in front of their headers. A name that
// is missing here, and is not in the host's name either, becomes part of the
// limit's name, which harms nobody.
func isVendor(s string) bool {
	switch s {
	case "hubspot", "sentry", "fastly", "contentful", "sib", "gate", "gw", "ogw", "jumpseller",
		"anthropic", "bapi", "beta", "zendesk", "auth0", "github", "gitlab", "shopify", "twilio",
		"stripe", "amzn", "amz", "goog", "google", "azure", "docker", "discourse", "envoy",
		"cf", "cloudflare", "akamai", "okta", "atlassian", "openai", "groq", "mistral", "cohere",
		"xero", "mbx", "fitbit", "discogs", "hb", "bm", "sapi", "sforce", "kong", "apigee", "tyk", "ibm", "dd", "datadog", "figma", "slack":
		return true
	}
	return false
}

// copyLower copies s to dst with ASCII letters in lower case and returns how
// many bytes fitted.
func copyLower(dst []byte, s string) int {
	n := min(len(dst), len(s))
	for i := range n {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst[i] = c
	}
	return n
}
