// Package attribution weighs, answer by answer, of what an answer is evidence: why a
// server refused, and which requests the limit binds that it speaks of.
//
// A server seldom says whom it refuses. The same 429 may be for one request, for one
// kind of request, for all of one credential or for everybody, and a 503 may be a
// limit, an overload or bad luck. Who takes it for more than it is holds up requests
// that nothing binds; who takes it for less is refused again. So each type here holds
// two guesses against one another and says when one has won.
//
// # Words
//
// An [Overload] asks why one kind of request is answered that the host is overloaded;
// a [Coin] is how it tells chance from a limit, by the [Load] that was under way among
// others, and a [Past] what it takes to tell that from an outage. [Fates] ask whether a refusal is one request's own, of which a [Request]
// is what it knows, and a [Blame] whether it is one kind of request's own. [Strangers] are
// credentials that are used once: it asks whether they share one limit. A [Sharing] asks the same of the
// paths that a stated limit was seen with; a [Where] is one of these, told apart as finely
// as a [Depth] says. A [Belief] is how far the [Word] of a stated limit is obeyed.
//
// # Promises
//
// The zero value of each type has heard nothing and takes the guess that holds
// back least, or that most servers fit. A verdict is given once, with the answer that
// makes it sure, and is forgotten after [Remembered], as servers change. What each
// type keeps is bounded, whatever a server says.
//
// # Invariants
//
// There is no clock, no lock, no queue and no HTTP here: callers hold a lock of their
// own, pass the instant at which an answer was heard, and never an earlier one after a
// later one. Nothing here decides when something may be sent; it says only of what an
// answer tells.
package attribution

import "time"

// Remembered is for how long a verdict is believed that nothing bears out any more.
const Remembered = 10 * time.Minute
