// Package breaker leaves a broken host alone: after enough failures its
// circuit opens and requests are refused at once, until a few probes, one at
// a time, show that it works again.
//
// A circuit is what is known about a host. Closed, it lets requests through; open,
// it refuses them; half-open, it lets single requests through as probes, to find
// out whether the host works again.
//
// A Circuits makes two RoundTrippers, which share one circuit per host. The Door
// stands before everything else, so that a refused request has cost nothing. The
// Meter stands last before the network, so that it sees every attempt of a retry
// loop, that no request which still waits for budget takes a probe's place, and
// that a running loop ends when the circuit opens.
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
// Successes and failures are counted in the rolling window. They may also be slow
// (Config.SlowCall). An attempt that began before the circuit's last change is not
// counted.
//
// # Silence
//
// Silence is an attempt that a timeout or deadline of this program has ended. A
// dead host is silent, and so is a long poll without news. Silence counts as a
// failure without an answer, unless something shows that the host works.
//
// Silence is its route's own, and ignored, if the host answered on another route
// during the second half of it, or between it and the silence before. The other
// route must not be silent itself. The next silences of the route are ignored as
// well, for ten Windows at most and until the route is answered. If the host
// answered during the second half, but not on another route, the silence is a
// failure, but no part of a run without an answer.
//
// If nothing but silence has opened a circuit, it refuses the routes that were
// silent. Other routes pass, and an answer to one of them closes it. If more than
// four routes are silent, the host is taken to be silent, and none of this holds.
//
// A host that swallows requests is suspected before their time runs out. A request
// is due when it has been under way four times as long as the slowest lately took on
// its route, and for half a second. When five are due that were sent within a second,
// and nobody has been answered since, the circuit opens; those who come wait for it
// until their deadline, or for half a Window, and are not refused. An answer to any
// request closes it, and they go. Five failures confirm it. This needs the Wire of
// package retry below the Meter. It does not hold with Shard, RetriesOnly,
// FailureRate, Consecutive above 5, or a Patience of 1 ns.
//
// A route is a method, a path without what looks like an identifier, and the
// names in the query.
//
// # States
//
//	closed -> open       a run of failures that is more than chance, or half
//	                     of the calls timed out, or SlowRate in Window; with
//	                     FailureRate that rate in Window, or a run
//	open -> half-open    a request comes when a probe is due
//	half-open -> open    a probe failed, and it was the first, or more than six
//	                     failed for each good one; with FailureRate none of the
//	                     last five calls was good, or too many failed for it
//	half-open -> closed  Probes good ones
//	closed -> open       so many are due that the host is suspected of silence
//	open -> closed       silence opened it, and another route was answered
//	open -> closed       a suspicion, and anybody was answered
//	half-open -> closed  the same
//
// An open circuit is Open until a request comes; there is no timer unless
// requests wait. Only the forgetting of a record (its host quiet for a Window,
// its table full) makes a circuit closed by itself. [Config].MaxOpenFor says which
// requests are probes, Patience which of them wait for a circuit. The counting is
// done by github.com/sony/gobreaker/v2.
//
// # Chance and collapse
//
// A host that fails at random is worth its calls: of those that make three
// attempts each, seven in eight are served if half of the attempts fail. So a
// circuit opens only when calls are hopeless. That is told by how many failures
// in a row are more than chance: 5 without any answer (Consecutive) or 20 of any
// kind for a host that was well, 13 for one that lately failed three calls of ten,
// 25 for one that failed half, never more than 60. The run is so long that a host
// which goes on as before shows it once in 100000 attempts. Timeouts are not taken
// for chance: half of the calls ending so open the circuit. Users who want the
// classic half of all failures set FailureRate to 0.5.
//
// A caller's deadline says how long the caller waits, not how long the host
// takes. While the host answers, deadlines shorter than its slowest answers are
// no failures; if deadlines alone have opened the circuit, the first answer
// closes it. Until it has been open for as long as one of them lasted, callers who
// wait longer than these by a quarter are not refused: the first is sent as a
// probe, and the others wait for an answer, until their deadline or for half a
// Window. This does not hold with FailureRate, RetriesOnly, a Fallback, or a
// Patience of 1 ns.
package breaker
