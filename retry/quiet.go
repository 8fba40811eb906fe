package retry

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// quiet reports whether the body of resp, the answer to r, is a stream of
// messages that may be quiet for as long as nothing happens. StallTimeout does
// not cut such a body. The media type says so, or its parameter "stream=watch".
//
// A watch of Kubernetes in plain JSON and a log that is followed look like any
// other answer, but the client has asked for them: "watch=true" or
// "follow=true" in the query is believed, because all that a false positive
// loses is this timeout, for one answer to a client that wrote so itself.
//
// A body of known length was complete before it was sent: it is never quiet.
func quiet(r *http.Request, resp *http.Response) bool {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return true
	}
	if resp.ContentLength > 0 {
		return false
	}
	var said string
	if v := resp.Header["Content-Type"]; len(v) > 0 { // Get would look at each letter of the name
		said = v[0]
	}
	kind, parameters, _ := strings.Cut(strings.ToLower(said), ";")
	return quietType(strings.TrimSpace(kind)) || watched(parameters) || asksToWatch(r.URL)
}

// quietType reports whether a media type in lower case is that of a stream.
// Types of single answers, which APIs use for streams as well (Docker's events
// are application/json), are not here: Override.StallTimeout is for these.
func quietType(kind string) bool {
	switch kind {
	case "text/event-stream", // WHATWG, server-sent events
		"multipart/x-mixed-replace",                    // each part replaces the last one: cameras, server push
		"application/json-seq", "application/cbor-seq", // RFC 7464, RFC 8742
		"application/ndjson", "application/x-ndjson", // one JSON text a line
		"application/jsonl", "application/x-jsonl", // the same
		"application/jsonlines", "application/x-jsonlines", "application/json-lines", // the same
		"application/stream+json", "application/x-json-stream", // the same, older
		"application/vnd.docker.raw-stream", "application/vnd.docker.multiplexed-stream", // logs, attach, exec
		"application/vnd.amazon.eventstream": // AWS: Kinesis, Transcribe, Bedrock
		return true
	}
	return strings.HasPrefix(kind, "application/grpc") || // gRPC and gRPC-Web, whatever the encoding
		strings.HasPrefix(kind, "application/connect+") || // Connect: streams only, single answers have other types
		strings.HasSuffix(kind, "+json-seq") || strings.HasSuffix(kind, "+cbor-seq") // RFC 8091, RFC 8742
}

// watched reports whether the parameters of a media type include
// "stream=watch", as Kubernetes says of watches in protobuf and CBOR. They are
// in lower case.
func watched(parameters string) bool {
	if !strings.Contains(parameters, "watch") { // nearly all
		return false
	}
	for p := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if name == "stream" && strings.Trim(value, `"`) == "watch" {
			return true
		}
	}
	return false
}

// asksToWatch reports whether a query has "watch" or "follow" with a value that
// strconv.ParseBool takes for true, as Kubernetes and Docker do.
func asksToWatch(u *url.URL) bool {
	if u == nil || !strings.Contains(u.RawQuery, "watch=") && !strings.Contains(u.RawQuery, "follow=") {
		return false
	}
	query := u.Query()
	for _, name := range [...]string{"watch", "follow"} {
		if yes, _ := strconv.ParseBool(query.Get(name)); yes {
			return true
		}
	}
	return false
}
