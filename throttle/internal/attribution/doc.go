// Package attribution finds out why a server refused a request, and which requests are
// bound by the limit that the refusal speaks of.
//
// A server seldom says whom it refuses. The same 429 may be for one request, for one
// kind of request, for all of one credential or for everybody, and a 503 may be a
// limit, an overload or bad luck. If weir takes a refusal for a wider limit than it is, it
// holds up requests that nothing binds. If it takes it for a narrower one, it is refused
// again. So each type here compares two guesses, answer by answer, and says when one of
// them is sure.
//
// # Words
//
// An [Overload] asks why one kind of request is answered that the host is overloaded;
// it tells chance from a limit by a [Coin], which looks among others at the [Load] that
// was under way, and a limit from an outage by the [Past] of the host. [Fates] ask whether
// a refusal is one request's own; a [Request] is what they know of that request. A [Blame]
// asks whether it is one kind of request's own. A [Reach] asks whom a long wait binds that
// one of several was told. [Strangers] are credentials that are used
// once; the type asks whether they share one limit. A [Sharing] asks the same of the paths
// that a stated limit was seen with. A [Where] is one of these paths, told apart as finely
// as a [Depth] says. A [Belief] is how far the [Word] of a stated limit is obeyed.
//
// # Promises
//
// The zero value of each type has heard nothing. It makes the guess that holds back
// fewest requests, or that is right for most servers. A verdict is given once, with the
// answer that makes it sure. It is forgotten after [Remembered], because servers change.
// What each type keeps is bounded, whatever a server says.
//
// # Invariants
//
// There is no clock, no lock, no queue and no HTTP here: callers hold a lock of their
// own and pass the instant at which an answer was heard. These instants never step back.
// Nothing here decides when something may be sent.
package attribution

import "time"

// Remembered is for how long a verdict is believed that nothing bears out any more.
const Remembered = 10 * time.Minute
