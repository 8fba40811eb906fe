// Package retry sends an HTTP request again when that is safe and likely to
// help, and never so often that it makes an outage worse.
//
// # What is retried
//
// The outcome of an attempt decides, and whether the request may be processed
// twice: because its method is idempotent (GET, HEAD, OPTIONS, TRACE, PUT,
// DELETE), or because it carries an Idempotency-Key. An entry of that name
// without a value is not sent and says the same, as it does to net/http.
//
//	outcome                                        idempotent  other
//	                                               or keyed    methods
//	not processed: dial failed, refused stream,    again       again
//	  no header written
//	connection broken, attempt timed out           again       never
//	408                                            again       never
//	409                                            if asked    never
//	421, 425                                       once        once
//	429, and 4xx that mean it                      again       again
//	500, other 5xx                                 again       never
//	501, 505, 506, 508, 510, 511                   never       never
//	502, 504                                       again       never
//	503, 529                                       again       never
//	bad certificate, scheme, header, host          never       never
//	the caller left; refused by a layer of ours    never       never
//	anything else                                  never       never
//
// A server that says not to retry (X-Should-Retry and its like) is obeyed
// always; one that says to retry is believed for what may be processed twice.
// A request is retried only if its body can be had again: it has none, has
// GetBody, can be read at an offset (a file), was kept (Config.BufferBody), or
// was not touched.
//
// That nothing was processed is never guessed. Dial errors and refused HTTP/2
// streams prove it; for methods that are not idempotent, so does an attempt
// that failed without a connection, or by itself before a header was written
// (net/http/httptrace). One that somebody ended proves nothing once it has a
// connection: what is blocked in a Write may go out later.
// net/http repeats some requests by itself: those on a kept-alive connection
// that broke before the first byte of an answer, if safe or keyed, and HTTP/2
// streams that were refused. It is one attempt as seen from here.
//
// # When
//
// The delay is the policy's ([Config].Backoff) or the server's Retry-After
// with some jitter, whichever is longer: never less than the server asked
// for. If it does not fit the caller's deadline or MaxDelay, if no attempt is
// left, or if the layer below would refuse the next one, the answer in hand is
// returned, unread. Otherwise it is read into memory, up to 64 KiB and for up
// to 100 ms, which frees its connection, and is what the request ends with if
// no later attempt brings a response. Only where a later one may have been
// processed, and must not be twice, the request ends with that one's error.
//
// With a throttle below, an answer that was throttled is not delayed here: the
// request goes back into the throttle's queue, where it keeps its place, and
// pays neither an attempt nor allowance for it.
//
// Each host has an [Allowance] that retries and hedges are paid from. As long as
// retries succeed the failures are chance, and all attempts are made; when next
// to none does, or answers take longer and longer, retries stop.
//
// # Time
//
// [Wire] bounds one attempt: dialling, sending and the wait for its headers, and
// each Read of its body that is blocked. Its clocks do not run while the request
// waits below retry or for a connection that others have, while its own body is
// sent, nor while the caller is slow to read. The caller's context bounds the
// request.
//
// # Not by itself
//
// Keys ([Config].IdempotencyKey) and hedges ([Hedge]) are used only if asked
// for. A 421 asks for another connection, which only the base can choose. A
// body that breaks off after its headers were returned is the caller's to deal
// with: he may have used what he read.
package retry
