package headers

import (
	"strings"
	"time"
)

// body is what a response's body says beyond limits and waits.
type body struct {
	kind   Kind // of the strongest code; NoKind if none was found
	coded  bool // a code says that this is a refusal for quota
	worded bool // a message for people says so
	number bool // an error number that may say so: Meta's
	graph  graphQL
}

// code notes an error code.
func (b *body) code(s string) {
	if k, ok := kindOfCode(s); ok {
		b.coded = true
		b.kind = stronger(b.kind, k)
	}
}

// stronger returns the more telling of two kinds: a response that names a
// general code often names the particular one too.
func stronger(a, b Kind) Kind {
	order := [...]uint8{NoKind: 0, Quota: 1, Overload: 2, Concurrency: 3, Ban: 4, NoAllowance: 5}
	if order[b] > order[a] {
		return b
	}
	return a
}

// readBody reads JSON, XML and plain text.
func (p *parser) readBody(text string) (b body) {
	text = strings.TrimLeft(text, " \t\r\n\ufeff")
	switch {
	case text == "":
	case text[0] == '{' || text[0] == '[':
		p.readJSON(&b, text)
	case text[0] == '<':
		p.readXML(&b, text)
	default:
		if strings.HasPrefix(text, "error code: 1015") {
			b.coded, b.kind = true, Ban
		}
		b.worded = saysLimit(text)
	}
	return b
}

// readXML reads the code of an AWS error. In a served answer the root must be
// the error: a code deep in a document of another kind is data.
func (p *parser) readXML(b *body, text string) {
	head := text[:min(len(text), 4096)]
	if strings.HasPrefix(head, "<?") {
		_, rest, _ := strings.Cut(head, "?>")
		head = strings.TrimLeft(rest, " \t\r\n")
	}
	if !strings.Contains(head, "<Error") || p.status < 300 && !strings.HasPrefix(head, "<Error") {
		return
	}
	if _, rest, ok := strings.Cut(head, "<Code>"); ok {
		if code, _, ok := strings.Cut(rest, "</Code>"); ok {
			b.code(code)
		}
	}
	if _, rest, ok := strings.Cut(head, "<Message>"); ok {
		b.worded = saysLimit(rest)
	}
}

// readJSON looks at the members of the answer itself and of its error objects,
// never at its data.
func (p *parser) readJSON(b *body, text string) {
	j := scanner{s: text}
	trusted := 0 // open containers that all belong to the error
	inHeaders := 0
	for {
		e := j.next()
		coded := b.coded
		switch e.kind {
		case eventEnd:
			return
		case eventOpen:
			if trusted == j.depth-1 && isErrorKey(e.key) {
				trusted++
			}
			// An error may quote the headers of a server behind; an echo of
			// the request is none.
			if inHeaders == 0 && strings.EqualFold(e.key, "headers") && trusted == j.depth-1 && !j.top(j.depth-1) {
				inHeaders = j.depth
			}
		case eventClose:
			trusted = min(trusted, j.depth)
			if j.depth < inHeaders {
				inHeaders = 0
			}
		case eventValue:
			if inHeaders > 0 && inHeaders == j.depth {
				p.header(e.key, []string{e.text})
			} else if trusted == j.depth {
				p.member(b, &j, e)
			}
		}
		b.graph.note(&j, e, b.coded && !coded)
	}
}

// isErrorKey knows the keys under which errors are described.
func isErrorKey(key string) bool {
	var low [24]byte
	switch string(letters(low[:0], key)) {
	case "", "error", "errors", "extensions", "details", "detail", "innererror", "fault", "cause", "parameters",
		"metadata", "violations", "cost", "throttlestatus", "violatedpolicies", "responsestatus", "meta":
		return true
	}
	return false
}

// member reads one member of the answer or of its error.
func (p *parser) member(b *body, j *scanner, e event) {
	var low [32]byte
	top := j.top(j.depth)
	// In a served answer, a type or a status of its own is data.
	data := top && p.status < 300
	switch string(letters(low[:0], e.key)) {
	case "retryafter", "retryafterseconds", "retryaftersecs", "retrydelay", "retryin", "retryinseconds", "backoffseconds":
		p.bodyWait(e, time.Second)
	case "retryafterms", "retryaftermillis", "retryaftermilliseconds":
		p.bodyWait(e, time.Millisecond)
	case "estimatedtimetoregainaccess":
		p.bodyWait(e, time.Minute)
	case "backoff":
		if top {
			p.bodyWait(e, time.Second)
		}
	case "status", "statuscode":
		if !data || isInteger(e.text) {
			p.codeMember(b, e)
		}
	case "code", "errorcode", "errcode", "retcode", "subcode":
		p.codeMember(b, e)
	case "type", "reason", "name", "tag":
		if !data {
			b.code(e.text)
		}
	case "error", "errors", "errortype", "errorsummary":
		b.code(e.text)
		b.worded = b.worded || saysLimit(e.text)
		p.throttledUntil(e.text)
	case "policyname":
		if e.text == "DAILY" {
			b.kind = stronger(b.kind, NoAllowance)
		}
	case "quotaid":
		if strings.Contains(e.text, "PerDay") {
			b.kind = stronger(b.kind, NoAllowance)
		}
	case "message", "msg", "errormessage", "errordescription", "detail", "description", "title", "documentationurl", "retmsg":
		b.worded = b.worded || saysLimit(e.text)
	default:
		p.bodyCount(j, e)
	}
}

// codeMember reads a code, which may be a number.
func (p *parser) codeMember(b *body, e event) {
	if n, ok := atoi(e.text); ok {
		switch {
		case n == 10006: // Bybit
			b.code("RATE_LIMITED")
		case n == 4 || n == 17 || n == 32 || n == 613 || n >= 80000 && n <= 80014:
			b.number = true
		}
	}
	b.code(e.text)
}

// throttledUntil reads Kraken's "EService: Throttled: 1768478430".
func (p *parser) throttledUntil(s string) {
	if i := strings.LastIndexByte(s, ':'); i > 0 && containsFold(s[:i], "throttled") {
		if d, ok := parseDecimal(trim(s[i+1:])); ok && d.whole >= y2k {
			p.waits.add(longestWait([]string{s[i+1:]}, time.Second, p.now), false)
		}
	}
}

func (p *parser) bodyWait(e event, unit time.Duration) {
	if d, ok := parseWait(e.text, unit, p.now); ok {
		p.waits.add(some(d), unit < time.Second)
	}
}

// bodyCount reads the counters of StackExchange and of Shopify's GraphQL.
func (p *parser) bodyCount(j *scanner, e event) {
	v, minus, ok := parseCount(e.text)
	if !ok || e.quoted {
		return
	}
	m := meaning{unit: "requests"}
	switch e.key {
	case "quota_remaining":
		if j.depth == 1 {
			m.role = roleRemaining
		}
	case "quota_max":
		if j.depth == 1 {
			m.role = roleQuota
		}
	case "maximumAvailable":
		m.role, m.unit = roleQuota, "points"
	case "currentlyAvailable":
		m.role, m.unit = roleRemaining, "points"
	case "restoreRate":
		m.role, m.unit = roleRefill, "points"
	case "requestedQueryCost":
		m.role, m.unit = roleCost, "points"
	}
	if m.role == roleNone {
		return
	}
	p.source = "body"
	p.count(&m, 0, 0, v, minus)
}
