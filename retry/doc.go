// Package retry sends an HTTP request again when that is safe and likely to
// help, and never so often that it makes an outage worse.
//
// # What is retried
//
// Two things decide: how the attempt ended, and whether the request may be
// processed twice. It may if its method is idempotent (GET, HEAD, OPTIONS, TRACE,
// PUT, DELETE), or if it has an Idempotency-Key. An Idempotency-Key without a value
// is not sent and means the same, as it does to net/http.
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
// If a server says not to retry (X-Should-Retry and its like), the request is not
// retried. If it says to retry, requests that may be processed twice are retried.
// A request is retried only if its body can be had again: it has none, has
// GetBody, can be read at an offset (a file), was kept (Config.BufferBody), or
// was not touched.
//
// That nothing was processed is never guessed. Dial errors and refused HTTP/2
// streams prove it. For methods that are not idempotent, an attempt also proves it
// that failed without a connection, or by itself before a header was written
// (net/http/httptrace). An attempt that a timeout or the caller ended proves
// nothing once it has a connection, because bytes of it may be sent later.
// net/http repeats some requests by itself: those on a kept-alive connection
// that broke before the first byte of an answer, if safe or keyed, and HTTP/2
// streams that were refused. It is one attempt as seen from here.
//
// # When
//
// The delay is the policy's ([Config].Backoff) or the server's Retry-After
// with some jitter, whichever is longer: never less than the server asked
// for. If the delay exceeds the caller's deadline or MaxDelay, if no attempt is
// left, or if the layer below would refuse the next one, the last response is
// returned, unread. Otherwise that response is read into memory, up to 64 KiB and
// for up to 100 ms, which frees its connection. The request ends with it if no
// later attempt brings a response. There is one exception: if a later attempt may
// have been processed, and the request must not be processed twice, the request
// ends with that attempt's error.
//
// If a throttle stands below, it waits for throttled answers: the request goes
// back into the throttle's queue, where it keeps its place. That costs neither an
// attempt nor allowance.
//
// Each host has an [Allowance], an account that pays for retries and hedges. A
// retry that succeeds fills it again. So all attempts are made while failures are
// chance, and retries stop when hardly any succeeds or answers take longer and
// longer.
//
// # Time
//
// [Wire] sets the timeouts of one attempt: one for dialling, sending and the wait
// for its headers, and one for each Read of its body that is blocked. They do not
// count the time in which the request waits in a queue or for a connection that
// others have, in which its own body is sent, or in which the caller does not
// read. The caller's context bounds the request as a whole.
//
// # Not by itself
//
// Keys ([Config].IdempotencyKey) and hedges ([Hedge]) are used only if asked
// for. A 421 asks for another connection, which only the base can choose. If a
// body breaks off after its headers were returned, the request is not retried,
// because the caller may have used what it has read.
package retry
