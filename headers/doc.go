// Package headers reads what a response says about the server's quotas. It knows
// all headers and bodies that servers are known to use for that.
//
// [Parse] looks at the status and the headers, [ParseBody] at the body too.
// Both return a [Signal]: whether the request was refused and why, how long the
// server asks to wait, and every limit that the response describes. The result
// depends only on the arguments. Parse never reads the body. A [Memory] returns the
// same as Parse, and is faster for a host that has answered before.
//
// # What is read
//
//   - Retry-After in seconds, fractions, every form of date, Unix times and
//     durations, and similar headers (retry-after-ms, x-ms-retry-after-ms,
//     X-Retry-In, and other names that end like these).
//   - The IETF drafts draft-ietf-httpapi-ratelimit-headers -03 to -10: the three
//     separate fields, the combined field and the structured fields. A policy is
//     joined to the limit that it is about.
//   - RateLimit-, X-RateLimit- and X-Rate-Limit- headers with any prefix or suffix.
//     Names are read by a grammar and not from a list: a stem and a field, with
//     units, windows, vendors and names around them in any order, joined or
//     separate. So a header that is not known is read as well.
//   - Special formats, from a table: pairs and ratios ("20:1,100:120", "32/40"),
//     items that name their own numbers, counts of what is used alone, percentages
//     in JSON.
//   - Error codes and waits in JSON and XML bodies.
//
// # Rules
//
// A reset or a wait may be a number of seconds from now, a Unix time in s, ms, µs or
// ns, a date or a duration. Its size and format decide which it is, and its name
// does not. A point in time becomes a duration by the server's own clock, its Date
// header.
//
// If two families of headers say the same of a counter, they make one [Limit]. If
// their numbers differ, they make two. If a header was sent twice, the smallest
// remaining and the longest reset count.
//
// An answer from a cache (Age above 0) has no limits, because they are of the time
// at which it was stored.
//
// # Hostile servers
//
// Any bytes are read in linear time and without a panic. A duration is never
// negative, and one that is too long becomes the longest there is. Numbers are
// finite, texts are printable and have at most 256 bytes, and there are at most 64
// limits. Whether to believe a wait of a year is for the caller to decide.
package headers
