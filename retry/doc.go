// Package retry sends an HTTP request again when that is safe and likely to
// help, and never so often that it makes an outage worse.
//
// Most programs need only [Config] and [Error]; weir.New makes the Transport. The other
// types are for the hook ([Attempt]), statistics ([Stats]) and single requests
// ([With]). Each way in which an attempt can end has a name, so go doc -all of this
// package is long.
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
// A 503 whose code names a quota (S3's SlowDown) is one of those that mean 429.
//
// If a server says not to retry (X-Should-Retry and its like), the request is not
// retried. If it says to retry, requests that may be processed twice are retried.
// A request is retried only if its body can be sent again: if it has none, has
// GetBody, can be read at an offset (a file), was kept (Config.BufferBody), or was
// not touched.
//
// That nothing was processed is never guessed. Dial errors and refused HTTP/2
// streams prove it. For methods that are not idempotent, it is also proved if the
// attempt failed without a connection, or by itself before a header was written
// (net/http/httptrace). If a timeout or the caller ended an attempt that had a
// connection, nothing is proved, because bytes of it may be sent later. net/http
// repeats some requests by itself: safe or keyed ones on a kept-alive connection
// that broke before the first byte of an answer, and HTTP/2 streams that were
// refused. Here that counts as one attempt. It repeats a refused stream up to seven
// times, and waits a second, two, four and so on in between: a host that goes on
// refusing streams holds an attempt up until its timeout ends it.
//
// # When
//
// The delay is the policy's ([Config].Backoff) or the server's Retry-After with
// some jitter, whichever is longer: never less than the server asked for. If the
// delay exceeds the caller's deadline or MaxDelay, if no attempt is left, or if
// the layer below would refuse the next one, the last response is returned,
// unread. Otherwise that response is read into memory, up to 64 KiB and for up to
// 100 ms, which frees its connection. If no later attempt brings a response, the
// caller gets that one. There is one exception: if a later attempt may have been
// processed, and the request must not be processed twice, the caller gets that
// attempt's error.
//
// If a throttle stands below and the answer was throttled, the request goes back
// into the throttle's queue, where it keeps its place, and waits there. That costs
// neither an attempt nor allowance.
//
// Each host has an [Allowance] of tokens, from which retries and hedges (second
// attempts beside a slow first one) are paid. A retry that succeeds brings tokens
// back. So all attempts are made if a host fails at random, and retries stop when
// hardly any succeeds or answers take longer and longer.
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
// Idempotency keys ([Config].IdempotencyKey) and hedges ([Hedge]) are used only if
// you configure them. A 421 asks for another connection, which only the base can
// choose. If a body breaks off after its headers were returned, the request is not
// retried, because the caller may have used what it has read.
package retry
