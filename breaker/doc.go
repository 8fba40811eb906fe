// Package breaker leaves a broken host alone: after enough failures its
// circuit opens and requests are refused at once, until a few probes, one at
// a time, show that it works again.
//
// A circuit is a record of whether a host works. While it is closed, requests
// pass. While it is open, they are refused. While it is half-open, single requests
// pass as probes, to find out whether the host works again.
//
// A Circuits makes two RoundTrippers, which share one circuit per host. The Door
// stands before everything else, so that a refused request has cost nothing. The
// Meter stands last before the network. There it sees every attempt of a retry
// loop, a loop that is running ends when the circuit opens, and no request takes a
// probe's place while it still waits for budget. Most programs need only [Config];
// weir.New makes the Circuits.
//
//	cs, err := breaker.NewCircuits(breaker.Config{})
//	rt := cs.Door(cs.Meter(http.DefaultTransport))
//
// # Outcomes
//
// How an attempt ends when its headers or its error arrive, unless
// Config.Classify says otherwise:
//
//	what came                                    is counted as
//	status 1xx to 4xx, 501, 505                  success
//	408, 429, 5xx that states a spent quota      ignored; a good sign from a probe
//	503 that says "slow down" by a known code    the same; in the body, below a throttle that reads it
//	503 with Retry-After                         ignored; the next probe waits that long
//	503 of what is likely a limiter              the same as its 429, below a throttle
//	any other 5xx                                failure
//	refused, reset, closed, TLS, DNS             failure without an answer
//	the attempt timeout before a connection      failure without an answer
//	the attempt timeout                          silence
//	the caller's deadline, after 1 s on the wire silence
//	the caller's deadline before that            ignored
//	the caller cancelled, a hedge that lost      ignored
//	a refusal by one of weir's layers            ignored
//	no host, unknown scheme, bad header or body  ignored
//	panic                                        ignored
//
// Successes and failures are counted in a window of time that rolls on
// (Config.Window). They may also count as slow (Config.SlowCall). An attempt that
// began before the circuit's last change is not counted.
//
// # Silence
//
// An attempt ends in silence if a timeout or deadline of this program has ended
// it. That happens when the host is dead, but also with a long poll that has no
// news. So silence counts as a failure without an answer, unless something shows
// that the host works. A route is a method, a path without what looks like an
// identifier, and the names in the query.
//
// Silence is ignored if the host answered on another route during the second half
// of it, or between it and the silence before. The other route must not be silent
// itself. The next silences of the same route are then ignored as well, until the
// route is answered, for ten Windows at most. If the host answered during the
// second half, but not on another route, the silence is a failure but not one
// without an answer.
//
// A host of which nothing is asked but polls that it never answers in time cannot be
// told from one that is dead and accepts connections. That a connection can be made,
// or that a ping is answered, shows that a kernel or a proxy works. So a circuit opens
// there after five silences, and the polls become its probes: one at a time, each of 50
// s with an AttemptTimeout of 30 s, open it 65 times an hour, and 69 are sent. Twenty at
// a time open it 116 times, and 141 are sent. With a longer AttemptTimeout for polls
// (retry.With) they are answered, and it stays closed.
//
// If only silence has opened a circuit, it refuses requests to the routes that were
// silent. Requests to other routes pass, and an answer to one of them closes the
// circuit. If more than four routes are silent, requests to all routes are refused.
//
// If a host accepts requests and answers none, that is noticed before their
// timeouts. A request is due when it has been under way four times as long as the
// slowest lately took on its route, and for at least half a second. When five are
// due that were sent within a second, and no answer has come since, the circuit
// opens, because the host is suspected of silence. New requests are then not
// refused: they wait until their deadline, or for half a Window. An answer to any
// request closes the circuit, and they are sent. After five failures it stays open
// like any other circuit. This needs the Wire of package retry below the Meter. It
// is off with Shard, RetriesOnly, FailureRate, Consecutive above 5, or a Patience
// of 1 ns.
//
// # States
//
//	closed -> open       so many calls failed in a row that it is more than
//	                     chance, half of the calls timed out, or the share of
//	                     slow calls in the Window reached SlowRate
//	                     (with FailureRate: the share of failures in the Window
//	                     reached it, Consecutive calls failed in a row, or the
//	                     share of slow calls reached SlowRate)
//	closed -> open       the host is suspected of silence
//	open -> half-open    a request comes when a probe is due
//	open -> closed       silence opened the circuit, and another route was answered
//	open -> closed       a suspicion opened it, and any request was answered
//	half-open -> closed  as many probes as Probes were good
//	half-open -> closed  as from open
//	half-open -> open    a probe failed, and it was the first, or more than six
//	                     probes failed for each good one
//	                     (with FailureRate: a probe failed and none of the last
//	                     five calls was good, or the share of probes that failed
//	                     reached FailureRate)
//
// An open circuit stays Open until a request comes; there is no timer unless
// requests wait. A circuit closes by itself only when its record is forgotten,
// because its host was not called for a Window and the table of hosts is full.
// [Config].MaxOpenFor says which requests are probes, and Patience which of them
// wait for a circuit. The counting is done by github.com/sony/gobreaker/v2.
//
// # Chance and collapse
//
// It is worth calling a host that fails at random: if half of the attempts fail,
// seven of eight calls with three attempts each are served. So a circuit opens
// only after so many failures in a row that it cannot be chance. For a host that
// worked well that is 5 without any answer (Consecutive) or 20 of any kind. For
// one that lately failed three calls of ten it is 13, for one that failed half it
// is 25, and it is never more than 60. A host that continues as before fails that
// often in a row once in 100000 attempts. Timeouts are not taken for chance: the
// circuit opens when half of the calls end so. To have it open when half of the
// calls fail in any way, set FailureRate to 0.5. In a row means both as attempts ended
// and, without FailureRate, as they began: of many that are under way at once those that
// fail may all be quicker or slower than others.
//
// A caller's deadline says how long the caller waits, not how long the host takes.
// While the host answers, a deadline shorter than its slowest answers is no
// failure. If deadlines alone have opened the circuit, the first answer closes it.
// Until the circuit has been open for as long as one of these deadlines, callers
// whose deadline is longer by a quarter are not refused. The first of them is sent
// as a probe, and the others wait for an answer, until their deadline or for half
// a Window. This is off with FailureRate, RetriesOnly, a Fallback, or a Patience
// of 1 ns.
package breaker
