// Package attribution finds out why a server refused a request, and which requests are
// bound by the limit that the refusal speaks of.
//
// A server seldom says whom it refuses. A 429 may be for one request, for one
// kind of request, for all requests of one credential or for those of everybody, and a 503
// may be a limit, an overload or chance. If weir takes the limit to be wider than it is, it
// holds back requests to which it does not apply. If weir takes it to be narrower, more
// requests are refused. So each type here compares two guesses, answer by answer, and says
// when one of them is sure.
//
// # Words
//
// An [Overload] finds out why a host answers one kind of request that it is overloaded. It
// tells chance from a limit by a [Coin], which looks at the [Load] that was under way and at
// whether room comes back with time. It tells a limit from an outage by the [Past] of the
// host as well.
//
// [Fates] find out whether a refusal is for one request alone; a [Request] is what they know
// of that request. A [Blame] guesses whether a refusal is for one kind of request alone, the
// [Answers] of each kind show which kinds share a limit (a [Split]), and a [Reach] whom a long
// wait binds that one of several was told. Strangers are credentials that are used once;
// [Strangers] finds out whether they share one limit. A [Sharing] finds out whether paths
// share a limit that the server states. A [Where] is one of these paths; a [Depth] says how
// finely paths are told apart. [Parts] find out the same of limits that nobody states; a [Way]
// says what tells one [Part] from another. A [Belief] says whether what a server states of a limit, its
// [Word], is obeyed, and [Counters] find out whether several servers say it that count each for itself.
//
// # Promises
//
// The zero value of each type has heard nothing. It makes the guess that holds back
// the fewest requests, or that is right for most servers. A verdict is given once, with the
// answer that makes it sure. It is forgotten after [Remembered], because servers change, or as
// soon as later answers speak for another one.
// The memory of each type is bounded, whatever a server says.
//
// # Invariants
//
// There is no clock, no lock, no queue and no HTTP here: callers hold a lock of their
// own and pass the instant at which an answer was heard. These instants never step back.
// Nothing here decides when something may be sent.
package attribution

import "time"

// Remembered is for how long a verdict is kept if no later answer confirms it. Servers are
// seldom reconfigured more often, and a wrong verdict is corrected in that time.
const Remembered = 10 * time.Minute
