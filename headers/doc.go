// Package headers reads what a response says about the server's quotas, in
// every dialect that servers are known to speak.
//
// [Parse] looks at the status and the headers, [ParseBody] at the body too.
// Both return a [Signal]: whether the request was refused and why, how long the
// server asks to wait, and every limit that the response describes. They are
// pure functions of what they are given. Parse never reads the body. A [Memory]
// returns what Parse does, sooner for answers of a host that has spoken before.
//
// # What is read
//
//   - Retry-After in seconds, fractions, every form of date, Unix times and
//     durations, and its cousins (retry-after-ms, x-ms-retry-after-ms,
//     X-Retry-In, any name that ends so).
//   - The IETF drafts draft-ietf-httpapi-ratelimit-headers -03 to -10: the
//     trio, the combined field and the structured fields, policies joined to
//     the limits they are about.
//   - RateLimit-, X-RateLimit- and X-Rate-Limit- headers with whatever is
//     affixed to them. Names are read by a grammar, not from a list: a stem, a
//     field, and units, windows, vendors and names around them in any order,
//     glued or apart. A limit nobody has heard of is found as well.
//   - Special shapes, from a table: pairs and ratios ("20:1,100:120", "32/40"),
//     items that name their own numbers, used counts alone, percentages in JSON.
//   - Error codes and waits in JSON and XML bodies.
//
// # Rules worth knowing
//
// A reset or a wait may be a delta, a Unix time in s, ms, µs or ns, a date or a
// duration; its size and shape decide, never its name. Points in time become
// durations from the server's own clock, its Date header.
//
// If two families of headers say the same of a counter, they make one [Limit]; if
// their numbers differ, they make two. If a header was sent twice, the smallest
// remaining and the longest reset count.
//
// An answer from a cache (Age above 0) has no limits: they are of another time.
//
// # Hostile servers
//
// Any bytes are read in linear time and without panic. Durations are never
// negative and saturate, numbers are finite, texts are printable and at most
// 256 bytes, limits at most 64. Whether to believe a wait of a year is for the
// caller to decide.
package headers
